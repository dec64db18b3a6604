//! What telemetry itself had to let go of.

use std::sync::atomic::{AtomicU64, Ordering};

/// Things dropped since the start: nothing of telemetry may hold a request or
/// fill the memory, so where there is no room something falls, and is counted.
#[derive(Debug, Default)]
pub struct Dropped {
    lines: AtomicU64,
    spans: AtomicU64,
    exports: AtomicU64,
}

impl Dropped {
    /// Lines for standard output.
    pub fn lines(&self) -> u64 {
        self.lines.load(Ordering::Relaxed)
    }

    /// Spans.
    pub fn spans(&self) -> u64 {
        self.spans.load(Ordering::Relaxed)
    }

    /// Messages that no collector took.
    pub fn exports(&self) -> u64 {
        self.exports.load(Ordering::Relaxed)
    }

    pub(crate) fn add_line(&self) {
        self.lines.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn add_spans(&self, count: usize) {
        self.spans.fetch_add(u64::try_from(count).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    pub(crate) fn add_export(&self) {
        self.exports.fetch_add(1, Ordering::Relaxed);
    }
}
