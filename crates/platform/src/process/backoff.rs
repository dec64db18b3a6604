//! How long to wait before a process that failed is started again.

use std::time::Duration;

/// Waits between failed starts of one pod: `first`, doubled at each failure
/// in a row, at most `cap`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// After the first failure (default 50 ms).
    pub first: Duration,
    /// Longest wait (default 10 s).
    pub cap: Duration,
    /// Ready for this long, a pod's failures are forgotten (default 10 s).
    pub reset_after: Duration,
}

impl Default for Backoff {
    fn default() -> Backoff {
        Backoff { first: Duration::from_millis(50), cap: Duration::from_secs(10), reset_after: Duration::from_secs(10) }
    }
}

impl Backoff {
    /// The wait after this many failures in a row; none after none.
    pub(super) fn wait(&self, failures: u32) -> Duration {
        let Some(doublings) = failures.checked_sub(1) else {
            return Duration::ZERO;
        };
        let factor = 2_u32.checked_pow(doublings).unwrap_or(u32::MAX);
        self.first.saturating_mul(factor).min(self.cap)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wait_doubles_up_to_the_cap() {
        let backoff = Backoff::default();
        let waits: Vec<u128> = [0, 1, 2, 3, 8, 9, 40, u32::MAX].iter().map(|n| backoff.wait(*n).as_millis()).collect();
        assert_eq!(waits, [0, 50, 100, 200, 6400, 10_000, 10_000, 10_000]);
    }
}
