//! Reading one value of a config map.

use super::{ConfigFault, Data};
use crate::knative::text::{self, Misread};

/// The value of `key`, or `default` where there is none.
pub(super) fn read<T>(
    data: &Data,
    key: &str,
    default: T,
    parse: impl Fn(&str) -> Result<T, Misread>,
) -> Result<T, ConfigFault> {
    let Some(text) = data.get(key) else { return Ok(default) };
    parse(text).map_err(|misread| {
        let why = misread.as_str();
        ConfigFault::Parse(format!("failed to parse data: failed to parse {key:?}: {why}"))
    })
}

/// The value of a key that had another spelling once. Both must read, and the
/// newer one counts.
pub(super) fn read_either<T: Copy>(
    data: &Data,
    [old, new]: [&str; 2],
    default: T,
    parse: impl Fn(&str) -> Result<T, Misread>,
) -> Result<T, ConfigFault> {
    let older = read(data, old, default, &parse)?;
    read(data, new, older, parse)
}

/// A text, without the blanks around it.
pub(super) fn trimmed(text: &str) -> Result<String, Misread> {
    Ok(text.trim().to_owned())
}

/// A span in nanoseconds; its bounds are checked afterwards.
pub(super) fn span(text: &str) -> Result<i64, Misread> {
    text::duration(text)
}
