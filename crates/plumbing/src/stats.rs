//! The link that stats travel on: a bounded channel of batches, newest first
//! to be kept. A transport is a task that pumps between a half and a wire; in
//! one process the two halves are simply joined.

use policy::stat::StatBatch;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use tokio::sync::mpsc;

/// Batches that may be on their way. One sender reports once a second, so
/// this is a minute of a receiver that stands still, for 16 senders.
const BATCHES_MAX: usize = 1024;

/// The sending half. Clones share it.
#[derive(Clone)]
pub struct StatSink {
    batches: mpsc::UnboundedSender<StatBatch>,
    shared: Arc<Shared>,
}

/// The receiving half.
pub struct StatSource {
    batches: mpsc::UnboundedReceiver<StatBatch>,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    /// Batches on their way that are no pokes.
    reports: AtomicUsize,
    dropped: AtomicU64,
}

/// A link within one process.
pub fn link() -> (StatSink, StatSource) {
    let (send, receive) = mpsc::unbounded_channel();
    let shared = Arc::new(Shared::default());
    (StatSink { batches: send, shared: shared.clone() }, StatSource { batches: receive, shared })
}

impl StatSink {
    /// Sends a batch, never waits. When the receiver has stood still for so
    /// long that the link is full, a report is dropped and counted: it would
    /// be stale by the time it is read; false then. A poke never is: somebody
    /// waits, and there is at most one for each revision and second.
    pub fn send(&self, batch: StatBatch) -> bool {
        if !batch.poke && self.shared.reports.fetch_add(1, Ordering::Relaxed) >= BATCHES_MAX {
            self.shared.reports.fetch_sub(1, Ordering::Relaxed);
            self.shared.dropped.fetch_add(1, Ordering::Relaxed);
            return false;
        }
        // Without a receiver nobody is left to be told.
        self.batches.send(batch).is_ok()
    }

    /// True while a report would be taken. Whoever can hold its sender back
    /// does so rather than have a report dropped.
    pub fn has_room(&self) -> bool {
        self.shared.reports.load(Ordering::Relaxed) < BATCHES_MAX
    }
}

impl StatSource {
    /// The next batch; `None` once all senders are gone.
    pub async fn next(&mut self) -> Option<StatBatch> {
        let batch = self.batches.recv().await;
        self.taken(batch.as_ref());
        batch
    }

    /// The next batch, if one is there.
    pub fn try_next(&mut self) -> Option<StatBatch> {
        let batch = self.batches.try_recv().ok();
        self.taken(batch.as_ref());
        batch
    }

    fn taken(&self, batch: Option<&StatBatch>) {
        if batch.is_some_and(|batch| !batch.poke) {
            self.shared.reports.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Batches that were dropped because the link was full.
    pub fn dropped(&self) -> u64 {
        self.shared.dropped.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use policy::moment::Moment;

    #[tokio::test]
    async fn reports_are_bounded_and_pokes_are_never_dropped() {
        let (sink, mut source) = link();
        let batch = |poke| StatBatch { at: Moment::default(), stats: Vec::new(), poke };
        for _ in 0..BATCHES_MAX + 5 {
            sink.send(batch(false));
            sink.send(batch(true));
        }
        assert_eq!(source.dropped(), 5);
        drop(sink);
        let (mut pokes, mut reports) = (0, 0);
        while let Some(batch) = source.next().await {
            if batch.poke { pokes += 1 } else { reports += 1 }
        }
        assert_eq!((pokes, reports), (BATCHES_MAX + 5, BATCHES_MAX));
    }
}
