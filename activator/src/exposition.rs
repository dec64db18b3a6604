//! Metrics by revision under the reference's names, written from what is: a
//! revision that is gone leaves no series behind.

use crate::Shared;
use crate::metrics::losses;
use crate::revision::Revision;
use observe::metrics::{Attribute, Family, Instrument, More, Point, Sample, Scope, Unit};
use std::sync::Arc;

static CONCURRENCY: Instrument = of_revision(
    "kn.revision.request.concurrency",
    "kn_revision_request_concurrency",
    "Average concurrency, as reported last.",
);

static QUEUED: Instrument =
    of_revision("kn.revision.request.queued", "kn_revision_request_queued", "Requests that wait.");

static ACTIVE: Instrument =
    of_revision("kn.revision.request.active", "kn_revision_request_active", "Requests that are at pods.");

static REACHABLE: Instrument = Instrument {
    name: "kn.activator.stats.conn.reachable",
    text_name: "kn_activator_stats_conn_reachable",
    help: "1 while the autoscaler is reached.",
    unit: Unit::Of("{reachable}"),
    scope: Scope::Activator,
};

static ERRORS: Instrument = Instrument {
    name: "kn.activator.stats.conn.errors",
    text_name: "kn_activator_stats_conn_errors_total",
    help: "Connections to the autoscaler that were lost.",
    unit: Unit::Of("{error}"),
    scope: Scope::Activator,
};

const fn of_revision(name: &'static str, text_name: &'static str, help: &'static str) -> Instrument {
    Instrument { name, text_name, help, unit: Unit::Of("{request}"), scope: Scope::Activator }
}

/// All that is to be seen now, beside what is counted of requests for no revision.
pub(crate) fn all(shared: &Shared) -> More {
    let revisions = shared.table.all();
    let mut families = vec![
        family(&CONCURRENCY, &revisions, |revision| {
            (revision.identity().attributes(), Sample::Measure(revision.reported()))
        }),
        family(&QUEUED, &revisions, |revision| (short(revision), Sample::UpDown(revision.load().held as u64))),
        family(&ACTIVE, &revisions, |revision| (short(revision), Sample::UpDown(revision.load().in_flight as u64))),
    ];
    if let Some(reached) = shared.health.reaches() {
        families.push(link(&REACHABLE, Sample::Gauge(u64::from(reached))));
        families.push(link(&ERRORS, Sample::Count(losses())));
    }
    let counts = |revision: &Arc<Revision>| (revision.identity().attributes(), revision.series.clone());
    More { revisions: revisions.iter().map(counts).collect(), families }
}

fn family(
    instrument: &'static Instrument,
    revisions: &[Arc<Revision>],
    point: impl Fn(&Revision) -> (Vec<(&'static str, Attribute)>, Sample),
) -> Family {
    let points = revisions.iter().map(|revision| {
        let (attributes, sample) = point(revision);
        Point { attributes, sample }
    });
    Family { instrument, points: points.collect() }
}

fn short(revision: &Revision) -> Vec<(&'static str, Attribute)> {
    let text = |text: &Arc<str>| Attribute::Text(text.to_string());
    vec![("k8s.namespace.name", text(&revision.id.namespace)), ("kn.revision.name", text(&revision.id.name))]
}

fn link(instrument: &'static Instrument, sample: Sample) -> Family {
    let attributes = vec![("peer", Attribute::Text("autoscaler".to_owned()))];
    Family { instrument, points: vec![Point { attributes, sample }] }
}
