//! How long it takes to decide on all revisions.

use metrics::{Gauge, gauge};
use std::time::{Duration, Instant};

/// From a tick to the decision on the last revision, in seconds.
const TICK: &str = "zeroscale_autoscaler_tick_seconds";

/// The last round of decisions over all revisions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tick {
    /// How many there were before it.
    pub number: u64,
    /// Revisions decided on.
    pub revisions: usize,
    /// From its beginning to its end. What came in between is in it: stats,
    /// and a platform that takes no orders.
    pub took: Duration,
    /// The decisions alone.
    pub deciding: Duration,
    /// The longest time for which everything else had to wait.
    pub longest: Duration,
}

#[derive(Default)]
pub(crate) struct Pace {
    last: Tick,
    now: Option<(Instant, Tick)>,
    gauge: Option<Gauge>,
}

impl Pace {
    pub(crate) fn last(&self) -> Tick {
        self.last
    }

    pub(crate) fn begin(&mut self) {
        let number = self.last.number + 1;
        self.now = Some((Instant::now(), Tick { number, ..Tick::default() }));
    }

    /// Some were decided on.
    pub(crate) fn slice(&mut self, revisions: usize, took: Duration) {
        if let Some((_, tick)) = &mut self.now {
            tick.revisions += revisions;
            tick.deciding += took;
            tick.longest = tick.longest.max(took);
        }
    }

    /// None is left.
    pub(crate) fn end(&mut self) {
        if let Some((since, mut tick)) = self.now.take() {
            tick.took = since.elapsed();
            self.last = tick;
            self.gauge.get_or_insert_with(|| gauge!(TICK)).set(tick.took.as_secs_f64());
        }
    }
}
