//! What happened in a history: one line for each thing, all of them in one
//! hash, the last of them kept for the report.

use std::collections::VecDeque;
use std::fmt::{Arguments, Write};

/// Lines that a report shows.
pub(super) const LINES_IN_REPORT: usize = 30;

/// The record of one history.
#[derive(Debug)]
pub(super) struct Trace {
    hash: u64,
    kept: VecDeque<String>,
    keep: usize,
}

impl Trace {
    /// Keeps the last `keep` lines.
    pub(super) fn new(keep: usize) -> Trace {
        const FNV_OFFSET: u64 = 0xCBF2_9CE4_8422_2325;
        Trace { hash: FNV_OFFSET, kept: VecDeque::new(), keep }
    }

    /// Adds a line.
    pub(super) fn line(&mut self, text: Arguments<'_>) {
        const FNV_PRIME: u64 = 0x0000_0100_0000_01B3;
        // The oldest line's memory is used again.
        let mut line = if self.kept.len() < self.keep { None } else { self.kept.pop_front() }.unwrap_or_default();
        line.clear();
        let written = line.write_fmt(text);
        debug_assert!(written.is_ok(), "a string takes whatever is written");
        for byte in line.bytes().chain([b'\n']) {
            self.hash = (self.hash ^ u64::from(byte)).wrapping_mul(FNV_PRIME);
        }
        self.kept.push_back(line);
    }

    /// A number that stands for all lines.
    pub(super) fn hash(&self) -> u64 {
        self.hash
    }

    /// The lines that were kept, oldest first.
    pub(super) fn into_lines(self) -> Vec<String> {
        self.kept.into()
    }
}
