//! The autoscaler's metric names, and their handles made once a revision.

use metrics::{Counter, Gauge, SharedString, counter, gauge};
use policy::collect::Dropped;
use policy::revision::RevisionId;
use policy::scale::Decision;
use policy::zero::ZeroVerdict;
use std::sync::Arc;

/// Pods wished for by the decision, before bounds.
pub(crate) const DESIRED: &str = "zeroscale_autoscaler_desired_pods";
/// Pods wanted after bounds and the way to zero.
pub(crate) const WANTED: &str = "zeroscale_autoscaler_wanted_pods";
/// Ready pods.
pub(crate) const READY: &str = "zeroscale_autoscaler_ready_pods";
/// Average load over the stable window.
pub(crate) const STABLE: &str = "zeroscale_autoscaler_stable_load";
/// Average load over the panic window.
pub(crate) const PANIC: &str = "zeroscale_autoscaler_panic_load";
/// 1 in panic mode.
pub(crate) const PANIC_MODE: &str = "zeroscale_autoscaler_panic_mode";
/// Spare load before the activator must be in the path; negative = it must.
pub(crate) const EXCESS_BURST: &str = "zeroscale_autoscaler_excess_burst_capacity";
/// Decisions made.
pub(crate) const DECISIONS: &str = "zeroscale_autoscaler_decisions_total";

/// Stats that were dropped because their numbers made no sense, by reason.
pub(crate) const DROPPED: &str = "zeroscale_autoscaler_stat_drops_total";

/// Counts one.
pub(crate) fn dropped(why: Dropped) {
    counter!(DROPPED, "why" => why.as_str()).increment(1);
}

pub(crate) struct Metrics {
    desired: Gauge,
    wanted: Gauge,
    ready: Gauge,
    stable: Gauge,
    panic: Gauge,
    panic_mode: Gauge,
    excess_burst: Gauge,
    decisions: Counter,
}

impl Metrics {
    pub(crate) fn new(id: &RevisionId) -> Metrics {
        // One text for all series of a revision.
        let text: Arc<str> = id.to_string().into();
        let revision = || SharedString::from(text.clone());
        let of = |name: &'static str| gauge!(name, "revision" => revision());
        Metrics {
            desired: of(DESIRED),
            wanted: of(WANTED),
            ready: of(READY),
            stable: of(STABLE),
            panic: of(PANIC),
            panic_mode: of(PANIC_MODE),
            excess_burst: of(EXCESS_BURST),
            decisions: counter!(DECISIONS, "revision" => revision()),
        }
    }

    pub(crate) fn note(&self, decision: Option<&Decision>, verdict: &ZeroVerdict) {
        self.decisions.increment(1);
        self.wanted.set(f64::from(verdict.want.max(0)));
        let Some(decision) = decision else { return };
        self.desired.set(f64::from(decision.desired));
        self.ready.set(f64::from(decision.why.ready));
        self.stable.set(decision.why.stable);
        self.panic.set(decision.why.panic);
        self.panic_mode.set(if decision.panic { 1.0 } else { 0.0 });
        self.excess_burst.set(f64::from(decision.excess_burst_capacity));
    }
}
