//! Parking a request until a slot is its own: within the wait limit, and only
//! while its client is there.

use crate::Activator;
use crate::full;
use crate::revision::Revision;
use crate::strict;
use crate::trouble::{ATTEMPT_MAX, Attempt};
use http::StatusCode;
use plumbing::conn::Caller;
use plumbing::limiter::{Permit, Waiting};
use plumbing::reason::Reason;
use plumbing::refuse::Refusal;
use plumbing::replay::{Filled, Kept};
use plumbing::wheel::Sleep;
use policy::admit::Refused;
use policy::compat::Compat;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use tokio::time::Instant;

/// A request that has to wait.
#[derive(Clone, Copy)]
pub(crate) struct Waiter<'a> {
    pub(crate) activator: &'a Activator,
    pub(crate) revision: &'a Arc<Revision>,
    pub(crate) caller: &'a Caller,
    /// When it has waited long enough, and by which limit.
    pub(crate) until: (Instant, Reason),
}

impl Waiter<'_> {
    /// Waits at a place that is taken already; `body` is the request's, if it
    /// has one. What is returned is all that there is of it while it waits, so
    /// that it is written out instead of left to an `async` function.
    pub(crate) fn wait(&self, place: Waiting, body: Option<&Kept>) -> Result<Wait<'_>, Refusal> {
        // One at a time is held although pods cannot be started.
        let attempt = match self.revision.trouble(self.caller) {
            Some(trouble) => Some(self.revision.attempt().ok_or(trouble)?),
            None => None,
        };
        let until = match attempt {
            Some(_) => self.until.0.min(Instant::now() + ATTEMPT_MAX),
            None => self.until.0,
        };
        let held = &self.activator.shared.held;
        let held = Held::take(held, self.activator.shared.config.held_max).ok_or(Refusal::new(Reason::QueueFull))?;
        full::look_out(self.revision, &self.caller.worker);
        let too_late = self.caller.worker.wheel().sleep_until(until);
        Ok(Wait { place, too_late, body: body.cloned(), waiter: self, _held: held, _attempt: attempt })
    }

    fn too_late(&self) -> Refusal {
        if let Some(trouble) = self.revision.trouble(self.caller) {
            return trouble;
        }
        let strict = self.activator.shared.config.compat == Compat::Strict;
        let refusal = match self.until.1 {
            Reason::WaitTimeout if self.revision.is_without_room() => Refusal::new(Reason::NoRoom),
            Reason::WaitTimeout if self.revision.is_at_zero() => {
                Refusal::because(Reason::WaitTimeout, "no instance became ready within the wait limit")
            }
            Reason::WaitTimeout => Refusal::new(Reason::WaitTimeout),
            // A limit of the app, to which the wait is charged.
            reason => return strict::timed_out(reason),
        };
        if strict { refusal.with_status(StatusCode::GATEWAY_TIMEOUT) } else { refusal }
    }

    pub(crate) fn refusal(&self, why: Refused) -> Refusal {
        match why {
            Refused::StartFailed | Refused::StartTimeout => {
                self.revision.trouble(self.caller).unwrap_or_else(|| why.into())
            }
            _ => why.into(),
        }
    }
}

/// A request that waits for its slot.
pub(crate) struct Wait<'a> {
    place: Waiting,
    too_late: Sleep,
    /// `None` once no more of it is to be read.
    body: Option<Kept>,
    waiter: &'a Waiter<'a>,
    _held: Held<'a>,
    _attempt: Option<Attempt<'a>>,
}

impl Future for Wait<'_> {
    type Output = Result<Permit, Refusal>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        if let Poll::Ready(outcome) = Pin::new(&mut this.place).poll(cx) {
            return Poll::Ready(outcome.map_err(|why| this.waiter.refusal(why)));
        }
        // It need not wait any longer if its body broke off, or cannot be kept.
        // (One whose client leaves is dropped with all it holds.)
        match this.body.as_ref().map(|body| body.poll_fill(cx)) {
            Some(Poll::Ready(Err(_))) => return Poll::Ready(Err(Refusal::new(Reason::ClientGone))),
            Some(Poll::Ready(Ok(Filled::NoMemory))) => {
                return Poll::Ready(Err(Refusal::new(Reason::HeldBytesFull).closing()));
            }
            Some(Poll::Ready(Ok(Filled::Whole | Filled::Prefix))) => this.body = None,
            Some(Poll::Pending) | None => {}
        }
        Pin::new(&mut this.too_late).poll(cx).map(|()| Err(this.waiter.too_late()))
    }
}

/// Counts a held request of all revisions together.
struct Held<'a>(&'a AtomicUsize);

impl Held<'_> {
    fn take(count: &AtomicUsize, max: usize) -> Option<Held<'_>> {
        let held = Held(count);
        // On refusal the guard itself takes the count back.
        if count.fetch_add(1, Ordering::Relaxed) >= max { None } else { Some(held) }
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
