//! How often a pod is asked that does not answer yet.

use std::time::Duration;

/// So many pods may be asked at the pace of one alone.
const CROWD: usize = 8;

/// Time to the next question to a pod that has been asked for so long: a pod
/// that starts is found within a millisecond of being ready, and one that
/// takes its time costs little.
pub fn step(asked_for: Duration) -> Duration {
    let millis = match asked_for.as_secs() {
        0..2 => 1,
        2..10 => 10,
        _ => 100,
    };
    Duration::from_millis(millis)
}

/// The same while `crowd` pods are asked, so that all together are not asked
/// more often than a few alone; at most `every`.
pub(super) fn step_in_crowd(asked_for: Duration, crowd: usize, every: Duration) -> Duration {
    let times = u32::try_from(crowd.div_ceil(CROWD)).unwrap_or(u32::MAX).max(1);
    let every = every.max(Duration::from_millis(1));
    let slow = if asked_for.as_secs() < 10 { step(asked_for) } else { every };
    slow.saturating_mul(times).min(every)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_alone_is_asked_each_millisecond_at_first_and_many_no_more_often_together() {
        let (every, ms) = (Duration::from_millis(200), Duration::from_millis);
        let of = |asked_for, crowd| step_in_crowd(ms(asked_for), crowd, every);
        assert_eq!([of(0, 1), of(1999, 8), of(2000, 0), of(10_000, 1)], [1, 1, 10, 200].map(ms));
        assert_eq!([of(0, 9), of(0, 800), of(0, 100_000), of(2000, 80)], [2, 100, 200, 100].map(ms));
        assert_eq!(step_in_crowd(ms(0), 100, Duration::ZERO), ms(1));
        assert_eq!([step(ms(0)), step(ms(9999)), step(ms(10_000))], [1, 10, 100].map(ms));
    }
}
