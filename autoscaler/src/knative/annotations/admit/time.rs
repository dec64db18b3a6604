//! Spans of time.

use super::super::keys::{self, Key};
use super::{Annotations, Refusals};
use crate::knative::config::{WINDOW_LONGEST, WINDOW_SHORTEST};
use crate::knative::text::{duration, show_duration};
use std::time::Duration;

const SECOND: i64 = 1_000_000_000;

pub(super) fn check(annotations: &Annotations, refusals: &mut Refusals) {
    span(annotations, keys::WINDOW, WINDOW_SHORTEST, true, refusals);
    span(annotations, keys::RETENTION, Duration::ZERO, false, refusals);
    span(annotations, keys::SCALE_DOWN_DELAY, Duration::ZERO, true, refusals);
}

fn span(annotations: &Annotations, key: Key, least: Duration, whole_seconds: bool, refusals: &mut Refusals) {
    let Some((key, value)) = key.find(annotations) else { return };
    let Ok(nanos) = duration(value) else { return refusals.invalid(value, key) };
    let bounds = [least, WINDOW_LONGEST].map(|bound| i64::try_from(bound.as_nanos()).unwrap_or(i64::MAX));
    if nanos < bounds[0] || nanos > bounds[1] {
        let [least, most] = bounds.map(show_duration);
        refusals.out_of_bounds(value, [&least, &most], key);
    } else if whole_seconds && nanos % SECOND != 0 {
        refusals.add("must be specified with at most second precision".to_owned(), &[key]);
    }
}
