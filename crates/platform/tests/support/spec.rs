//! A revision's limits with Knative's defaults, as far as tests care.

use policy::revision::{Aggregation, Bounds, Metric, RevisionSpec, ScaleSpec, Timeouts, WindowSpec};
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
        scale: ScaleSpec {
            metric: Metric::Concurrency,
            target: 70.0,
            total: 100.0,
            target_burst_capacity: 200.0,
            activator_capacity: 100.0,
            panic_threshold: 2.0,
            stable_window: minute,
            max_scale_up_rate: 1000.0,
            max_scale_down_rate: 2.0,
            scale_down_delay: Duration::ZERO,
            initial_scale: 0,
            activation_scale: 1,
            reachable: true,
        },
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
