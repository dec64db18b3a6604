//! Whether a revision counts as starting, active or idle (the reference's
//! `Active` condition), and whether it has ever been started.

use crate::compat::Compat;
use crate::moment::Moment;
use std::time::Duration;

/// Whether a revision serves requests: the status and reason of the condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Active {
    /// Pods are wanted and not enough are ready (`Unknown`).
    Starting(Starting),
    /// Enough pods are ready (`True`).
    Yes,
    /// No pod is wanted, though some may still be there (`False`).
    No(Idle),
}

/// Kinds of [`Active::Starting`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Starting {
    /// Just made: nothing was decided yet (no reason).
    New,
    /// Requests are held while pods start (`Queued`).
    Queued,
}

/// Kinds of [`Active::No`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Idle {
    /// Nobody asks for it (`NoTraffic`).
    NoTraffic,
    /// It did not start in time (`TimedOut`).
    TimedOut,
    /// As found in an object that gives none of these reasons.
    Unsaid,
}

impl Active {
    /// The condition's status: `True`, `False` or `Unknown`.
    pub const fn status(self) -> &'static str {
        match self {
            Active::Starting(_) => "Unknown",
            Active::Yes => "True",
            Active::No(_) => "False",
        }
    }

    /// The condition's reason; empty where there is none.
    pub const fn reason(self) -> &'static str {
        match self {
            Active::Starting(Starting::New) | Active::Yes | Active::No(Idle::Unsaid) => "",
            Active::Starting(Starting::Queued) => "Queued",
            Active::No(Idle::NoTraffic) => "NoTraffic",
            Active::No(Idle::TimedOut) => "TimedOut",
        }
    }
}

impl Active {
    /// From the condition's status and reason; `None` for a status that there
    /// is not.
    pub fn parse(status: &str, reason: &str) -> Option<Active> {
        Some(match (status, reason) {
            ("Unknown", "") => Active::Starting(Starting::New),
            ("Unknown", _) => Active::Starting(Starting::Queued),
            ("True", _) => Active::Yes,
            ("False", "TimedOut") => Active::No(Idle::TimedOut),
            ("False", "") => Active::No(Idle::Unsaid),
            ("False", _) => Active::No(Idle::NoTraffic),
            _ => return None,
        })
    }
}

/// The condition with its memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Activity {
    active: Active,
    since: Moment,
    initialized: bool,
}

/// What decides the next state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    /// Pods wanted, after bounds; -1 = unknown, 0 = none.
    pub want: i32,
    /// Ready pods.
    pub ready: u32,
    /// Lower bound (`min-scale`; 0 when no route leads to the revision).
    pub min_scale: i32,
    /// Pods to reach once (`initial-scale`).
    pub initial_scale: i32,
}

impl Activity {
    /// Of a revision just made: starting, never started.
    pub fn new(now: Moment) -> Activity {
        Activity::restore(Active::Starting(Starting::New), now, false)
    }

    /// As it was written down before.
    pub fn restore(active: Active, since: Moment, initialized: bool) -> Activity {
        Activity { active, since, initialized }
    }

    /// What it is now.
    pub fn active(&self) -> Active {
        self.active
    }

    /// Since when; a change of the reason alone counts.
    pub fn since(&self) -> Moment {
        self.since
    }

    /// For how long.
    pub fn lasts(&self, now: Moment) -> Duration {
        now.since(self.since)
    }

    /// True once the initial scale was reached; never reverts
    /// (`ScaleTargetInitialized`).
    pub fn initialized(&self) -> bool {
        self.initialized
    }

    /// How many ready pods make it active.
    pub fn enough(&self, seen: &Standing) -> i32 {
        let floor = if self.initialized { 1 } else { seen.initial_scale };
        seen.min_scale.max(floor)
    }

