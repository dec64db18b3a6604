//! The one place that reads a clock.

use policy::moment::Moment;
use std::sync::OnceLock;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::time::{Instant, Interval, MissedTickBehavior};

/// Wall time, read once, and the runtime's clock at that moment.
static ANCHOR: OnceLock<(Instant, Moment)> = OnceLock::new();

/// Now. Follows the runtime's clock from one wall reading on, so it never goes
/// back, and stands still when a test pauses time.
pub fn now() -> Moment {
    at(Instant::now())
}

/// The moment of an instant.
pub fn at(instant: Instant) -> Moment {
    let &(anchor, wall) = ANCHOR.get_or_init(|| {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let nanos = i64::try_from(since_epoch.as_nanos()).unwrap_or(i64::MAX);
        (Instant::now(), Moment::from_unix_nanos(nanos))
    });
    if instant >= anchor { wall + (instant - anchor) } else { wall - (anchor - instant) }
}

/// Ticks each `period`, always `after` the beginning of a second of [`now`].
///
/// Windows have a bucket a second: whoever reports does so as a second begins,
/// and whoever decides does so later in it. Otherwise a bucket is read before
/// all have written to it, and a short window shows nothing at all.
pub fn ticks(period: Duration, after: Duration) -> Interval {
    let second = Duration::from_secs(1);
    let past = now().since(now().truncated_to_second());
    let wait = (second + after).saturating_sub(past);
    let first = if wait > second { wait - second } else { wait };
    let mut ticks = tokio::time::interval_at(Instant::now() + first, period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    ticks
}
