//! Is the client still there? Watched while its request is served.

use super::limits::GONE_STEP;
use super::link::Link;
use crate::wheel::{Sleep, Wheel};
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

/// Why a client's presence is in doubt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doubt {
    /// It has ended its direction: all of the request is here, and it may
    /// still wait for the answer, or have closed.
    Ended,
    /// More of its request has come than is being read. Its end may stand
    /// behind that, unseen.
    Backlog {
        /// The end was seen all the same: the window was open for it.
        ended: bool,
    },
}

/// What the owner of a connection knows of a client that is in doubt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guess {
    /// It has closed its socket.
    Gone,
    /// It has not.
    Here,
    /// Only an answer would show: a peer that has closed refuses it.
    Unknown,
}

/// What watching the socket has shown.
pub(super) enum Seen {
    Gone,
    Doubt(Doubt),
}

/// Watches one client. What the socket shows at once is noticed at once; what
/// it does not show is asked for every [`GONE_STEP`].
pub(super) struct Presence<'a, G> {
    link: &'a Link,
    wheel: &'a Wheel,
    gone: &'a G,
    step: Option<Sleep>,
    knocked: bool,
}

impl<'a, G: Fn(Doubt) -> Guess> Presence<'a, G> {
    pub(super) fn new(link: &'a Link, wheel: &'a Wheel, gone: &'a G) -> Self {
        Presence { link, wheel, gone, step: None, knocked: false }
    }

    /// Ready once the client is gone.
    pub(super) fn poll_gone(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let doubt = match self.link.poll_watch(cx) {
            Poll::Pending => {
                self.step = None;
                return Poll::Pending;
            }
            Poll::Ready(Seen::Gone) => return Poll::Ready(()),
            Poll::Ready(Seen::Doubt(doubt)) => doubt,
        };
        if doubt == Doubt::Ended && self.step.is_none() && self.is_gone(doubt, cx) {
            return Poll::Ready(());
        }
        loop {
            let step = self.step.get_or_insert_with(|| self.wheel.sleep(GONE_STEP));
            if Pin::new(step).poll(cx).is_pending() {
                return Poll::Pending;
            }
            self.step = None;
            let doubt = match (self.link.state().look(), doubt) {
                (Some(Seen::Gone), _) => return Poll::Ready(()),
                (Some(Seen::Doubt(seen)), Doubt::Backlog { .. }) => seen,
                _ => doubt,
            };
            if self.is_gone(doubt, cx) {
                return Poll::Ready(());
            }
        }
    }

    fn is_gone(&mut self, doubt: Doubt, cx: &mut Context<'_>) -> bool {
        match (self.gone)(doubt) {
            Guess::Gone => true,
            Guess::Here => false,
            Guess::Unknown => {
                let ended = matches!(doubt, Doubt::Ended | Doubt::Backlog { ended: true });
                if ended && !self.knocked {
                    self.knocked = true;
                    return self.link.state().poll_knock(cx).is_err();
                }
                false
            }
        }
    }
}
