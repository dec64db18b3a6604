//! All pods that this process asks for their readiness, whatever their
//! revision: how many they are, and how many questions are out.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Questions out at a time, of all revisions.
const PROBES_MAX: usize = 256;

#[derive(Debug)]
pub(crate) struct Crowd {
    asked: AtomicUsize,
    leaves: Arc<Semaphore>,
}

/// The right to have one question out.
#[derive(Debug)]
pub(crate) struct Leave(#[expect(dead_code, reason = "kept until it is dropped")] OwnedSemaphorePermit);

impl Crowd {
    pub(crate) fn new() -> Arc<Crowd> {
        Arc::new(Crowd { asked: AtomicUsize::new(0), leaves: Arc::new(Semaphore::new(PROBES_MAX)) })
    }

    /// What one revision adds.
    pub(crate) fn count(self: &Arc<Crowd>) -> Counted {
        Counted { crowd: self.clone(), pods: 0 }
    }

    /// `None` while as many are out as may be.
    pub(crate) fn leave(&self) -> Option<Leave> {
        self.leaves.clone().try_acquire_owned().ok().map(Leave)
    }

    /// Ready when one more may be out.
    pub(crate) async fn wait(&self) {
        let _ = self.leaves.acquire().await;
    }
}

/// The pods that one revision asks.
#[derive(Debug)]
pub(crate) struct Counted {
    crowd: Arc<Crowd>,
    pods: usize,
}

impl Counted {
    /// So many now; returns how many all ask together.
    pub(crate) fn set(&mut self, pods: usize) -> usize {
        let before = std::mem::replace(&mut self.pods, pods);
        let all = &self.crowd.asked;
        if pods >= before {
            all.fetch_add(pods - before, Ordering::Relaxed) + (pods - before)
        } else {
            all.fetch_sub(before - pods, Ordering::Relaxed) - (before - pods)
        }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.set(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pods_of_all_revisions_are_counted_together() {
        let crowd = Crowd::new();
        let (mut one, mut two) = (crowd.count(), crowd.count());
        assert_eq!((one.set(3), two.set(4), one.set(1)), (3, 7, 5));
        drop(two);
        assert_eq!(one.set(1), 1);
    }

    #[tokio::test]
    async fn only_so_many_questions_are_out() {
        let crowd = Crowd::new();
        let mut leaves: Vec<Leave> = std::iter::from_fn(|| crowd.leave()).collect();
        assert_eq!(leaves.len(), PROBES_MAX);
        leaves.pop();
        crowd.wait().await;
        assert!(crowd.leave().is_some());
    }
}
