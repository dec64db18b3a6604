//! Each second: what the app had to carry.

use crate::sidecar::Sidecar;
use plumbing::clock;
use plumbing::stats::StatSink;
use policy::stat::{Stat, StatBatch};
use std::sync::Arc;
use std::time::Duration;

const REPORT_EVERY: Duration = Duration::from_secs(1);

pub(crate) async fn run(sidecar: Arc<Sidecar>, sink: StatSink) {
    let mut ticks = clock::ticks(REPORT_EVERY, Duration::ZERO);
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
