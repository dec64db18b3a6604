//! What was decided, and why, for people and for programs.

use crate::decider::{Decider, ready};
use crate::history::{Fresh, Record};
use policy::limit::Step;
use policy::moment::Moment;
use policy::revision::{Metric, RevisionId};
use policy::world::{Path, PodPhase};
use serde::{Deserialize, Serialize};
use std::fmt::Write;

/// Decisions in a status; `why` has more.
const DECISIONS_SHOWN: usize = 32;

/// One revision's status.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RevisionStatus {
    /// `namespace/name`.
    pub revision: String,
    /// The service it belongs to.
    pub service: String,
    /// Pods ordered; `None` before the first decision.
    pub wanted: Option<u32>,
    /// Pods that take requests.
    pub ready: u32,
    /// Pods that exist.
    pub pods: Vec<PodStatus>,
    /// `stable` or `panic`.
    pub mode: String,
    /// `activator` or `direct`.
    pub path: String,
    /// What load is measured in: `concurrency` or `rps`.
    pub metric: String,
    /// Load that one pod should carry.
    pub target: f64,
    /// Average load over the stable window.
    pub stable: f64,
    /// Length of the stable window, in seconds.
    pub stable_window_seconds: f64,
    /// Average load over the panic window.
    pub panic: f64,
    /// Length of the panic window, in seconds.
    pub panic_window_seconds: f64,
    /// Spare load before the activator must be in the path; negative = it must.
    pub excess_burst_capacity: i32,
    /// Pods that wait for room (`--max-pods`).
    pub no_room: u32,
    /// Why its pods cannot be started, if they cannot.
    pub trouble: Option<String>,
    /// Stats dropped because their numbers made no sense.
    pub dropped_stats: u64,
    /// The last decisions, newest first.
    pub decisions: Vec<DecisionStatus>,
}

/// One pod's status.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PodStatus {
    /// Its name.
    pub name: String,
    /// `starting`, `ready` or `terminating`.
    pub phase: String,
    /// Where its sidecar listens.
    pub address: String,
    /// How long it has been in that phase, in seconds.
    pub for_seconds: f64,
    /// How long its app took to become ready, in seconds.
    pub start_took_seconds: Option<f64>,
}

/// One decision, or several equal ones in a row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DecisionStatus {
    /// How long ago it was first made, in seconds.
    pub since_seconds: f64,
    /// How long ago it was last made, in seconds.
    pub last_seconds: f64,
    /// How many times in a row.
    pub times: u32,
    /// Pods ordered.
    pub wanted: Option<u32>,
    /// Pods wished for before bounds; `None` = there was nothing to decide on.
    pub desired: Option<i32>,
    /// Ready pods at the time.
    pub ready: Option<u32>,
    /// Average load over the stable window at the time.
    pub stable: Option<f64>,
    /// Average load over the panic window at the time.
    pub panic: Option<f64>,
    /// True in panic mode.
    pub panic_mode: bool,
    /// `activator` or `direct`.
    pub path: String,
    /// Each limit that acted, in order.
    pub limits: Vec<LimitStatus>,
    /// The same in one sentence.
    pub why: String,
}

/// One limit that acted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LimitStatus {
    /// Its name.
    pub limit: String,
    /// Pods before it.
    pub from: i32,
    /// Pods after it.
    pub to: i32,
}

pub(crate) fn of(id: &RevisionId, decider: &Decider, now: Moment) -> RevisionStatus {
    let view = &decider.view;
    let spec = &view.spec;
    let newest = decider.history.newest_first().next().and_then(|record| record.made.as_ref().ok());
    RevisionStatus {
        revision: id.to_string(),
        service: spec.service.to_string(),
        wanted: decider.ordered,
        ready: ready(view),
        pods: view.pods.iter().map(|pod| pod_status(pod, now)).collect(),
        mode: if newest.is_some_and(|made| made.in_panic) { "panic" } else { "stable" }.to_owned(),
        path: path(decider.path).to_owned(),
        metric: metric(spec.scale.metric).to_owned(),
        target: spec.scale.target,
        stable: newest.map_or(0.0, |made| tidy(made.stable)),
        stable_window_seconds: spec.windows.stable.as_secs_f64(),
        panic: newest.map_or(0.0, |made| tidy(made.panic)),
        panic_window_seconds: spec.windows.panic.as_secs_f64(),
        excess_burst_capacity: decider.status.excess_burst_capacity,
        no_room: view.without_room,
        trouble: view.trouble.as_ref().map(|trouble| trouble.text.to_string()),
        dropped_stats: decider.dropped_stats,
        decisions: decider
            .history
            .newest_first()
            .take(DECISIONS_SHOWN)
            .map(|record| decision_status(record, spec.scale.metric, now))
            .collect(),
    }
}

