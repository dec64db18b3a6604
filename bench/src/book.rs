//! What was measured, by row, measure, peer and round.

use crate::peers::Peer;
use crate::summary::Summary;
use serde::Serialize;

/// Everything of one run.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Book {
    pub(crate) series: Vec<Series>,
    /// Rounds that were not counted, and why.
    pub(crate) dropped: Vec<String>,
    /// What could not be measured, and why.
    pub(crate) missing: Vec<String>,
    /// What else is worth knowing.
    pub(crate) notes: Vec<String>,
}

/// One measure of one peer; rounds that were not counted are `None`.
#[derive(Debug, Serialize)]
pub(crate) struct Series {
    pub(crate) row: &'static str,
    pub(crate) measure: &'static str,
    pub(crate) unit: &'static str,
    pub(crate) peer: Peer,
    pub(crate) rounds: Vec<Option<f64>>,
}

/// What a figure is called and counted in.
pub(crate) type Measure = (&'static str, &'static str);

/// CPU time of the proxy for a request, with as many requests as it takes.
pub(crate) const CPU_SATURATED: Measure = ("CPU per request, saturated", "us");
/// The same at a rate that is the same for all.
pub(crate) const CPU_OFFERED: Measure = ("CPU per request, equal rate", "us");
/// The part of it outside the kernel.
pub(crate) const USER_SATURATED: Measure = ("user CPU per request, saturated", "us");
pub(crate) const RATE: Measure = ("requests a second, saturated", "1/s");
pub(crate) const P99_OFFERED: Measure = ("p99, equal rate", "us");

impl Book {
    pub(crate) fn add(&mut self, row: &'static str, measure: Measure, peer: Peer, round: usize, value: f64) {
        let at = self.series.iter().position(|series| series.is(row, measure.0, peer));
        let at = at.unwrap_or_else(|| {
            let (measure, unit) = measure;
            self.series.push(Series { row, measure, unit, peer, rounds: Vec::new() });
            self.series.len() - 1
        });
        let rounds = &mut self.series[at].rounds;
        if rounds.len() <= round {
            rounds.resize(round + 1, None);
        }
        rounds[round] = Some(value);
    }

    pub(crate) fn find(&self, row: &str, measure: &str, peer: Peer) -> Option<&Series> {
        self.series.iter().find(|series| series.is(row, measure, peer))
    }

    pub(crate) fn summary(&self, row: &str, measure: &str, peer: Peer) -> Option<Summary> {
        Summary::of(&self.find(row, measure, peer)?.values())
    }

    /// Of each round in which both have a figure: one by the other.
    pub(crate) fn ratios(&self, row: &str, measure: &str, ours: Peer, theirs: Peer) -> Vec<f64> {
        let (Some(ours), Some(theirs)) = (self.find(row, measure, ours), self.find(row, measure, theirs)) else {
            return Vec::new();
        };
        let pairs = ours.rounds.iter().zip(&theirs.rounds);
        pairs.filter_map(|(ours, theirs)| Some((*ours)? / (*theirs)?)).filter(|ratio| ratio.is_finite()).collect()
    }
}

impl Series {
    fn is(&self, row: &str, measure: &str, peer: Peer) -> bool {
        self.row == row && self.measure == measure && self.peer == peer
    }

    pub(crate) fn values(&self) -> Vec<f64> {
        self.rounds.iter().flatten().copied().collect()
    }
}
