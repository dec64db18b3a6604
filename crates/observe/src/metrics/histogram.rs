//! A histogram that is only ever added to.

use super::instruments::Unit;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bounds in seconds, the reference's.
const SECONDS: [f64; 14] = [0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0];

/// The same in nanoseconds: what is recorded is whole.
const NANOS: [u64; 14] = [
    5_000_000,
    10_000_000,
    25_000_000,
    50_000_000,
    75_000_000,
    100_000_000,
    250_000_000,
    500_000_000,
    750_000_000,
    1_000_000_000,
    2_500_000_000,
    5_000_000_000,
    7_500_000_000,
    10_000_000_000,
];

/// Bounds in bytes, the reference's.
const BYTES: [f64; 15] =
    [0.0, 5.0, 10.0, 25.0, 50.0, 75.0, 100.0, 250.0, 500.0, 750.0, 1000.0, 2500.0, 5000.0, 7500.0, 10_000.0];

const WHOLE_BYTES: [u64; 15] = [0, 5, 10, 25, 50, 75, 100, 250, 500, 750, 1000, 2500, 5000, 7500, 10_000];

const NANOS_PER_SECOND: f64 = 1e9;

/// Counts by bound, and a sum. One relaxed add each: a reader may see a
/// sample in one and not yet in the other.
pub(super) struct Histogram<const N: usize> {
    bounds: &'static [u64],
    buckets: [AtomicU64; N],
    sum: AtomicU64,
}

/// In seconds; records nanoseconds.
pub(super) type Seconds = Histogram<15>;
/// In bytes.
pub(super) type Bytes = Histogram<16>;

impl Default for Seconds {
    fn default() -> Seconds {
        Seconds::new(&NANOS)
    }
}

impl Default for Bytes {
    fn default() -> Bytes {
        Bytes::new(&WHOLE_BYTES)
    }
}

impl<const N: usize> Histogram<N> {
    fn new(bounds: &'static [u64]) -> Histogram<N> {
        debug_assert_eq!(bounds.len() + 1, N);
        Histogram { bounds, buckets: std::array::from_fn(|_| AtomicU64::new(0)), sum: AtomicU64::new(0) }
    }

    pub(super) fn record(&self, value: u64) {
        let bucket = self.bounds.iter().position(|bound| value <= *bound).unwrap_or(self.bounds.len());
        self.buckets[bucket].fetch_add(1, Ordering::Relaxed);
        self.sum.fetch_add(value, Ordering::Relaxed);
    }

    /// Counts of each bucket, not added up, and the sum as recorded.
    pub(super) fn read(&self) -> (Vec<u64>, u64) {
        let counts = self.buckets.iter().map(|bucket| bucket.load(Ordering::Relaxed)).collect();
        (counts, self.sum.load(Ordering::Relaxed))
    }
}

/// Bounds as they are shown.
pub(super) fn bounds(unit: Unit) -> &'static [f64] {
    match unit {
        Unit::Seconds => &SECONDS,
        Unit::Bytes | Unit::Of(_) => &BYTES,
    }
}

/// A recorded sum as it is shown.
#[expect(clippy::cast_precision_loss, reason = "sums beyond 2^53 are shown rounded")]
pub(super) fn shown(unit: Unit, sum: u64) -> f64 {
    match unit {
        Unit::Seconds => sum as f64 / NANOS_PER_SECOND,
        Unit::Bytes | Unit::Of(_) => sum as f64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_belongs_to_its_own_bucket() {
        let seconds = Seconds::default();
        for value in [0, 5_000_000, 5_000_001, 10_000_000_000, 10_000_000_001] {
            seconds.record(value);
        }
        let (counts, sum) = seconds.read();
        assert_eq!((counts[0], counts[1], counts[13], counts[14]), (2, 1, 1, 1));
        assert!((shown(Unit::Seconds, sum) - 20.010_000_002).abs() < 1e-9);
        let bytes = Bytes::default();
        bytes.record(0);
        bytes.record(10_001);
        assert_eq!((bytes.read().0[0], bytes.read().0[15]), (1, 1));
    }

    #[test]
    fn whole_and_shown_bounds_agree() {
        let whole: Vec<f64> = NANOS.iter().map(|bound| shown(Unit::Seconds, *bound)).collect();
        assert_eq!(whole, SECONDS);
        let whole: Vec<f64> = WHOLE_BYTES.iter().map(|bound| shown(Unit::Bytes, *bound)).collect();
        assert_eq!(whole, BYTES);
    }
}
