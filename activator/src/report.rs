//! Each second: what was held and passed on; the first request at zero is
//! told at once.

use crate::Activator;
use crate::revision::Revision;
use plumbing::clock;
use policy::revision::RevisionId;
use policy::stat::{Stat, StatBatch};
use policy::timeline::MeterReport;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

const REPORT_EVERY: Duration = Duration::from_secs(1);

/// Tells that a revision has its first request.
pub(crate) fn poke(activator: &Activator, revision: &Revision) {
    announce(activator, revision, &MeterReport::ANNOUNCEMENT);
}

/// Tells what cannot wait for the next report.
pub(crate) fn announce(activator: &Activator, revision: &Revision, what: &MeterReport) {
    let stat = stat(activator, what);
    activator.shared.stats.send(StatBatch { at: clock::now(), stats: vec![(revision.id.clone(), stat)], poke: true });
}

/// What is told again: that somebody waits. It was counted when it was told
/// first, so it is next to nothing, and still no zero, which would say nothing.
const STILL_WAITING: MeterReport = MeterReport { average_concurrency: 1e-6, request_count: 0.0, drop: false };

/// Tells again that these revisions have somebody who waits.
pub(crate) fn poke_again(activator: &Activator, revisions: Vec<RevisionId>) {
    let stats = revisions.into_iter().map(|revision| (revision, stat(activator, &STILL_WAITING))).collect();
    activator.shared.stats.send(StatBatch { at: clock::now(), stats, poke: true });
}

/// Reports each second; sleeps while there is nothing to report.
pub(crate) async fn run(activator: Activator) {
    // On a machine of its own requests may go straight to the pods: they are at
    // pods all the same, and are counted by nobody here.
    let only_tracked = activator.shared.config.cluster.is_some();
    let mut ticks = clock::ticks(REPORT_EVERY, Duration::ZERO);
    loop {
        ticks.tick().await;
        let reported = tick(&activator, only_tracked);
        if !reported && only_tracked {
            activator.shared.tracked.some().await;
            // From the next second on: the tick that was missed is none.
            ticks = clock::ticks(REPORT_EVERY, Duration::ZERO);
        }
    }
}

/// False when nothing will be to report next time either, unless a request comes.
fn tick(activator: &Activator, only_tracked: bool) -> bool {
    let shared = &activator.shared;
    let revisions = shared.tracked.all();
    let mut stats = Vec::new();
    let mut waits = false;
    for revision in revisions.iter().filter(|revision| revision.is_reported()) {
        waits |= revision.is_waited_for();
        if let Some(report) = revision.tick() {
            let stat = stat(activator, &report);
            stats.push((revision.id.clone(), stat));
        }
    }
    let in_flight = |revisions: &[Arc<Revision>]| revisions.iter().map(|revision| revision.in_flight()).sum();
    let in_flight = if only_tracked { in_flight(&revisions) } else { in_flight(&shared.table.all()) };
    shared.metrics.level(shared.held.load(Ordering::Relaxed), in_flight);
    if waits {
        // Its pods may have gone since it was told of.
        shared.waits.notify_one();
    }
    if !stats.is_empty() {
        shared.stats.send(StatBatch { at: clock::now(), stats, poke: false });
    }
    shared.tracked.prune()
}

fn stat(activator: &Activator, report: &MeterReport) -> Stat {
    Stat {
        pod_name: activator.shared.config.pod_name.clone(),
        average_concurrency: report.average_concurrency,
        average_proxied_concurrency: 0.0,
        request_count: report.request_count,
        proxied_request_count: 0.0,
    }
}
