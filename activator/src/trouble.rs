//! Pods that cannot be started: those who wait are told at once, and one
//! request at a time is held, to see whether they can by now.

use parking_lot::Mutex;
use plumbing::conn::Caller;
use plumbing::reason::Reason;
use plumbing::refuse::Refusal;
use policy::admit::Refused;
use policy::world::{Trouble, TroubleKind};
use std::time::Duration;
use tokio::time::Instant;

/// So long after the news that a start has failed the next request is held.
const ATTEMPT_AFTER: Duration = Duration::from_secs(1);
/// How long that one is held at most, unless there is news before.
pub(crate) const ATTEMPT_MAX: Duration = Duration::from_secs(10);

/// What is known of a revision's failed starts.
#[derive(Default)]
pub(crate) struct Troubled(Mutex<State>);

#[derive(Default)]
struct State {
    trouble: Option<Trouble>,
    /// When something was heard, or tried in vain.
    heard: Option<Instant>,
    /// A request is held all the same.
    attempt: bool,
}

impl Troubled {
    /// What the platform says now; `None` also while there are pods. Returns
    /// the kind if it is news: those who wait are to be refused.
    pub(crate) fn take_in(&self, trouble: Option<&Trouble>) -> Option<TroubleKind> {
        let mut state = self.0.lock();
        if state.trouble.as_ref() == trouble {
            return None;
        }
        state.trouble = trouble.cloned();
        state.heard = Some(Instant::now());
        trouble.map(|trouble| trouble.kind)
    }

    /// The answer for a request that is not held. The details name the command
    /// and its last words, so they are for this machine only.
    pub(crate) fn refusal(&self, caller: &Caller) -> Option<Refusal> {
        let state = self.0.lock();
        let trouble = state.trouble.as_ref()?;
        let reason = reason(trouble.kind);
        let near = caller.ip().is_loopback();
        Some(if near { Refusal::because(reason, trouble.text.to_string()) } else { Refusal::new(reason) })
    }

    /// See [`crate::revision::Revision::attempt`].
    pub(crate) fn attempt(&self) -> Option<Attempt<'_>> {
        let mut state = self.0.lock();
        let due = state.heard.is_none_or(|heard| heard.elapsed() >= ATTEMPT_AFTER);
        if state.attempt || !due {
            return None;
        }
        state.attempt = true;
        Some(Attempt(self))
    }
}

/// A request that is held although pods cannot be started.
pub(crate) struct Attempt<'a>(&'a Troubled);

impl Drop for Attempt<'_> {
    fn drop(&mut self) {
        let mut state = self.0.0.lock();
        state.attempt = false;
        state.heard = Some(Instant::now());
    }
}

/// The answer of a queue that is emptied for that kind.
pub(crate) fn refused(kind: TroubleKind) -> Refused {
    match kind {
        TroubleKind::StartFailed => Refused::StartFailed,
        TroubleKind::StartTimeout => Refused::StartTimeout,
    }
}

fn reason(kind: TroubleKind) -> Reason {
    match kind {
        TroubleKind::StartFailed => Reason::StartFailed,
        TroubleKind::StartTimeout => Reason::StartTimeout,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use policy::moment::Moment;

    fn trouble(text: &str) -> Trouble {
        Trouble { kind: TroubleKind::StartFailed, text: text.into(), since: Moment::from_unix_millis(0) }
    }

    #[tokio::test(start_paused = true)]
    async fn one_request_at_a_time_tries_again_and_only_news_refuses_it() {
        let troubled = Troubled::default();
        assert_eq!(troubled.take_in(Some(&trouble("a"))), Some(TroubleKind::StartFailed));
        assert!(troubled.attempt().is_none(), "just heard");
        tokio::time::advance(ATTEMPT_AFTER).await;
        let attempt = troubled.attempt().unwrap();
        assert!(troubled.attempt().is_none(), "one at a time");
        assert_eq!(troubled.take_in(Some(&trouble("a"))), None, "the same again is no news");
        assert_eq!(troubled.take_in(Some(&trouble("b"))), Some(TroubleKind::StartFailed));
        drop(attempt);
        assert!(troubled.attempt().is_none(), "just tried in vain");
        tokio::time::advance(ATTEMPT_AFTER).await;
        assert!(troubled.attempt().is_some());
        assert_eq!(troubled.take_in(None), None);
    }
}
