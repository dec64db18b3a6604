//! Metrics of revisions under the reference's names, written from what is: a
//! revision that is gone leaves no series behind (autoscaler reference, section
//! 17).

use crate::collect::durations::Durations;
use crate::decider::Decider;
use policy::revision::{Metric, RevisionId};
use policy::world::PodPhase;
use std::collections::BTreeMap;
use std::fmt::Write;

/// The reference's instrumentation scope, as its exporter writes it.
const SCOPE: &str =
    "otel_scope_name=\"knative.dev/serving/pkg/autoscaler\",otel_scope_schema_url=\"\",otel_scope_version=\"\"";
const DURATION: &str = "kn_autoscaler_scrape_duration_seconds";

type Deciders = BTreeMap<RevisionId, Decider>;

/// Name, help, and a revision's value; without one it has no series.
type Family = (&'static str, &'static str, fn(&Decider) -> Option<f64>);

const FAMILIES: &[Family] = &[
    ("kn_revision_pods_desired", "Pods wished for by the decision, before bounds.", |d| {
        (d.status.desired >= 0).then_some(f64::from(d.status.desired))
    }),
    ("kn_revision_capacity_excess", "Spare load beyond the burst to be kept room for.", |d| {
        Some(f64::from(d.status.excess_burst_capacity))
    }),
    ("kn_revision_panic_mode", "1 in panic.", |d| Some(if d.is_in_panic() { 1.0 } else { 0.0 })),
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

/// As text, for Prometheus.
pub(crate) fn text(deciders: &Deciders) -> String {
    let mut out = String::new();
    let labels: Vec<String> = deciders.iter().map(|(id, decider)| labels(id, decider, true)).collect();
    for (name, help, value) in FAMILIES {
        let values = deciders.values().zip(&labels).filter_map(|(decider, labels)| Some((labels, value(decider)?)));
        let mut begun = false;
        for (labels, value) in values {
            if !std::mem::replace(&mut begun, true) {
                let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} gauge");
            }
            let _ = writeln!(out, "{name}{{{labels}}} {value}");
        }
    }
    durations(deciders, &mut out);
    out
}

/// Without the revision, so one series for those that are alike but for it.
fn durations(deciders: &Deciders, out: &mut String) {
    let mut all: BTreeMap<String, Durations> = BTreeMap::new();
    for (id, decider) in deciders.iter().filter(|(_, decider)| !decider.durations.is_empty()) {
        all.entry(labels(id, decider, false)).or_default().add(&decider.durations);
    }
    if !all.is_empty() {
        let _ = writeln!(out, "# HELP {DURATION} How long a round of asking pods took.\n# TYPE {DURATION} histogram");
    }
    all.iter().for_each(|(labels, durations)| durations.write(out, DURATION, labels));
}

fn of(decider: &Decider, metric: Metric, number: Number) -> Option<f64> {
    let spec = &decider.view.spec.scale;
    if spec.metric != metric {
        return None;
    }
    match number {
        Number::Target => Some(spec.target),
        Number::Stable => decider.averages().map(|(stable, _)| stable),
        Number::Panic => decider.averages().map(|(_, panic)| panic),
    }
}

fn pods(decider: &Decider, phases: &[PodPhase]) -> f64 {
    decider.view.pods.iter().filter(|pod| phases.contains(&pod.phase)).count() as f64
}

fn labels(id: &RevisionId, decider: &Decider, with_revision: bool) -> String {
    let spec = &decider.view.spec;
    let mut out = String::new();
    let named = [
        ("k8s_namespace_name", &*id.namespace, true),
        ("kn_configuration_name", &*spec.configuration, true),
        ("kn_revision_name", &*id.name, with_revision),
        ("kn_service_name", &*spec.service, true),
    ];
    for (name, value, _) in named.iter().filter(|(.., given)| *given) {
        let value = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        let _ = write!(out, "{name}=\"{value}\",");
    }
    out + SCOPE
}
