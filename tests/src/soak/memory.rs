//! Memory over time, in two windows: early, once it is warm, and at the end.

use crate::floor::processes::resident_bytes;
use std::time::Duration;

pub(crate) struct Memory {
    warm: Duration,
    window: Duration,
    time: Duration,
    early: Vec<u64>,
    late: Vec<u64>,
    most: u64,
}

impl Memory {
    pub(crate) fn new(warm: Duration, time: Duration) -> Memory {
        let window = (time / 8).min(Duration::from_secs(60));
        Memory { warm, window, time, early: Vec::new(), late: Vec::new(), most: 0 }
    }

    pub(crate) fn look(&mut self, at: Duration, pid: i32) {
        let bytes = resident_bytes(pid).unwrap_or_default();
        self.most = self.most.max(bytes);
        if at >= self.warm && at < self.warm + self.window {
            self.early.push(bytes);
        }
        if at + self.window >= self.time {
            self.late.push(bytes);
        }
    }

    pub(crate) fn last(&mut self, pid: i32) {
        self.look(self.time, pid);
    }

    pub(crate) fn early(&self) -> u64 {
        median(&self.early)
    }

    pub(crate) fn late(&self) -> u64 {
        median(&self.late)
    }

    pub(crate) fn most(&self) -> u64 {
        self.most
    }
}

fn median(all: &[u64]) -> u64 {
    let mut all = all.to_vec();
    all.sort_unstable();
    all.get(all.len() / 2).copied().unwrap_or_default()
}
