//! The process's one metrics recorder, and its upkeep.

use crate::shutdown::Shutdown;
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use std::sync::OnceLock;
use std::time::Duration;

/// Bounds of histograms in seconds, the reference's.
const SECONDS_BUCKETS: [f64; 14] = [0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0];

/// How often histograms' raw samples are folded into buckets. Without it an
/// endpoint that nobody scrapes grows without end.
const UPKEEP_EVERY: Duration = Duration::from_secs(5);

static RECORDER: OnceLock<PrometheusHandle> = OnceLock::new();

/// Installs the recorder; a process has one. Later calls return the first.
///
/// # Errors
/// When another recorder is there already.
pub fn install() -> Result<PrometheusHandle, String> {
    if let Some(handle) = RECORDER.get() {
        return Ok(handle.clone());
    }
    let builder = PrometheusBuilder::new()
        .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), &SECONDS_BUCKETS)
        .map_err(|error| error.to_string())?;
    let handle = builder.install_recorder().map_err(|error| error.to_string())?;
    Ok(RECORDER.get_or_init(|| handle).clone())
}

/// Folds samples until `shutdown` stops.
pub async fn upkeep(handle: PrometheusHandle, shutdown: Shutdown) {
    loop {
        tokio::select! {
            () = tokio::time::sleep(UPKEEP_EVERY) => handle.run_upkeep(),
            () = shutdown.stopping() => return,
        }
    }
}
