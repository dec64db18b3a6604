//! What became of the requests: each is counted once, as answered or as lost.

use hdrhistogram::Histogram;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Shared by those who ask and those who show.
#[derive(Debug)]
pub(crate) struct Tally {
    counts: Mutex<Counts>,
}

/// The counts at one moment.
#[derive(Clone, Debug)]
pub(crate) struct Counts {
    /// Requests whose time has come.
    pub(crate) offered: u64,
    /// Those with an answer of 200 to 299, read to its end.
    pub(crate) answered: u64,
    /// Why the others have none, and how many.
    pub(crate) lost: BTreeMap<String, u64>,
    /// When the last answer ended.
    pub(crate) last_answer: Option<Instant>,
    /// The longest wait for a start that an answer tells of: that of the
    /// request that woke the service.
    pub(crate) cold_start: Option<Duration>,
    latency: Histogram<u64>,
}

/// From when a request was due to the end of its answer.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Latency {
    pub(crate) half: Duration,
    pub(crate) most: Duration,
    pub(crate) worst: Duration,
}

/// Longest latency told apart, in microseconds: two minutes.
const LATENCY_MAX_MICROS: u64 = 120_000_000;

impl Tally {
    /// Nothing yet.
    pub(crate) fn new() -> anyhow::Result<Tally> {
        let counts = Counts {
            offered: 0,
            answered: 0,
            lost: BTreeMap::new(),
            last_answer: None,
            cold_start: None,
            latency: Histogram::new_with_bounds(1, LATENCY_MAX_MICROS, 3)?,
        };
        Ok(Tally { counts: Mutex::new(counts) })
    }

    pub(crate) fn offer(&self) {
        self.counts().offered += 1;
    }

    /// The answer to a request that was due at `due` has ended.
    pub(crate) fn answer(&self, due: Instant, cold_start: Option<Duration>) {
        let now = Instant::now();
        let mut counts = self.counts();
        counts.answered += 1;
        counts.last_answer = Some(now);
        counts.cold_start = counts.cold_start.max(cold_start);
        let micros = u64::try_from(now.saturating_duration_since(due).as_micros()).unwrap_or(u64::MAX);
        counts.latency.saturating_record(micros);
    }

    pub(crate) fn lose(&self, why: String) {
        *self.counts().lost.entry(why).or_default() += 1;
    }

    /// As it is now.
    pub(crate) fn read(&self) -> Counts {
        self.counts().clone()
    }

    // Counts stay true whatever happened to a thread that held them.
    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Counts {
    /// Requests without a good answer.
    pub(crate) fn losses(&self) -> u64 {
        self.lost.values().sum()
    }

    pub(crate) fn latency(&self) -> Latency {
        let of = |micros| Duration::from_micros(micros);
        Latency {
            half: of(self.latency.value_at_quantile(0.5)),
            most: of(self.latency.value_at_quantile(0.99)),
            worst: of(self.latency.max()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latency_counts_from_when_the_request_was_due() {
        let tally = Tally::new().unwrap();
        let late = Instant::now().checked_sub(Duration::from_secs(2)).unwrap();
        tally.offer();
        tally.answer(late, Some(Duration::from_millis(170)));
        tally.answer(Instant::now(), Some(Duration::from_millis(9)));
        tally.lose("503".to_owned());
        let counts = tally.read();
        assert!(counts.latency().worst >= Duration::from_secs(2));
        assert_eq!((counts.answered, counts.losses()), (2, 1));
        assert_eq!(counts.cold_start, Some(Duration::from_millis(170)));
    }
}
