//! Metrics by revision under the reference's names, written from what is: a
//! revision that is gone leaves no series behind.

use crate::revision::Revision;
use std::fmt::Write;
use std::sync::Arc;

/// As text, for Prometheus.
pub(crate) fn text(revisions: &[Arc<Revision>]) -> String {
    let mut out = String::new();
    family(&mut out, "kn_revision_request_concurrency", "Average concurrency, as reported last.", revisions, |r| {
        (full(r), r.reported())
    });
    family(&mut out, "kn_revision_request_queued", "Requests that wait.", revisions, |r| {
        (short(r), r.load().held as f64)
    });
    family(&mut out, "kn_revision_request_active", "Requests that are at pods.", revisions, |r| {
        (short(r), r.load().in_flight as f64)
    });
    out
}

fn family(
    out: &mut String,
    name: &str,
    help: &str,
    revisions: &[Arc<Revision>],
    value: impl Fn(&Revision) -> (String, f64),
) {
    let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} gauge");
    for revision in revisions {
        let (labels, value) = value(revision);
        let _ = writeln!(out, "{name}{{{labels}}} {value}");
    }
}

fn short(revision: &Revision) -> String {
    let id = &revision.id;
    format!("k8s_namespace_name=\"{}\",kn_revision_name=\"{}\"", escaped(&id.namespace), escaped(&id.name))
}

fn full(revision: &Revision) -> String {
    let spec = revision.spec();
    let (service, configuration) = (escaped(&spec.service), escaped(&spec.configuration));
    format!("{},kn_service_name=\"{service}\",kn_configuration_name=\"{configuration}\"", short(revision))
}

fn escaped(label: &str) -> String {
    label.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
