//! Time as the decisions see it: a point, given by the caller.

use std::ops::{Add, Sub};
use std::time::Duration;

/// A point in time: nanoseconds since the Unix epoch, signed (recorded
/// vectors contain times before their own epoch).
///
/// Wall time rather than a monotonic reading, because the averaging windows
/// align their buckets to whole seconds of wall time. The shell anchors one
/// wall reading to the monotonic clock at start, so a `Moment` never goes
/// back while a process lives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Moment(i64);

const NANOS_PER_SECOND: i64 = 1_000_000_000;

impl Moment {
    /// The earliest moment there is: before everything that was observed.
    pub const MIN: Moment = Moment(i64::MIN);

    /// From nanoseconds since the Unix epoch.
    pub const fn from_unix_nanos(nanos: i64) -> Moment {
        Moment(nanos)
    }

    /// From milliseconds since the Unix epoch; saturates.
    pub const fn from_unix_millis(millis: i64) -> Moment {
        Moment(millis.saturating_mul(1_000_000))
    }

    /// Nanoseconds since the Unix epoch.
    pub const fn unix_nanos(self) -> i64 {
        self.0
    }

    /// Milliseconds since the Unix epoch, rounded down.
    pub const fn unix_millis(self) -> i64 {
        self.0.div_euclid(1_000_000)
    }

    /// Whole seconds since the Unix epoch, rounded down.
    pub const fn unix_seconds(self) -> i64 {
        self.0.div_euclid(NANOS_PER_SECOND)
    }

    /// The whole second that this moment lies in.
    pub const fn truncated_to_second(self) -> Moment {
        Moment(self.unix_seconds().saturating_mul(NANOS_PER_SECOND))
    }

    /// Time from `earlier` to this moment; zero when `earlier` is later.
    pub fn since(self, earlier: Moment) -> Duration {
        Duration::from_nanos(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
}

fn nanos(span: Duration) -> i64 {
    i64::try_from(span.as_nanos()).unwrap_or(i64::MAX)
}

impl Add<Duration> for Moment {
    type Output = Moment;

    fn add(self, span: Duration) -> Moment {
        Moment(self.0.saturating_add(nanos(span)))
    }
}

impl Sub<Duration> for Moment {
    type Output = Moment;

    fn sub(self, span: Duration) -> Moment {
        Moment(self.0.saturating_sub(nanos(span)))
    }
}
