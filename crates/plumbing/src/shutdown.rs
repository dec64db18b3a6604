//! Stopping, in two stages that never mix: take no new work, then stop.

use std::future::Future;
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
