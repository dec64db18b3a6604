//! Stopping, in two stages that never mix: take no new work, then stop.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Handed to everything that runs. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Shutdown {
    drain: CancellationToken,
    stop: CancellationToken,
    tasks: TaskTracker,
}

impl Shutdown {
    /// Nothing asked for yet.
    pub fn new() -> Shutdown {
        Shutdown::default()
    }

    /// Whose first stage is asked for by somebody else's token.
    pub fn with_drain(drain: CancellationToken) -> Shutdown {
        Shutdown { drain, ..Shutdown::default() }
    }

    /// Asks for the first stage: finish what is there, take nothing new.
    pub fn drain(&self) {
        self.drain.cancel();
    }

    /// Asks for the second stage: end now.
    pub fn stop(&self) {
        self.drain.cancel();
        self.stop.cancel();
    }

    /// True once the first stage was asked for.
    pub fn is_draining(&self) -> bool {
        self.drain.is_cancelled()
    }

    /// Ready once the first stage was asked for.
    pub async fn draining(&self) {
        self.drain.cancelled().await;
    }

    /// Ready once the second stage was asked for.
    pub async fn stopping(&self) {
        self.stop.cancelled().await;
    }

    /// The first stage, for whoever looks at it often; `wait` is what
    /// [`Shutdown::draining`] gives.
    pub fn draining_seldom<'s, F>(&'s self, wait: Pin<&'s mut F>) -> Seldom<'s, F> {
        Seldom { token: &self.drain, wait, asked_by: None }
    }

    /// Runs a task that [`Shutdown::finished`] waits for.
    pub fn spawn<F>(&self, task: F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.tasks.spawn(task);
    }

    /// Counts a future that somebody else runs among the tasks.
    pub fn track<F: Future>(&self, task: F) -> impl Future<Output = F::Output> + use<F> {
        self.tasks.track_future(task)
    }

    /// Ready once no tracked task is left. Call it after [`Shutdown::drain`].
    pub async fn finished(&self) {
        self.tasks.close();
        self.tasks.wait().await;
    }

    /// Tracked tasks that still run.
    pub fn unfinished(&self) -> usize {
        self.tasks.len()
    }
}

/// A stage that is looked at with each step of a request: the list of those who
/// wait for it is not touched again for the same waker.
pub struct Seldom<'s, F> {
    token: &'s CancellationToken,
    wait: Pin<&'s mut F>,
    asked_by: Option<Waker>,
}

impl<F: Future<Output = ()>> Future for Seldom<'_, F> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.token.is_cancelled() {
            return Poll::Ready(());
        }
        if self.asked_by.as_ref().is_some_and(|waker| waker.will_wake(cx.waker())) {
            return Poll::Pending;
        }
        self.asked_by = Some(cx.waker().clone());
        self.wait.as_mut().poll(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_stage_that_is_looked_at_often_wakes_whoever_looked_last() {
        let shutdown = Shutdown::new();
        let mut wait = Box::pin(shutdown.draining());
        let mut stage = shutdown.draining_seldom(wait.as_mut());
        let noop = &mut Context::from_waker(Waker::noop());
        assert!(Pin::new(&mut stage).poll(noop).is_pending());
        let waits = async {
            std::future::poll_fn(|cx| {
                let first = Pin::new(&mut stage).poll(cx);
                if first.is_pending() { Pin::new(&mut stage).poll(cx) } else { first }
            })
            .await;
        };
        let later = async {
            tokio::task::yield_now().await;
            shutdown.drain();
        };
        tokio::join!(waits, later);
    }
}
