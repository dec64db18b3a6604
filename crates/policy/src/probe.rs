//! When an app counts as ready: how often it is asked, and what its answers
//! add up to.

use crate::moment::Moment;
use std::time::Duration;

/// Time from one eager attempt to the next; the reference's.
pub const EAGER_EVERY: Duration = Duration::from_millis(50);
/// Longest eager attempt; the reference's.
pub const EAGER_ATTEMPT_MAX: Duration = Duration::from_millis(100);
/// How long an eager check goes on before it fails; the reference's.
pub const EAGER_MAX: Duration = Duration::from_secs(10);
/// Longest attempt where the probe does not say; Kubernetes' default.
pub const ATTEMPT_MAX: Duration = Duration::from_secs(1);

/// How one check goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    /// Attempts in quick succession until enough have passed in a row: for
    /// probes without a period (the reference's mode "aggressive").
    Eager {
        /// Successes in a row that are needed (`successThreshold`).
        threshold: u32,
    },
    /// One attempt decides: whoever asks does so periodically, and counts.
    Once {
        /// Longest time for it (`timeoutSeconds`).
        limit: Duration,
    },
}

impl Manner {
    /// From the settings of a Kubernetes probe, where 0 stands for absent.
    pub fn new(period_seconds: u32, timeout_seconds: u32, success_threshold: u32) -> Manner {
        if period_seconds == 0 {
            return Manner::Eager { threshold: success_threshold.max(1) };
        }
        let limit = if timeout_seconds == 0 { ATTEMPT_MAX } else { Duration::from_secs(timeout_seconds.into()) };
        Manner::Once { limit }
    }

    /// Longest time for one attempt.
    pub fn attempt_max(self) -> Duration {
        match self {
            Manner::Eager { .. } => EAGER_ATTEMPT_MAX,
            Manner::Once { limit } => limit,
        }
    }
}

/// Successes in a row. It outlives a check: an app that has passed once need
/// not pass `threshold` times each time it is asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Streak(u32);

impl Streak {
    /// Counts an attempt; true when enough have passed.
    pub fn note(&mut self, passed: bool, threshold: u32) -> bool {
        self.0 = if passed { self.0.saturating_add(1) } else { 0 };
        passed && self.0 >= threshold
    }
}

/// An eager check while it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Eager {
    began: Moment,
    failed: u32,
}

impl Eager {
    /// Begins with an attempt at once.
    pub fn new(now: Moment) -> Eager {
        Eager { began: now, failed: 0 }
    }

    /// Counts a failed attempt.
    pub fn failed(&mut self) {
        self.failed = self.failed.saturating_add(1);
    }

    /// Attempts that failed.
    pub fn failures(&self) -> u32 {
        self.failed
    }

    /// When the check has failed for good.
    pub fn ends(&self) -> Moment {
        self.began + EAGER_MAX
    }

    /// When the next attempt is made, after one that began at `attempt`;
    /// `None` when the check has failed for good.
    pub fn next(&self, attempt: Moment, now: Moment) -> Option<Moment> {
        let next = now.max(attempt + EAGER_EVERY);
        (next < self.ends()).then_some(next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_probe_without_a_period_is_eager() {
        assert_eq!(Manner::new(0, 5, 3), Manner::Eager { threshold: 3 });
        assert_eq!(Manner::new(0, 0, 0), Manner::Eager { threshold: 1 });
        assert_eq!(Manner::new(1, 0, 3), Manner::Once { limit: ATTEMPT_MAX });
        assert_eq!(Manner::new(10, 4, 0), Manner::Once { limit: Duration::from_secs(4) });
    }

    #[test]
    fn successes_count_in_a_row_and_across_checks() {
        let mut streak = Streak::default();
        let seen = [true, true, false, true, true, true, true].map(|passed| streak.note(passed, 3));
        assert_eq!(seen, [false, false, false, false, false, true, true]);
    }

    #[test]
    fn attempts_follow_each_other_in_steps_until_ten_seconds_have_passed() {
        let ms = Moment::from_unix_millis;
        let check = Eager::new(ms(0));
        assert_eq!(check.next(ms(0), ms(1)), Some(ms(50)));
        assert_eq!(check.next(ms(0), ms(100)), Some(ms(100)), "a slow attempt is followed at once");
        assert_eq!(check.next(ms(9_900), ms(9_999)), Some(ms(9_999)));
        assert_eq!(check.next(ms(9_950), ms(9_951)), None);
    }
}
