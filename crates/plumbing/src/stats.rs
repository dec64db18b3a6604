//! The link that stats travel on: a bounded channel of batches, newest first
//! to be kept. A transport is a task that pumps between a half and a wire; in
//! one process the two halves are simply joined.

use policy::stat::StatBatch;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::mpsc;

/// Batches that may be on their way. One sender reports once a second, so
/// this is a minute of a receiver that stands still, for 16 senders.
const BATCHES_MAX: usize = 1024;

/// The sending half. Clones share it.
#[derive(Clone)]
pub struct StatSink {
    batches: mpsc::Sender<StatBatch>,
    dropped: Arc<AtomicU64>,
}

/// The receiving half.
pub struct StatSource {
    batches: mpsc::Receiver<StatBatch>,
    dropped: Arc<AtomicU64>,
}

/// A link within one process.
pub fn link() -> (StatSink, StatSource) {
    let (send, receive) = mpsc::channel(BATCHES_MAX);
    let dropped = Arc::new(AtomicU64::new(0));
    (StatSink { batches: send, dropped: dropped.clone() }, StatSource { batches: receive, dropped })
}

impl StatSink {
    /// Sends a batch, never waits. When the receiver has stood still for so
    /// long that the link is full, the batch is dropped and counted: it would
    /// be stale by the time it is read. False then.
    pub fn send(&self, batch: StatBatch) -> bool {
        let taken = self.batches.try_send(batch).is_ok();
        if !taken {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
        taken
    }
}

impl StatSource {
    /// The next batch; `None` once all senders are gone.
    pub async fn next(&mut self) -> Option<StatBatch> {
        self.batches.recv().await
    }

    /// A batch that is there already.
    pub fn try_next(&mut self) -> Option<StatBatch> {
        self.batches.try_recv().ok()
    }

    /// Batches that were dropped because the link was full.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }
}
