//! One check at a time: whoever asks while one runs gets its result.

use parking_lot::Mutex;
use plumbing::shutdown::Shutdown;
use plumbing::worker::Worker;
use std::future::Future;
use std::sync::Arc;
use tokio::sync::watch;

/// The check that runs, if one does. Clones share it.
#[derive(Clone, Default)]
pub(crate) struct Share {
    running: Arc<Mutex<Option<watch::Receiver<Option<bool>>>>>,
}

impl Share {
    /// Joins the check that runs, or begins one. It runs on `worker` and does
    /// not end when the caller does: the next one wants its result. It fails
    /// when `end` drains, since nobody needs it then.
    pub(crate) async fn ask<F>(&self, worker: &Worker, end: &Shutdown, check: impl FnOnce() -> F) -> bool
    where
        F: Future<Output = bool> + Send + 'static,
    {
        let mut result = self.join(worker, end, check);
        // A check that was dropped has not passed.
        let passed = result.wait_for(Option::is_some).await;
        passed.is_ok_and(|passed| *passed == Some(true))
    }

    fn join<F>(&self, worker: &Worker, end: &Shutdown, check: impl FnOnce() -> F) -> watch::Receiver<Option<bool>>
    where
        F: Future<Output = bool> + Send + 'static,
    {
        let mut running = self.running.lock();
        if let Some(result) = &*running {
            return result.clone();
        }
        let (tell, result) = watch::channel(None);
        *running = Some(result.clone());
        drop(running);
        let (check, end) = (check(), end.clone());
        let done = Done(self.clone());
        worker.spawn(async move {
            let passed = tokio::select! { passed = check => passed, () = end.draining() => false };
            drop(done);
            let _ = tell.send(Some(passed));
        });
        result
    }
}

/// Forgets the check however it ends, so that the next caller begins anew.
struct Done(Share);

impl Drop for Done {
    fn drop(&mut self) {
        *self.0.running.lock() = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plumbing::fds::Budget;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    #[tokio::test(start_paused = true)]
    async fn callers_share_one_check_and_those_who_leave_do_not_end_it() {
        let end = Shutdown::new();
        let worker = Worker::here(&end, Budget::unlimited());
        let share = Share::default();
        let checks = Arc::new(AtomicUsize::new(0));
        let check = || {
            checks.fetch_add(1, Ordering::SeqCst);
            async {
                tokio::time::sleep(Duration::from_millis(500)).await;
                true
            }
        };
        let gone = tokio::time::timeout(Duration::from_millis(100), share.ask(&worker, &end, check));
        assert!(gone.await.is_err());
        let (one, two) = tokio::join!(share.ask(&worker, &end, check), share.ask(&worker, &end, check));
        assert_eq!((one, two, checks.load(Ordering::SeqCst)), (true, true, 1));
        assert!(share.ask(&worker, &end, check).await);
        assert_eq!(checks.load(Ordering::SeqCst), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn the_end_and_a_panic_fail_a_check_and_the_next_begins_anew() {
        let end = Shutdown::new();
        let worker = Worker::here(&end, Budget::unlimited());
        let share = Share::default();
        assert!(!share.ask(&worker, &end, || async { panic!("a check that fails of itself") }).await);
        assert!(share.ask(&worker, &end, || async { true }).await);
        end.drain();
        assert!(!share.ask(&worker, &end, std::future::pending).await);
    }
}