    /// Takes the next state (`autoscaler.md`, section 14); returns whether it
    /// differs from the one before.
    pub fn settle(&mut self, seen: &Standing, now: Moment, compat: Compat) -> bool {
        let enough = self.enough(seen);
        let ready = i64::from(seen.ready) >= i64::from(enough);
        let next = next(self.active, seen.want, ready, enough, compat);
        self.initialized |= ready;
        let changed = next != self.active;
        if changed {
            self.active = next;
            self.since = now;
        }
        changed
    }
}

fn next(active: Active, want: i32, ready: bool, enough: i32, compat: Compat) -> Active {
    let unknown = want < 0;
    if want == 0 || enough <= 0 {
        return match active {
            Active::Starting(_) if enough > 0 => Active::No(Idle::TimedOut),
            _ => idle(active, compat),
        };
    }
    match active {
        Active::No(_) if unknown && ready => active,
        Active::No(_) if unknown => idle(active, compat),
        _ if ready => Active::Yes,
        _ => Active::Starting(Starting::Queued),
    }
}

/// Idle for want of traffic. The reference forgets within a second that a
/// start had failed; the better way keeps saying so until the next start.
fn idle(active: Active, compat: Compat) -> Active {
    match (active, compat) {
        (Active::No(Idle::TimedOut), Compat::Better) => active,
        _ => Active::No(Idle::NoTraffic),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Moment = Moment::from_unix_millis(5000);
    const BEFORE: Moment = Moment::from_unix_millis(1000);

    fn settled(active: Active, want: i32, ready: u32, compat: Compat) -> Activity {
        let mut activity = Activity::restore(active, BEFORE, true);
        let seen = Standing { want, ready, min_scale: 0, initial_scale: 1 };
        activity.settle(&seen, NOW, compat);
        activity
    }

    #[test]
    fn a_start_ends_when_enough_pods_are_ready() {
        let mut activity = Activity::new(BEFORE);
        let wanted = |ready| Standing { want: 3, ready, min_scale: 0, initial_scale: 3 };
        activity.settle(&wanted(2), NOW, Compat::Better);
        assert_eq!(activity.active(), Active::Starting(Starting::Queued));
        assert!(!activity.initialized());
        activity.settle(&wanted(3), NOW, Compat::Better);
        assert!(activity.initialized());
        activity.settle(&wanted(1), NOW, Compat::Better);
        assert_eq!(activity.active(), Active::Yes);
    }

    #[test]
    fn without_an_initial_scale_a_new_revision_is_idle_and_counts_as_started() {
        let mut activity = Activity::new(BEFORE);
        let nothing = Standing { want: -1, ready: 0, min_scale: 0, initial_scale: 0 };
        assert!(activity.settle(&nothing, NOW, Compat::Strict));
        assert_eq!(activity.active(), Active::No(Idle::NoTraffic));
        assert!(activity.initialized());
    }

    #[test]
    fn a_failed_start_is_told_until_the_next_one_unless_strict() {
        let failed = settled(Active::Starting(Starting::Queued), 0, 0, Compat::Better).active();
        assert_eq!(failed, Active::No(Idle::TimedOut));
        assert_eq!(settled(failed, 0, 0, Compat::Better).active(), failed);
        let strict = settled(failed, 0, 0, Compat::Strict);
        assert_eq!((strict.active(), strict.since()), (Active::No(Idle::NoTraffic), NOW));
        let again = settled(failed, 1, 0, Compat::Better).active();
        assert_eq!(again, Active::Starting(Starting::Queued));
    }

    #[test]
    fn an_unchanged_state_keeps_its_moment() {
        let activity = settled(Active::Yes, 1, 1, Compat::Better);
        assert_eq!((activity.since(), activity.lasts(NOW)), (BEFORE, Duration::from_secs(4)));
    }

    #[test]
    fn an_unknown_number_wakes_nobody() {
        let idle = Active::No(Idle::NoTraffic);
        assert_eq!(settled(idle, -1, 5, Compat::Strict).active(), idle);
        assert_eq!(settled(Active::Yes, -1, 5, Compat::Strict).active(), Active::Yes);
    }
}
