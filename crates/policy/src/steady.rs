//! Holding the number of pods under a load that lies at the edge of one pod
//! more: noise alone would take that pod away and bring it back for ever.
//!
//! A fall of the wish is not followed while the load is within a band of what
//! the present number is for, and that number has been there for a while: on
//! its way down it is not held anywhere. What that costs is bounded: it is paid from a
//! share of all pod-seconds, so that a load that really lies lower is followed
//! as soon as the share is used up.

use crate::moment::Moment;
use std::time::Duration;

/// The load may be lower by this share.
const BAND: f64 = 0.05;
/// The load falls, and is not at an edge, when its newest part is lower than
/// the rest by this share.
const FALLING: f64 = 0.1;
/// Share of all pod-seconds that may go into holding.
const SHARE: f64 = 0.035;
/// What there is of it from the start, and at most: seconds of the pods there.
const FIRST: f64 = 6.0;
const MOST: f64 = 60.0;
/// The longest time between two decisions that counts.
const APART_MAX: Duration = Duration::from_secs(10);

/// What was decided last, and what may be spent on holding it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Steady {
    /// The number.
    pub pods: i32,
    /// Pod-seconds.
    pub credit: f64,
    /// When it was decided.
    pub at: Option<Moment>,
    /// Since when it is this number.
    pub since: Option<Moment>,
}

impl Steady {
    /// The number to have where the load asks for `wish` pods; the load over the
    /// stable window and over the panic window, in pods, and how long a number
    /// must have been there to be held; `None` = not held at all.
    pub fn hold(&mut self, wish: i32, (load, newest): (f64, f64), after: Option<Duration>, now: Moment) -> i32 {
        let apart = self.at.map_or(Duration::ZERO, |at| now.since(at).min(APART_MAX)).as_secs_f64();
        let most = f64::from(wish.max(1));
        if self.pods == 0 && wish > 0 {
            self.credit = self.credit.max(FIRST * most);
        }
        self.credit = (self.credit + SHARE * most * apart).min(MOST * most);
        self.at = Some(now);
        let falls = newest * (1.0 + FALLING) < load;
        let near = !falls && (load * (1.0 + BAND)).ceil() >= f64::from(self.pods);
        let long = after.is_some_and(|after| self.since.is_some_and(|since| now.since(since) >= after));
        let cost = f64::from(self.pods.saturating_sub(wish)) * apart;
        if long && wish > 0 && wish < self.pods && near && cost <= self.credit {
            self.credit -= cost;
        } else if wish != self.pods {
            (self.pods, self.since) = (wish, Some(now));
        }
        self.pods
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn second(seconds: i64) -> Moment {
        Moment::from_unix_millis(seconds * 1000)
    }

    const AFTER: Option<Duration> = Some(Duration::from_secs(60));

    #[test]
    fn a_dip_is_held_and_a_fall_is_followed() {
        let mut steady = Steady::default();
        assert_eq!(steady.hold(3, (2.02, 2.02), AFTER, second(0)), 3);
        assert_eq!(steady.hold(2, (1.99, 1.99), AFTER, second(60)), 3);
        assert_eq!(steady.hold(2, (1.99, 1.5), AFTER, second(62)), 2);
        assert_eq!(steady.hold(0, (0.0, 0.0), AFTER, second(64)), 0);
    }

    #[test]
    fn what_holding_costs_is_bounded() {
        let mut steady = Steady::default();
        steady.hold(2, (1.01, 1.01), AFTER, second(-60));
        let held = (1..=500).filter(|tick| steady.hold(1, (0.99, 0.99), AFTER, second(tick * 2)) == 2).count();
        assert!((2..=40).contains(&held), "{held}");
    }

    #[test]
    fn nothing_is_held_that_is_new_or_may_not_be() {
        let mut steady = Steady::default();
        steady.hold(3, (2.02, 2.02), AFTER, second(0));
        assert_eq!(steady.hold(2, (1.99, 1.99), None, second(90)), 2);
        assert_eq!(steady.hold(1, (0.99, 0.99), AFTER, second(100)), 1);
    }
}
