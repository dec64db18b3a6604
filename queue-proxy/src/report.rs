//! Each second: what the app had to carry.

use crate::sidecar::Sidecar;
use plumbing::clock;
use plumbing::stats::StatSink;
use policy::stat::{Stat, StatBatch};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::MissedTickBehavior;

const REPORT_EVERY: Duration = Duration::from_secs(1);

pub(crate) async fn run(sidecar: Arc<Sidecar>, sink: StatSink) {
    let mut ticks = tokio::time::interval_at(sidecar.started + REPORT_EVERY, REPORT_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let report = sidecar.report();
        let stat = Stat {
            pod_name: sidecar.config.pod.clone(),
            average_concurrency: report.average_concurrency,
            average_proxied_concurrency: report.average_proxied_concurrency,
            request_count: report.request_count,
            proxied_request_count: report.proxied_request_count,
        };
        let stats = vec![(sidecar.config.revision.clone(), stat)];
        sink.send(StatBatch { at: clock::now(), stats, poke: false });
    }
}
