//! All pods that this process asks for their readiness, whatever their
//! revision: how many they are, and how many questions are out.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Questions out at a time, of all revisions: these,
const PROBES_MAX: usize = 192;
/// and these of revisions that have only a few out, so that those with many
/// silent pods do not keep the others waiting.
const RESERVED: usize = 64;
const FEW: usize = 8;

#[derive(Debug)]
pub(crate) struct Crowd {
    asked: AtomicUsize,
    leaves: Arc<Semaphore>,
    reserved: Arc<Semaphore>,
}

impl Crowd {
    pub(crate) fn new() -> Arc<Crowd> {
        let leaves = |count| Arc::new(Semaphore::new(count));
        Arc::new(Crowd { asked: AtomicUsize::new(0), leaves: leaves(PROBES_MAX), reserved: leaves(RESERVED) })
    }

    /// What one revision adds.
    pub(crate) fn member(self: &Arc<Crowd>) -> Member {
        Member { crowd: self.clone(), asked: AtomicUsize::new(0), out: Arc::default() }
    }
}

/// The right to have one question out.
#[derive(Debug)]
pub(crate) struct Leave {
    _permit: OwnedSemaphorePermit,
    out: Arc<AtomicUsize>,
}

impl Drop for Leave {
    fn drop(&mut self) {
        self.out.fetch_sub(1, Ordering::Relaxed);
    }
}

/// What one revision asks.
#[derive(Debug)]
pub(crate) struct Member {
    crowd: Arc<Crowd>,
    asked: AtomicUsize,
    out: Arc<AtomicUsize>,
}

impl Member {
    /// It asks so many pods now; returns how many all ask together.
    pub(crate) fn asks(&self, pods: usize) -> usize {
        let before = self.asked.swap(pods, Ordering::Relaxed);
        // The sum wraps back: what is taken away had been added.
        let change = pods.wrapping_sub(before);
        self.crowd.asked.fetch_add(change, Ordering::Relaxed).wrapping_add(change)
    }

    /// `None` while as many are out as may be.
    pub(crate) fn leave(&self) -> Option<Leave> {
        let reserved = if self.has_few() { self.crowd.reserved.clone().try_acquire_owned().ok() } else { None };
        let permit = reserved.or_else(|| self.crowd.leaves.clone().try_acquire_owned().ok())?;
        Some(self.note(permit))
    }

    /// The same when one more may be out; whoever waits longest is first.
    pub(crate) async fn next_leave(&self) -> Option<Leave> {
        let permit = if self.has_few() {
            tokio::select! {
                permit = self.crowd.reserved.clone().acquire_owned() => permit,
                permit = self.crowd.leaves.clone().acquire_owned() => permit,
            }
        } else {
            self.crowd.leaves.clone().acquire_owned().await
        };
        permit.ok().map(|permit| self.note(permit))
    }

    fn has_few(&self) -> bool {
        self.out.load(Ordering::Relaxed) < FEW
    }

    fn note(&self, permit: OwnedSemaphorePermit) -> Leave {
        self.out.fetch_add(1, Ordering::Relaxed);
        Leave { _permit: permit, out: self.out.clone() }
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.asks(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::pin::pin;
    use std::task::Poll;

    #[test]
    fn the_pods_of_all_revisions_are_counted_together() {
        let crowd = Crowd::new();
        let (one, two) = (crowd.member(), crowd.member());
        assert_eq!((one.asks(3), two.asks(4), one.asks(1)), (3, 7, 5));
        drop(two);
        assert_eq!(one.asks(1), 1);
    }

    #[tokio::test]
    async fn only_so_many_questions_are_out_and_whoever_has_a_few_finds_some_left() {
        let crowd = Crowd::new();
        let (many, few, late) = (crowd.member(), crowd.member(), crowd.member());
        let mut leaves: Vec<Leave> = std::iter::from_fn(|| many.leave()).collect();
        assert_eq!(leaves.len(), PROBES_MAX + FEW);
        let of_few: Vec<Leave> = std::iter::from_fn(|| few.leave()).collect();
        assert_eq!(of_few.len(), FEW);
        let mut first = pin!(many.next_leave());
        let pending = std::future::poll_fn(|cx| Poll::Ready(first.as_mut().poll(cx).is_pending())).await;
        assert!(pending && late.leave().is_some());
        leaves.pop();
        assert!(few.leave().is_none(), "it is the one's that waits");
        let leave = first.await.unwrap();
        drop(leave);
        assert!(few.next_leave().await.is_some());
    }
}
