//! Each second: what was held and passed on; the first request at zero is
//! told at once.

use crate::Activator;
use crate::revision::Revision;
use plumbing::clock;
use policy::revision::RevisionId;
use policy::stat::{Stat, StatBatch};
use policy::timeline::MeterReport;
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
    activator.shared.poked.notify_one();
}

/// What is told again: that somebody waits. It was counted when it was told
/// first, so it is next to nothing, and still no zero, which would say nothing.
const STILL_WAITING: MeterReport = MeterReport { average_concurrency: 1e-6, request_count: 0.0, drop: false };

/// Tells again that these revisions have somebody who waits.
pub(crate) fn poke_again(activator: &Activator, revisions: Vec<RevisionId>) {
    let stats = revisions.into_iter().map(|revision| (revision, stat(activator, &STILL_WAITING))).collect();
    activator.shared.stats.send(StatBatch { at: clock::now(), stats, poke: true });
}

pub(crate) async fn run(activator: Activator) {
    let mut ticks = clock::ticks(REPORT_EVERY, Duration::ZERO);
    loop {
        ticks.tick().await;
        let revisions = activator.shared.table.all();
        let mut stats = Vec::new();
        for revision in &revisions {
            if let Some(report) = revision.tick() {
                let stat = stat(&activator, &report);
                stats.push((revision.id.clone(), stat));
            }
        }
        let in_flight: usize = revisions.iter().map(|revision| revision.load().in_flight).sum();
        activator.shared.metrics.level(activator.shared.held.load(Ordering::Relaxed), in_flight);
        if !stats.is_empty() {
            activator.shared.stats.send(StatBatch { at: clock::now(), stats, poke: false });
        }
    }
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
