//! Metrics of revisions under the reference's names, written from what is: a
//! revision that is gone leaves no series behind (autoscaler reference, section
//! 17).

use crate::collect::durations::Durations;
use crate::decider::Decider;
use policy::revision::{Metric, RevisionId};
use policy::world::{PodPhase, RevisionView};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;

/// The reference's instrumentation scope, as its exporter writes it.
const SCOPE: &str =
    "otel_scope_name=\"knative.dev/serving/pkg/autoscaler\",otel_scope_schema_url=\"\",otel_scope_version=\"\"";
const DURATION: &str = "kn_autoscaler_scrape_duration_seconds";

/// A revision as it is now. Taken quickly, since decisions wait meanwhile; the
/// text, which may be long, is made of it later.
pub(crate) struct Row {
    id: RevisionId,
    view: Arc<RevisionView>,
    desired: i32,
    excess: i32,
    panics: bool,
    averages: Option<(f64, f64)>,
    ready: Option<u32>,
    requested: Option<i32>,
    decisions: u64,
    durations: Durations,
}

impl Row {
    pub(crate) fn of(id: &RevisionId, decider: &Decider) -> Row {
        Row {
            id: id.clone(),
            view: decider.view.clone(),
            desired: decider.status.desired,
            excess: decider.status.excess_burst_capacity,
            panics: decider.is_in_panic(),
            averages: decider.averages(),
            ready: decider.ready_then(),
            requested: decider.requested,
            decisions: decider.decisions,
            durations: decider.durations.clone(),
        }
    }
}

/// Ours; the last is a counter.
const OWN: &[Family] = &[
    ("zeroscale_autoscaler_desired_pods", "Pods wished for by the decision, before bounds.", |d| {
        (d.desired >= 0).then_some(f64::from(d.desired))
    }),
    ("zeroscale_autoscaler_wanted_pods", "Pods wanted after bounds and the way to zero.", |d| {
        d.requested.map(f64::from)
    }),
    ("zeroscale_autoscaler_ready_pods", "Ready pods, as decided on last.", |d| d.ready.map(f64::from)),
    ("zeroscale_autoscaler_stable_load", "Average load over the stable window.", |d| d.averages.map(|of| of.0)),
    ("zeroscale_autoscaler_panic_load", "Average load over the panic window.", |d| d.averages.map(|of| of.1)),
    ("zeroscale_autoscaler_panic_mode", "1 in panic mode.", |d| Some(if d.panics { 1.0 } else { 0.0 })),
    (
        "zeroscale_autoscaler_excess_burst_capacity",
        "Spare load before the activator must be in the path; negative = it must.",
        |d| Some(f64::from(d.excess)),
    ),
    ("zeroscale_autoscaler_decisions_total", "Decisions made.", |d| Some(d.decisions as f64)),
];

/// Name, help, and a revision's value; without one it has no series.
type Family = (&'static str, &'static str, fn(&Row) -> Option<f64>);

const FAMILIES: &[Family] = &[
    ("kn_revision_pods_desired", "Pods wished for by the decision, before bounds.", |d| {
        (d.desired >= 0).then_some(f64::from(d.desired))
    }),
    ("kn_revision_capacity_excess", "Spare load beyond the burst to be kept room for.", |d| Some(f64::from(d.excess))),
    ("kn_revision_panic_mode", "1 in panic.", |d| Some(if d.panics { 1.0 } else { 0.0 })),
    ("kn_revision_concurrency_stable", "Average over the stable window.", |d| {
        of(d, Metric::Concurrency, Number::Stable)
    }),
    ("kn_revision_concurrency_panic", "Average over the panic window.", |d| of(d, Metric::Concurrency, Number::Panic)),
    ("kn_revision_concurrency_target", "Load that one pod should carry.", |d| {
        of(d, Metric::Concurrency, Number::Target)
    }),
    ("kn_revision_rps_stable_per_second", "Average over the stable window.", |d| of(d, Metric::Rps, Number::Stable)),
    ("kn_revision_rps_panic_per_second", "Average over the panic window.", |d| of(d, Metric::Rps, Number::Panic)),
    ("kn_revision_rps_target_per_second", "Load that one pod should carry.", |d| of(d, Metric::Rps, Number::Target)),
    ("kn_revision_pods_requested", "Pods wanted.", |d| d.requested.map(f64::from)),
    ("kn_revision_pods_count", "Pods that take requests.", |d| Some(pods(d, &[PodPhase::Ready]))),
    ("kn_revision_pods_not_ready_count", "Pods that do not.", |d| {
        Some(pods(d, &[PodPhase::Starting, PodPhase::Terminating]))
    }),
    ("kn_revision_pods_pending_count", "Pods that start.", |d| Some(pods(d, &[PodPhase::Starting]))),
    ("kn_revision_pods_terminating_count", "Pods that end.", |d| Some(pods(d, &[PodPhase::Terminating]))),
];

