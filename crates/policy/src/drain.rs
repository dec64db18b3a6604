//! The end of a sidecar: first quiet, then closed.
//!
//! ```text
//! serving --hook--> asked --TERM--> quiet --no request for a while--> closing --> closed
//!    ^                |
//!    +--no TERM-------+   (the app's container is restarted, not the pod)
//! ```
//!
//! From the hook or TERM on, health probes fail, so that others stop sending
//! requests here; what comes all the same is served. A request during the quiet
//! time starts it anew, since some peer has not heard yet. While the app has
//! said that it works by itself (a lease), the quiet time goes on.

use crate::compat::Compat;
use crate::moment::Moment;
use std::time::Duration;

/// Longest quiet time that is taken unless one is set; the reference's.
pub const QUIET_MAX: Duration = Duration::from_secs(30);
/// How long a call of the hook may precede TERM; the reference's.
pub const HOOK_WATCH: Duration = Duration::from_secs(1);

/// How a drain goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Time without a request after which everything is closed.
    pub quiet: Duration,
    /// Late requests make the whole quiet time at most this long; `None` = a
    /// client with steady traffic can keep it up for ever.
    pub longest: Option<Duration>,
    /// A drain that the hook began is called off when no TERM follows in this
    /// time.
    pub hook_watch: Duration,
    /// Strict: a second call of the hook is cut short by the first one's watch.
    pub compat: Compat,
}

impl Rules {
    /// For requests that may take `limit` (`None` = for ever), with the settle
    /// time that was set, if one was.
    ///
    /// A pod's grace period is its request limit. A third of it for the quiet
    /// time, two thirds at most, leaves time for what still runs; the reference
    /// takes 30 s always, and short-lived pods are killed in the middle of it.
    pub fn new(compat: Compat, settle: Option<Duration>, limit: Option<Duration>) -> Rules {
        let third = limit.map_or(QUIET_MAX, |limit| limit / 3);
        let quiet = match (settle, compat) {
            (Some(settle), _) => settle,
            (None, Compat::Strict) => QUIET_MAX,
            (None, Compat::Better) => third.min(QUIET_MAX),
        };
        let longest = match compat {
            Compat::Strict => None,
            Compat::Better => Some(quiet.max(third.saturating_mul(2))),
        };
        Rules { quiet, longest, hook_watch: HOOK_WATCH, compat }
    }

    /// Without a quiet time: whoever asks for the drain has already seen to it
    /// that no new request comes.
    pub fn at_once() -> Rules {
        Rules::new(Compat::Better, Some(Duration::ZERO), Some(Duration::ZERO))
    }
}

/// How far a drain is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// No drain.
    Serving,
    /// Requests are served, health probes fail.
    Quiet,
    /// Nothing new is accepted; what runs is finished.
    Closing,
    /// All is over.
    Closed,
}

/// A drain, or none yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Drain {
    rules: Rules,
    state: State,
    /// Drains that the hook began and nobody followed up.
    called_off: u64,
    /// Nothing closes before.
    held: Option<Moment>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Serving,
    /// The hook was called; it is watched for TERM until `watched`.
    Asked {
        began: Moment,
        last: Moment,
        watched: Moment,
    },
    Quiet {
        began: Moment,
        last: Moment,
    },
    Closing,
    Closed,
}

impl Drain {
    /// Serving.
    pub fn new(rules: Rules) -> Drain {
        Drain { rules, state: State::Serving, called_off: 0, held: None }
    }

    /// Its rules.
    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// How far it is.
    pub fn phase(&self) -> Phase {
        match self.state {
            State::Serving => Phase::Serving,
            State::Asked { .. } | State::Quiet { .. } => Phase::Quiet,
            State::Closing => Phase::Closing,
            State::Closed => Phase::Closed,
        }
    }

    /// Drains that were called off so far. Whoever waits for a drain that the
    /// hook began waits no longer when this changes.
    pub fn called_off(&self) -> u64 {
        self.called_off
    }

