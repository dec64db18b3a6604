//! Annotations at run time. Nothing is refused any more: what does not read is
//! as if it were not there, and the config counts.

use super::Annotations;
use super::keys::Key;
use crate::knative::text;
use policy::compat::Compat;
use std::time::Duration;

/// The annotations of one object, read in one mode.
#[derive(Clone, Copy)]
pub(super) struct Reader<'a> {
    pub(super) annotations: &'a Annotations,
    pub(super) compat: Compat,
}

impl<'a> Reader<'a> {
    pub(super) fn text(self, key: Key) -> Option<&'a str> {
        key.find(self.annotations).map(|(_, value)| value)
    }

    pub(super) fn count(self, key: Key) -> Option<i32> {
        text::int32(self.text(key)?).ok()
    }

    /// In strict mode also infinite, or no number.
    pub(super) fn number(self, key: Key) -> Option<f64> {
        let value = text::float(self.text(key)?).ok()?;
        (value.is_finite() || self.compat == Compat::Strict).then_some(value)
    }

    /// Less than nothing is nothing: no such span is admitted.
    pub(super) fn span(self, key: Key) -> Option<Duration> {
        let nanos = text::duration(self.text(key)?).ok()?;
        Some(Duration::from_nanos(u64::try_from(nanos).unwrap_or(0)))
    }
}
