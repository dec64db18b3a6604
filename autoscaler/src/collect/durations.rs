//! How long rounds took: a histogram of one service's, which goes with it.

use std::fmt::Write;
use std::time::Duration;

/// Upper bounds in seconds, the reference's.
const BOUNDS: [f64; 14] = [0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0];

#[derive(Clone, Debug, Default)]
pub(crate) struct Durations {
    /// How many were within each bound and beyond the one before.
    within: [u64; BOUNDS.len()],
    count: u64,
    seconds: f64,
}

impl Durations {
    pub(crate) fn note(&mut self, took: Duration) {
        let seconds = took.as_secs_f64();
        if let Some(place) = BOUNDS.iter().position(|bound| seconds <= *bound) {
            self.within[place] += 1;
        }
        self.count += 1;
        self.seconds += seconds;
    }

    pub(crate) fn add(&mut self, other: &Durations) {
        self.within.iter_mut().zip(other.within).for_each(|(all, more)| *all += more);
        self.count += other.count;
        self.seconds += other.seconds;
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// As text, for Prometheus.
    pub(crate) fn write(&self, out: &mut String, name: &str, labels: &str) {
        let mut sum = 0;
        for (within, bound) in self.within.iter().zip(BOUNDS) {
            sum += within;
            let _ = writeln!(out, "{name}_bucket{{{labels},le=\"{bound}\"}} {sum}");
        }
        let count = self.count;
        let _ = writeln!(out, "{name}_bucket{{{labels},le=\"+Inf\"}} {count}");
        let _ = writeln!(out, "{name}_sum{{{labels}}} {}\n{name}_count{{{labels}}} {count}", self.seconds);
    }
}
