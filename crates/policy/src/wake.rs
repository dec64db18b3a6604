//! How long a revision took to wake the last times, and from that, when a
//! client that is refused should come back.

use std::collections::VecDeque;
use std::time::Duration;

/// Wake-ups that are remembered.
const REMEMBERED: usize = 16;
/// Nobody is told to come back sooner or later than this.
const RETRY_MIN: Duration = Duration::from_secs(1);
const RETRY_MAX: Duration = Duration::from_secs(60);

/// The last wake-ups of one revision.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WakeHistory {
    took: VecDeque<Duration>,
}

impl WakeHistory {
    /// Notes how long a wake-up took, from the first request to a ready pod.
    pub fn note(&mut self, took: Duration) {
        if self.took.len() == REMEMBERED {
            self.took.pop_front();
        }
        self.took.push_back(took);
    }

    /// How long the next one is likely to take: three of four were not longer.
    pub fn expected(&self) -> Option<Duration> {
        let mut sorted: Vec<Duration> = self.took.iter().copied().collect();
        sorted.sort_unstable();
        sorted.get((sorted.len() * 3).div_ceil(4).checked_sub(1)?).copied()
    }

    /// When a refused client should come back to a revision without pods that
    /// has been waking for `waking`: when it is likely to be up. One that takes
    /// longer than ever is given as long again.
    pub fn retry_while_waking(&self, waking: Duration) -> Duration {
        let left = match self.expected() {
            Some(expected) if expected > waking => expected - waking,
            _ => waking,
        };
        bounded(left)
    }
}

/// When to come back to a revision whose pods are all busy: when those who
/// wait now are likely to have been served, as the oldest of them shows.
pub fn retry_while_busy(oldest_waits: Duration) -> Duration {
    bounded(oldest_waits)
}

/// Whole seconds, rounded up, within the bounds.
fn bounded(span: Duration) -> Duration {
    let up = u64::from(span.subsec_nanos() > 0);
    Duration::from_secs(span.as_secs() + up).clamp(RETRY_MIN, RETRY_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn history(took: &[u64]) -> WakeHistory {
        took.iter().fold(WakeHistory::default(), |mut history, &seconds| {
            history.note(s(seconds));
            history
        })
    }

    #[test]
    fn one_slow_start_among_many_does_not_count() {
        assert_eq!(history(&[4, 4, 4, 50]).expected(), Some(s(4)));
        assert_eq!(history(&[7]).expected(), Some(s(7)));
        assert_eq!(history(&[]).expected(), None);
        let late: Vec<u64> = (0..40).map(|n| if n < 24 { 1 } else { 9 }).collect();
        assert_eq!(history(&late).expected(), Some(s(9)), "only the last sixteen");
    }

    #[test]
    fn clients_come_back_when_it_is_likely_to_be_up() {
        let history = history(&[10, 10]);
        assert_eq!(history.retry_while_waking(Duration::from_millis(2500)), s(8));
        assert_eq!(history.retry_while_waking(s(15)), s(15), "longer than ever: as long again");
        assert_eq!(history.retry_while_waking(s(500)), s(60));
        assert_eq!(WakeHistory::default().retry_while_waking(s(0)), s(1));
        assert_eq!(retry_while_busy(Duration::from_millis(3100)), s(4));
    }
}
