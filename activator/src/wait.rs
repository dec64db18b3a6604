//! Parking a request until a slot is its own: within the wait limit, and only
//! while its client is there.

use crate::Activator;
use crate::full;
use crate::revision::Revision;
use crate::strict;
use crate::trouble::ATTEMPT_MAX;
use http::StatusCode;
use plumbing::conn::Caller;
use plumbing::limiter::{Asked, Permit, Waiting};
use plumbing::reason::Reason;
use plumbing::refuse::Refusal;
use plumbing::replay::{Filled, Kept};
use policy::admit::Refused;
use policy::compat::Compat;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;
use tokio::time::Instant;

/// A request that may have to wait.
pub(crate) struct Waiter<'a> {
    pub(crate) activator: &'a Activator,
    pub(crate) revision: &'a Arc<Revision>,
    pub(crate) caller: &'a Caller,
    /// Its body, if it has one.
    pub(crate) body: Option<&'a Kept>,
    /// When it has waited long enough, and by which limit.
    pub(crate) until: (Instant, Reason),
}

impl Waiter<'_> {
    /// A slot, at once or after waiting.
    pub(crate) async fn slot(&self) -> Result<Permit, Refusal> {
        match self.revision.limiter.ask() {
            Asked::Go(permit) => Ok(permit),
            Asked::Refuse(why) => Err(self.refusal(why)),
            Asked::Wait(waiting) => self.wait(waiting).await,
        }
    }

    /// Waits at a place that is taken already.
    pub(crate) async fn wait(&self, waiting: Waiting) -> Result<Permit, Refusal> {
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
        let _held = Held::take(held, self.activator.shared.config.held_max).ok_or(Refusal::new(Reason::QueueFull))?;
        full::look_out(self.revision, &self.caller.worker);
        let mut waiting = pin!(waiting);
        let mut too_late = pin!(self.caller.worker.wheel().sleep_until(until));
        let mut client_gone = pin!(self.client_gone());
        std::future::poll_fn(|cx| {
            if let Poll::Ready(outcome) = waiting.as_mut().poll(cx) {
                return Poll::Ready(outcome.map_err(|why| self.refusal(why)));
            }
            if let Poll::Ready(refusal) = client_gone.as_mut().poll(cx) {
                return Poll::Ready(Err(refusal));
            }
            too_late.as_mut().poll(cx).map(|()| Err(self.too_late()))
        })
        .await
    }

    /// Ready when the request need not wait any longer: its body broke off, or
    /// cannot be kept. (One whose client leaves is dropped with all it holds.)
    async fn client_gone(&self) -> Refusal {
        let Some(body) = self.body else { return std::future::pending().await };
        match std::future::poll_fn(|cx| body.poll_fill(cx)).await {
            Err(_) => Refusal::new(Reason::ClientGone),
            Ok(Filled::NoMemory) => Refusal::new(Reason::HeldBytesFull).closing(),
            Ok(Filled::Whole | Filled::Prefix) => std::future::pending().await,
        }
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

    fn refusal(&self, why: Refused) -> Refusal {
        match why {
            Refused::StartFailed | Refused::StartTimeout => {
                self.revision.trouble(self.caller).unwrap_or_else(|| why.into())
            }
            _ => why.into(),
        }
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