#[derive(Clone, Copy)]
enum Number {
    Stable,
    Panic,
    Target,
}

/// The reference's, as text for Prometheus.
pub(crate) fn text(rows: &[Row]) -> String {
    let mut out = String::new();
    let labels: Vec<String> = rows.iter().map(|row| labels(row, true)).collect();
    families(FAMILIES, rows, &labels, &mut out);
    durations(rows, &mut out);
    out
}

/// Ours.
pub(crate) fn own(rows: &[Row]) -> String {
    let mut out = String::new();
    let labels: Vec<String> = rows.iter().map(|row| format!("revision=\"{}\"", escaped(&row.id.to_string()))).collect();
    families(OWN, rows, &labels, &mut out);
    out
}

fn families(all: &[Family], rows: &[Row], labels: &[String], out: &mut String) {
    for (name, help, value) in all {
        let kind = if name.ends_with("_total") { "counter" } else { "gauge" };
        let values = rows.iter().zip(labels).filter_map(|(row, labels)| Some((labels, value(row)?)));
        let mut begun = false;
        for (labels, value) in values {
            if !std::mem::replace(&mut begun, true) {
                let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}");
            }
            let _ = writeln!(out, "{name}{{{labels}}} {value}");
        }
    }
}

fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

/// Without the revision, so one series for those that are alike but for it.
fn durations(rows: &[Row], out: &mut String) {
    let mut all: BTreeMap<String, Durations> = BTreeMap::new();
    for row in rows.iter().filter(|row| !row.durations.is_empty()) {
        all.entry(labels(row, false)).or_default().add(&row.durations);
    }
    if !all.is_empty() {
        let _ = writeln!(out, "# HELP {DURATION} How long a round of asking pods took.\n# TYPE {DURATION} histogram");
    }
    all.iter().for_each(|(labels, durations)| durations.write(out, DURATION, labels));
}

fn of(row: &Row, metric: Metric, number: Number) -> Option<f64> {
    let spec = &row.view.spec.scale;
    if spec.metric != metric {
        return None;
    }
    match number {
        Number::Target => Some(spec.target),
        Number::Stable => row.averages.map(|(stable, _)| stable),
        Number::Panic => row.averages.map(|(_, panic)| panic),
    }
}

fn pods(row: &Row, phases: &[PodPhase]) -> f64 {
    row.view.pods.iter().filter(|pod| phases.contains(&pod.phase)).count() as f64
}

fn labels(row: &Row, with_revision: bool) -> String {
    let spec = &row.view.spec;
    let mut out = String::new();
    let named = [
        ("k8s_namespace_name", &*row.id.namespace, true),
        ("kn_configuration_name", &*spec.configuration, true),
        ("kn_revision_name", &*row.id.name, with_revision),
        ("kn_service_name", &*spec.service, true),
    ];
    for (name, value, _) in named.iter().filter(|(.., given)| *given) {
        let _ = write!(out, "{name}=\"{}\",", escaped(value));
    }
    out + SCOPE
}
