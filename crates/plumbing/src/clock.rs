//! The one place that reads a clock.

use policy::moment::Moment;
use std::sync::OnceLock;
use std::time::{SystemTime, UNIX_EPOCH};
use tokio::time::Instant;

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
