//! A revision's limits with Knative's defaults, as far as tests care.

use policy::revision::{Aggregation, Bounds, RevisionSpec, ScaleSpec, Timeouts, WindowSpec};
use std::sync::Arc;
use std::time::Duration;

/// The defaults.
pub fn spec() -> Arc<RevisionSpec> {
    let minute = Duration::from_secs(60);
    let total = Duration::from_secs(300);
    Arc::new(RevisionSpec {
        service: "web".into(),
        configuration: "web-config".into(),
        container_concurrency: 0,
        timeouts: Timeouts { total, response_start: None, idle: None, upgrade: Some(total) },
        scale: ScaleSpec { target_burst_capacity: 200.0, initial_scale: 0, activation_scale: 1, ..ScaleSpec::KNATIVE },
        windows: WindowSpec { stable: minute, panic: Duration::from_secs(6), aggregation: Aggregation::Linear },
        bounds: Bounds {
            min_scale: 0,
            max_scale: 10,
            scale_to_zero: true,
            grace: Duration::ZERO,
            retention: Duration::ZERO,
            progress_deadline: total,
        },
    })
}
