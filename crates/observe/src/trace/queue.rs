//! Spans on their way to whoever takes them.

use super::span::Span;
use crate::metrics::Dropped;
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;

/// Spans that wait, at most: OpenTelemetry's own bound.
const WAITING: usize = 2048;

/// So many are sent at once, at most.
const BATCH: usize = 512;

/// The first span of a batch waits no longer for others.
const LINGER: Duration = Duration::from_secs(5);

/// Bounded; what does not fit falls and is counted.
pub(crate) struct SpanQueue {
    waiting: Mutex<Vec<Span>>,
    /// The first span has come.
    begun: Notify,
    /// A batch is full.
    full: Notify,
    dropped: Arc<Dropped>,
}

/// Spans that are being sent. Unless something was done with them they go
/// back: the end of the process cuts a message short and sends it anew.
pub(crate) struct Batch<'a> {
    spans: Vec<Span>,
    queue: &'a SpanQueue,
}

impl SpanQueue {
    pub(crate) fn new(dropped: Arc<Dropped>) -> SpanQueue {
        SpanQueue { waiting: Mutex::default(), begun: Notify::new(), full: Notify::new(), dropped }
    }

    /// Takes the spans of one request.
    pub(crate) fn push(&self, spans: Vec<Span>) {
        let mut waiting = self.waiting.lock();
        let before = waiting.len();
        let room = WAITING.saturating_sub(before).min(spans.len());
        let falls = spans.len() - room;
        waiting.extend(spans.into_iter().take(room));
        drop(waiting);
        if falls > 0 {
            self.dropped.add_spans(falls);
        }
        if before == 0 && room > 0 {
            self.begun.notify_one();
        }
        if before < BATCH && before + room >= BATCH {
            self.full.notify_one();
        }
    }

    /// Waits for a span, and then for a batch or for its time. Nothing wakes
    /// up while there are none.
    pub(crate) async fn ready(&self) {
        while self.waiting.lock().is_empty() {
            self.begun.notified().await;
        }
        if self.waiting.lock().len() >= BATCH {
            return;
        }
        tokio::select! {
            () = self.full.notified() => {}
            () = tokio::time::sleep(LINGER) => {}
        }
    }

    /// Takes a batch, if anything waits.
    pub(crate) fn take(&self) -> Option<Batch<'_>> {
        let mut waiting = self.waiting.lock();
        let count = waiting.len().min(BATCH);
        let spans: Vec<Span> = waiting.drain(..count).collect();
        (!spans.is_empty()).then_some(Batch { spans, queue: self })
    }
}

impl Batch<'_> {
    pub(crate) fn spans(&self) -> &[Span] {
        &self.spans
    }

    /// They have been taken, or never will be.
    pub(crate) fn settle(mut self, taken: bool) {
        if !taken {
            self.queue.dropped.add_spans(self.spans.len());
        }
        self.spans.clear();
    }
}

impl Drop for Batch<'_> {
    fn drop(&mut self) {
        if self.spans.is_empty() {
            return;
        }
        let mut waiting = self.queue.waiting.lock();
        self.spans.append(&mut waiting);
        let falls = self.spans.len().saturating_sub(WAITING);
        self.spans.truncate(WAITING);
        self.queue.dropped.add_spans(falls);
        *waiting = std::mem::take(&mut self.spans);
    }
}
