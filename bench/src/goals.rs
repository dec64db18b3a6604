//! What is to be reached, beside what was.

use crate::book::{Book, CPU_OFFERED, CPU_SATURATED, Measure};
use crate::peers::Peer;
use crate::rows::{cold_start, held, idle, latency, limit, memory, revisions, start, syscalls};
use crate::summary::Summary;
use serde::Serialize;

/// One goal: a figure of ours, or ours divided by theirs, is at most so much.
#[derive(Clone, Debug)]
pub(crate) struct Goal {
    row: &'static str,
    measure: &'static str,
    ours: Peer,
    /// The best of them; none for a figure that stands alone.
    against: &'static [Peer],
    at_most: f64,
}

/// A goal and what came out.
#[derive(Debug, Serialize)]
pub(crate) struct Judged {
    pub(crate) row: &'static str,
    pub(crate) measure: &'static str,
    pub(crate) ours: Peer,
    /// Whom it was compared with.
    pub(crate) against: Option<Peer>,
    pub(crate) goal: f64,
    pub(crate) figures: Option<Summary>,
    /// `None`: it was not measured.
    pub(crate) met: Option<bool>,
}

const NOBODY: &[Peer] = &[];
const KNATIVE: &[Peer] = &[Peer::Knative];
const FLOOR: &[Peer] = &[Peer::Floor];
const NGINX: &[Peer] = &[Peer::Nginx];
const HAPROXY: &[Peer] = &[Peer::Haproxy];
const BETTER: &[Peer] = &[Peer::Nginx, Peer::Haproxy];

/// CPU time of the sidecar: row, peers, goal.
const CPU: &[(&str, &[Peer], f64)] = &[
    ("get-0", KNATIVE, 0.16),
    ("get-0", BETTER, 0.88),
    ("get-0", FLOOR, 1.15),
    ("get-1k", KNATIVE, 0.16),
    ("get-1k", BETTER, 0.88),
    ("get-1k", FLOOR, 1.15),
    ("get-12-headers", KNATIVE, 0.17),
    ("get-12-headers", BETTER, 0.85),
    ("get-12-headers", FLOOR, 1.15),
    ("post-10k", KNATIVE, 0.17),
    ("post-10k", BETTER, 0.85),
    ("post-10k", FLOOR, 1.15),
    ("get-64k", NGINX, 0.6),
    ("get-64k", HAPROXY, 0.75),
    ("get-1m", NGINX, 0.6),
    ("get-1m", HAPROXY, 0.75),
    ("h2c-unary", KNATIVE, 0.11),
    ("h2c-unary", HAPROXY, 1.15),
    ("h2c-unary", NGINX, 0.45),
    ("h2c-64k", KNATIVE, 0.35),
    ("h2c-64k", HAPROXY, 0.5),
    ("grpc-unary", KNATIVE, 0.15),
    ("grpc-unary", HAPROXY, 1.1),
    ("grpc-stream", KNATIVE, 0.15),
    ("grpc-stream", HAPROXY, 1.1),
];

/// What else goals are about: row, measure, whose, beside whom, goal.
const OTHERS: &[(&str, Measure, Peer, &[Peer], f64)] = &[
    ("syscalls", syscalls::CALLS_64, Peer::QueueProxy, NOBODY, 4.2),
    ("syscalls", syscalls::CALLS_1, Peer::QueueProxy, NOBODY, 6.1),
    // "None": those of the first moment of a connection are among them.
    ("syscalls", syscalls::EMPTY_64, Peer::QueueProxy, NOBODY, 0.01),
    ("syscalls", syscalls::EMPTY_1, Peer::QueueProxy, NOBODY, 0.01),
    ("syscalls", syscalls::WAKES_64, Peer::QueueProxy, NOBODY, 0.01),
    ("syscalls", syscalls::WAKES_1, Peer::QueueProxy, NOBODY, 0.01),
    ("limit", limit::SPREAD_1K, Peer::QueueProxy, NOBODY, 1.6),
    ("limit", limit::SPREAD_5MS, Peer::QueueProxy, NOBODY, 1.6),
    ("latency", latency::ADDED_P50, Peer::QueueProxy, KNATIVE, 0.62),
    ("latency", latency::ADDED_P99, Peer::QueueProxy, KNATIVE, 0.34),
    ("quota", latency::ADDED_P99, Peer::QueueProxy, KNATIVE, 0.25),
    ("both", CPU_SATURATED, Peer::Both, KNATIVE, 0.36),
    ("memory", memory::FRESH, Peer::QueueProxy, NOBODY, 4.5),
    ("memory", memory::IDLE, Peer::QueueProxy, NOBODY, 9.0),
    ("memory", memory::LOADED, Peer::QueueProxy, NOBODY, 10.0),
    ("held", held::HTTP1, Peer::Activator, NOBODY, 2048.0),
    ("held", held::HTTP2, Peer::Activator, NOBODY, 1536.0),
    ("start", start::START, Peer::QueueProxy, KNATIVE, 0.2),
    ("cold-start", cold_start::BEYOND, Peer::Local, NOBODY, 2.0),
    ("cold-start", cold_start::BEYOND_P99, Peer::Local, NOBODY, 8.0),
    ("idle", idle::SWITCHES, Peer::QueueProxy, NOBODY, 75.0),
    ("revisions", revisions::GROWTH, Peer::Activator, NOBODY, 1.1),
];