    /// The app's stop hook was called.
    pub fn hook(&mut self, now: Moment) {
        let until = now + self.rules.hook_watch;
        match &mut self.state {
            State::Serving => self.state = State::Asked { began: now, last: now, watched: until },
            State::Asked { watched, .. } if self.rules.compat == Compat::Better => *watched = until,
            State::Asked { .. } | State::Quiet { .. } | State::Closing | State::Closed => {}
        }
    }

    /// TERM has come. A drain that the hook began goes on as it is.
    pub fn terminate(&mut self, now: Moment) {
        match self.state {
            State::Serving => self.state = State::Quiet { began: now, last: now },
            State::Asked { began, last, .. } => self.state = State::Quiet { began, last },
            State::Quiet { .. } | State::Closing | State::Closed => {}
        }
    }

    /// A request has come that is no probe.
    pub fn request(&mut self, now: Moment) {
        if let State::Asked { last, .. } | State::Quiet { last, .. } = &mut self.state {
            *last = now.max(*last);
        }
    }

    /// The app works until then, whoever asks for a drain: nothing closes
    /// before, not even at [`Rules::longest`]. `None` = no longer.
    pub fn hold(&mut self, until: Option<Moment>) {
        self.held = until;
    }

    /// Until when the app has said that it works.
    pub fn held(&self) -> Option<Moment> {
        self.held
    }

    /// When [`Drain::advance`] has something to do; `None` = not by itself.
    pub fn due(&self) -> Option<Moment> {
        match self.state {
            State::Asked { watched, .. } => Some(watched),
            State::Quiet { began, last } => {
                let due = last + self.rules.quiet;
                let due = self.rules.longest.map_or(due, |longest| due.min(began + longest));
                Some(self.held.map_or(due, |held| due.max(held)))
            }
            State::Serving | State::Closing | State::Closed => None,
        }
    }

    /// Does what is due.
    pub fn advance(&mut self, now: Moment) -> Phase {
        if self.due().is_some_and(|due| due <= now) {
            match self.state {
                State::Asked { .. } => {
                    self.state = State::Serving;
                    self.called_off += 1;
                }
                State::Quiet { .. } => self.state = State::Closing,
                State::Serving | State::Closing | State::Closed => {}
            }
        }
        self.phase()
    }

