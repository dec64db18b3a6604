//! The activator's metric names, and their handles made once.

use crate::offer::Handback;
use crate::wake::{PHASES, Wake};
use metrics::{Counter, Gauge, Histogram, counter, gauge, histogram};
use plumbing::reason::Reason;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Requests that wait for a slot.
pub(crate) const HELD: &str = "zeroscale_activator_held_requests";
/// Requests that are at pods.
pub(crate) const IN_FLIGHT: &str = "zeroscale_activator_in_flight_requests";
/// Wake-ups from zero that were begun.
pub(crate) const WAKES: &str = "zeroscale_activator_wakes_total";
/// From the first request at zero to the first ready pod (phase `total`), the
/// part of it that is the app's own start (`app_start`), and the phases up to
/// the first byte of the first answer ([`PHASES`]).
pub(crate) const COLD_START: &str = "zeroscale_activator_cold_start_seconds";
/// Answers of ours instead of the app's, by reason.
pub(crate) const REFUSALS: &str = "zeroscale_activator_refusals_total";

/// Offers that came back unharmed, by what the sidecar said.
pub(crate) const HANDBACKS: &str = "zeroscale_activator_handbacks_total";

pub(crate) struct Metrics {
    held: Gauge,
    in_flight: Gauge,
    wakes: Counter,
    cold_start: Histogram,
    app_start: Histogram,
    phases: [Histogram; PHASES.len()],
    refusals: Vec<Counter>,
    full: Counter,
    not_sent: Counter,
}

impl Metrics {
    pub(crate) fn new() -> Metrics {
        Metrics {
            held: gauge!(HELD),
            in_flight: gauge!(IN_FLIGHT),
            wakes: counter!(WAKES),
            cold_start: histogram!(COLD_START, "phase" => "total"),
            app_start: histogram!(COLD_START, "phase" => "app_start"),
            full: counter!(HANDBACKS, "why" => "full"),
            not_sent: counter!(HANDBACKS, "why" => "not-sent"),
            phases: PHASES.map(|phase| histogram!(COLD_START, "phase" => phase)),
            refusals: Reason::ALL.iter().map(|reason| counter!(REFUSALS, "reason" => reason.code())).collect(),
        }
    }

    pub(crate) fn level(&self, held: usize, in_flight: usize) {
        self.held.set(held as f64);
        self.in_flight.set(in_flight as f64);
    }

    pub(crate) fn waking(&self) {
        self.wakes.increment(1);
    }

    pub(crate) fn woken(&self, wake: &Wake) {
        self.cold_start.record(wake.took().as_secs_f64());
        if let Some(span) = wake.app_start() {
            self.app_start.record(span.as_secs_f64());
        }
    }

    pub(crate) fn handed_back(&self, why: Handback) {
        match why {
            Handback::Full => self.full.increment(1),
            Handback::NotSent => self.not_sent.increment(1),
        }
    }

    pub(crate) fn cold_start(&self, phases: &[Duration; PHASES.len()]) {
        for (histogram, span) in self.phases.iter().zip(phases) {
            histogram.record(span.as_secs_f64());
        }
    }

    pub(crate) fn refused(&self, reason: Reason) {
        self.refusals[reason as usize].increment(1);
    }
}

/// Reports that had no place while the autoscaler was not reached.
const REPORTS_DROPPED: &str = "zeroscale_activator_reports_dropped_total";

/// Connections to the autoscaler that were lost: a process has one link.
static LOSSES: AtomicU64 = AtomicU64::new(0);

/// How many there were.
pub(crate) fn losses() -> u64 {
    LOSSES.load(Ordering::Relaxed)
}

/// What is counted of the link to the autoscaler.
pub(crate) struct LinkMetrics {
    dropped: Counter,
}

impl LinkMetrics {
    pub(crate) fn new() -> LinkMetrics {
        LinkMetrics { dropped: counter!(REPORTS_DROPPED) }
    }

    pub(crate) fn lost(&self) {
        LOSSES.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn dropped(&self, reports: u64) {
        self.dropped.increment(reports);
    }
}
