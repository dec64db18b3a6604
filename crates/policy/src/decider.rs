//! What the last decision of a revision was, who is told of the next one, and
//! which reports cause one at once.

use crate::compat::Compat;
use crate::revision::ScaleSpec;
use crate::scale::{Decision, whole};

/// The outcome of the last valid decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status {
    /// Pods wished for; -1 until the first valid decision.
    pub desired: i32,
    /// Spare load beyond `target-burst-capacity`.
    pub excess_burst_capacity: i32,
}

impl Status {
    /// Of a revision just made, before any decision: as if its initial scale
    /// were ready and idle.
    pub fn initial(spec: &ScaleSpec, compat: Compat) -> Status {
        let burst = spec.target_burst_capacity;
        let excess =
            if burst == -1.0 || burst == 0.0 { burst } else { f64::from(spec.initial_scale) * spec.total - burst };
        Status { desired: -1, excess_burst_capacity: whole(excess, compat) }
    }

    /// Takes in a decision, `None` for one that could not be made. True when
    /// whoever acts on it should be told: the number of pods changed, or the
    /// spare load changed its sign (0 counts as positive).
    pub fn inform(&mut self, latest: Option<Status>) -> bool {
        let Some(latest) = latest else { return false };
        let path_may_change = (latest.excess_burst_capacity < 0) != (self.excess_burst_capacity < 0);
        let changed = latest.desired != self.desired || path_may_change;
        *self = latest;
        changed
    }

    /// True when a report of that many requests in progress, on average,
    /// should cause a decision at once: there are no pods, and now there is
    /// load. The reference does not do so before its first decision, when
    /// `desired` is -1; the better way does.
    pub fn poke(&self, average_concurrency: f64, compat: Compat) -> bool {
        match compat {
            Compat::Strict => self.desired == 0 && average_concurrency != 0.0,
            Compat::Better => self.desired <= 0 && average_concurrency > 0.0,
        }
    }
}

impl From<&Decision> for Status {
    fn from(decision: &Decision) -> Status {
        Status { desired: decision.desired, excess_burst_capacity: decision.excess_burst_capacity }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT_ZERO: Status = Status { desired: 0, excess_burst_capacity: 0 };

    fn status(desired: i32, excess_burst_capacity: i32) -> Option<Status> {
        Some(Status { desired, excess_burst_capacity })
    }

    #[test]
    fn only_a_new_number_of_pods_or_a_new_sign_is_told() {
        let mut last = AT_ZERO;
        let told = [status(0, 5), status(0, -1), status(0, -9), status(0, 0), status(1, 0), None]
            .map(|latest| last.inform(latest));
        assert_eq!(told, [false, true, false, true, true, false]);
        assert_eq!(Some(last), status(1, 0));
    }

    #[test]
    fn the_spare_load_is_kept_even_when_nobody_is_told() {
        let mut last = AT_ZERO;
        assert!(!last.inform(status(0, 7)));
        assert_eq!(last.excess_burst_capacity, 7);
    }

    #[test]
    fn load_at_zero_decides_at_once_and_before_the_first_decision_unless_strict() {
        let fresh = Status { desired: -1, ..AT_ZERO };
        let busy = Status { desired: 1, ..AT_ZERO };
        for (status, better, strict) in [(AT_ZERO, true, true), (fresh, true, false), (busy, false, false)] {
            assert_eq!(status.poke(0.5, Compat::Better), better);
            assert_eq!(status.poke(0.5, Compat::Strict), strict);
            assert!(!status.poke(0.0, Compat::Better));
        }
        assert!(!AT_ZERO.poke(f64::NAN, Compat::Better));
    }
}