fn pod_status(pod: &policy::world::Pod, now: Moment) -> PodStatus {
    let phase = match pod.phase {
        PodPhase::Starting => "starting",
        PodPhase::Ready => "ready",
        PodPhase::Terminating => "terminating",
    };
    PodStatus {
        name: pod.name.to_string(),
        phase: phase.to_owned(),
        address: pod.address.to_string(),
        for_seconds: now.since(pod.since).as_secs_f64(),
        start_took_seconds: pod.start_took.map(|span| span.as_secs_f64()),
    }
}

pub(crate) fn decision_status(record: &Record, unit: Metric, now: Moment) -> DecisionStatus {
    let made = record.made.as_ref().ok();
    let limit = |step: &Step| LimitStatus { limit: step.limit.as_str().to_owned(), from: step.from, to: step.to };
    let limits: Vec<LimitStatus> = record.steps.iter().map(limit).collect();
    DecisionStatus {
        since_seconds: now.since(record.at).as_secs_f64(),
        last_seconds: now.since(record.last).as_secs_f64(),
        times: record.times,
        wanted: record.ordered,
        desired: made.map(|made| made.desired),
        ready: made.map(|made| made.ready),
        stable: made.map(|made| tidy(made.stable)),
        panic: made.map(|made| tidy(made.panic)),
        panic_mode: made.is_some_and(|made| made.in_panic),
        path: path(record.path).to_owned(),
        why: sentence(record, unit, &limits),
        limits,
    }
}

/// The decision in one sentence, with its numbers.
fn sentence(record: &Record, unit: Metric, limits: &[LimitStatus]) -> String {
    let made = match &record.made {
        Ok(made) => made,
        Err(why) => return format!("no decision ({}); the last one stands", why.as_str()),
    };
    let (window, load) = if made.by_panic_window { ("panic", made.panic) } else { ("stable", made.stable) };
    let (unit, wish, load) = (metric(unit), made.wish(load), tidy(load));
    let mut text = format!("{unit} {load:.2} over the {window} window / target {} = {wish} pods", made.target);
    if made.in_panic {
        text.push_str(", in panic");
    }
    limits.iter().for_each(|limit| acted(&mut text, &limit.limit, limit.from, limit.to));
    text
}

/// Adds a limit that acted: pods before and after it.
pub(crate) fn acted(text: &mut String, limit: &str, from: i32, to: i32) {
    let _ = match from == to {
        true => write!(text, ", {limit} holds {to}"),
        false => write!(text, ", {limit} {from}->{to}"),
    };
}

/// Averages of load are sums of differences: what is left of nothing may lie a
/// little below it, and is not worth a minus sign.
pub(crate) fn tidy(load: f64) -> f64 {
    if load.abs() < 0.005 { 0.0 } else { load }
}

/// The decision in a few words, for logs.
pub(crate) fn in_a_word(fresh: &Fresh<'_>) -> &'static str {
    let acted = fresh.verdict.steps.iter().last().map(|step| step.limit.as_str());
    match (fresh.decision, acted) {
        (Err(why), _) => why.as_str(),
        (Ok(_), Some(limit)) => limit,
        (Ok(made), None) if made.panic => "panic",
        (Ok(_), None) if fresh.ordered == Some(0) => "idle",
        (Ok(_), None) => "load",
    }
}

pub(crate) fn path(path: Path) -> &'static str {
    match path {
        Path::Activator => "activator",
        Path::Direct => "direct",
    }
}

pub(crate) fn metric(metric: Metric) -> &'static str {
    match metric {
        Metric::Concurrency => "concurrency",
        Metric::Rps => "rps",
    }
}