    /// What ran has ended.
    pub fn close(&mut self) {
        self.state = State::Closed;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Moment {
        Moment::from_unix_millis(seconds * 1000)
    }

    fn secs(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn drain(compat: Compat, limit: u64) -> Drain {
        Drain::new(Rules::new(compat, None, Some(secs(limit))))
    }

    #[test]
    fn the_quiet_time_fits_into_the_grace_period() {
        for (limit, quiet, longest) in [(300, 30, 200), (60, 20, 40), (3, 1, 2), (9, 3, 6)] {
            let rules = Rules::new(Compat::Better, None, Some(secs(limit)));
            assert_eq!((rules.quiet, rules.longest), (secs(quiet), Some(secs(longest))), "limit {limit}");
            let strict = Rules::new(Compat::Strict, None, Some(secs(limit)));
            assert_eq!((strict.quiet, strict.longest), (secs(30), None));
        }
        let unlimited = Rules::new(Compat::Better, None, None);
        assert_eq!((unlimited.quiet, unlimited.longest), (secs(30), Some(secs(60))));
        let set = Rules::new(Compat::Better, Some(secs(50)), Some(secs(60)));
        assert_eq!((set.quiet, set.longest), (secs(50), Some(secs(50))));
    }

    #[test]
    fn it_closes_after_the_quiet_time_and_each_request_begins_it_anew() {
        let mut drain = drain(Compat::Strict, 300);
        assert_eq!((drain.phase(), drain.due()), (Phase::Serving, None));
        drain.terminate(at(0));
        drain.request(at(8));
        assert_eq!((drain.phase(), drain.due()), (Phase::Quiet, Some(at(38))));
        assert_eq!(drain.advance(at(37)), Phase::Quiet);
        assert_eq!(drain.advance(at(38)), Phase::Closing);
        drain.request(at(39));
        assert_eq!(drain.due(), None);
        drain.close();
        assert_eq!(drain.advance(at(99)), Phase::Closed);
    }

    #[test]
    fn steady_traffic_keeps_only_the_reference_alive_for_ever() {
        let mut better = drain(Compat::Better, 60);
        let mut strict = drain(Compat::Strict, 60);
        better.terminate(at(0));
        strict.terminate(at(0));
        for second in 1..1000 {
            strict.request(at(second));
            assert_eq!(strict.advance(at(second)), Phase::Quiet);
            better.request(at(second));
            let phase = if second < 40 { Phase::Quiet } else { Phase::Closing };
            assert_eq!(better.advance(at(second)), phase, "second {second}");
        }
    }

    #[test]
    fn a_hook_without_term_is_called_off_and_can_come_again() {
        let mut drain = drain(Compat::Better, 300);
        drain.hook(at(5));
        assert_eq!((drain.phase(), drain.due(), drain.called_off()), (Phase::Quiet, Some(at(6)), 0));
        assert_eq!((drain.advance(at(6)), drain.called_off()), (Phase::Serving, 1));
        drain.hook(at(10));
        drain.terminate(at(10));
        assert_eq!((drain.due(), drain.called_off()), (Some(at(40)), 1));
    }

    #[test]
    fn term_joins_the_drain_that_the_hook_began() {
        let mut drain = drain(Compat::Strict, 300);
        drain.hook(Moment::from_unix_millis(0));
        drain.terminate(Moment::from_unix_millis(300));
        drain.hook(at(1));
        assert_eq!(drain.due(), Some(at(30)));
    }

    #[test]
    fn a_second_call_of_the_hook_is_watched_for_as_long_as_the_first() {
        for (compat, ends) in [(Compat::Better, 1_900), (Compat::Strict, 1_000)] {
            let mut drain = drain(compat, 300);
            drain.hook(Moment::from_unix_millis(0));
            drain.hook(Moment::from_unix_millis(900));
            assert_eq!(drain.due(), Some(Moment::from_unix_millis(ends)));
        }
    }

    #[test]
    fn work_that_was_announced_puts_the_close_off_and_can_be_called_off() {
        let mut drain = drain(Compat::Better, 60);
        drain.hold(Some(at(500)));
        assert_eq!((drain.phase(), drain.due()), (Phase::Serving, None));
        drain.terminate(at(0));
        assert_eq!(drain.due(), Some(at(500)), "beyond the longest quiet time");
        drain.hold(Some(at(900)));
        assert_eq!(drain.advance(at(500)), Phase::Quiet);
        drain.hold(None);
        assert_eq!(drain.advance(at(500)), Phase::Closing);
        let mut early = self::drain(Compat::Better, 60);
        early.terminate(at(0));
        early.hold(Some(at(5)));
        assert_eq!(early.due(), Some(at(20)), "the quiet time counts all the same");
    }

    #[test]
    fn a_drain_without_term_is_called_off_whatever_the_app_does() {
        let mut drain = drain(Compat::Better, 60);
        drain.hold(Some(at(500)));
        drain.hook(at(0));
        assert_eq!((drain.due(), drain.advance(at(1))), (Some(at(1)), Phase::Serving));
    }

    #[test]
    fn a_short_quiet_time_does_not_close_before_term() {
        let mut drain = Drain::new(Rules::at_once());
        drain.hook(at(0));
        assert_eq!(drain.advance(Moment::from_unix_millis(500)), Phase::Quiet);
        drain.terminate(Moment::from_unix_millis(500));
        assert_eq!(drain.advance(Moment::from_unix_millis(500)), Phase::Closing);
    }
}