/// All of them, in the order of the rows.
pub(crate) fn all() -> Vec<Goal> {
    let mut goals = Vec::new();
    for (row, against, at_most) in CPU.iter().copied() {
        goals.push(Goal { row, measure: CPU_SATURATED.0, ours: Peer::QueueProxy, against, at_most });
    }
    for (row, (measure, _), ours, against, at_most) in OTHERS.iter().copied() {
        goals.push(Goal { row, measure, ours, against, at_most });
    }
    goals
}

/// The same for CPU time at an equal rate. They were set for saturation; at a
/// low rate each request is a wake-up, and that costs all proxies alike.
pub(crate) fn at_an_equal_rate() -> Vec<Goal> {
    let equal = |goal: Goal| Goal { measure: CPU_OFFERED.0, ..goal };
    all().into_iter().filter(|goal| goal.measure == CPU_SATURATED.0).map(equal).collect()
}

impl Goal {
    pub(crate) fn row(&self) -> &'static str {
        self.row
    }

    pub(crate) fn judge(&self, book: &Book) -> Judged {
        let median = |peer: &&Peer| book.summary(self.row, self.measure, **peer).map(|summary| summary.median);
        let measured = self.against.iter().filter(|peer| median(peer).is_some());
        let best = measured.min_by(|a, b| median(a).partial_cmp(&median(b)).unwrap_or(std::cmp::Ordering::Equal));
        let values = match (best, self.against) {
            (Some(theirs), _) => book.ratios(self.row, self.measure, self.ours, *theirs),
            (None, []) => {
                book.find(self.row, self.measure, self.ours).map(|series| series.values()).unwrap_or_default()
            }
            (None, _) => Vec::new(),
        };
        let figures = Summary::of(&values);
        Judged {
            row: self.row,
            measure: self.measure,
            ours: self.ours,
            against: best.or(self.against.first()).copied(),
            goal: self.at_most,
            met: figures.map(|figures| figures.median <= self.at_most),
            figures,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn book() -> Book {
        let mut book = Book::default();
        for (round, (ours, nginx, haproxy)) in
            [(8.0, 10.0, 12.0), (9.0, 10.0, 11.0), (7.0, 10.0, 13.0)].iter().enumerate()
        {
            book.add("get-0", CPU_SATURATED, Peer::QueueProxy, round, *ours);
            book.add("get-0", CPU_SATURATED, Peer::Nginx, round, *nginx);
            book.add("get-0", CPU_SATURATED, Peer::Haproxy, round, *haproxy);
        }
        book
    }

    fn goal(against: &'static [Peer], at_most: f64) -> Goal {
        Goal { row: "get-0", measure: CPU_SATURATED.0, ours: Peer::QueueProxy, against, at_most }
    }

    #[test]
    fn the_better_of_two_is_who_counts() {
        let judged = goal(BETTER, 0.88).judge(&book());
        assert_eq!((judged.against, judged.met), (Some(Peer::Nginx), Some(true)));
        assert_eq!(judged.figures.unwrap().median, 0.8);
        assert_eq!(goal(BETTER, 0.79).judge(&book()).met, Some(false));
    }

    #[test]
    fn who_is_missing_is_not_judged() {
        assert_eq!(goal(KNATIVE, 0.1).judge(&book()).met, None);
        assert_eq!(goal(&[], 8.0).judge(&book()).met, Some(true));
    }

    #[test]
    fn every_goal_is_of_a_row() {
        for goal in all() {
            assert!(crate::rows::ALL.iter().any(|row| row.name == goal.row()), "{goal:?}");
        }
    }
}
