//! What a revision's settings come to.

use super::super::row::{Verdict, exact, part, same};
use super::{config, texts, wish};
use autoscaler::knative::annotations::{Resolved, resolve};
use policy::compat::Compat;
use serde_json::Value;
use std::time::Duration;

pub(super) fn judge(row: &Value, mode: Compat) -> Verdict {
    let annotations = texts(&row["annotations"])?;
    let wish = wish(&annotations, &row["container_concurrency"], &row["reachability"])?;
    // No row depends on it.
    let deadline = Duration::from_secs(600);
    let got = resolve(&wish, &config(&row["config"], mode)?, deadline, mode);
    same("class", row["class"].as_str(), Some(got.class.as_str()))?;
    same("bounds", part(&row["bounds"])?, [got.bounds.min_scale, got.bounds.max_scale])?;
    same_decider(&row["decider"], &got)?;
    let windows = &row["metric_spec"];
    same("algorithm", windows["algorithm"].as_str(), Some(got.algorithm.as_str()))?;
    same_nanos("stable_window_ns", windows, got.windows.stable)?;
    same_nanos("panic_window_ns", windows, got.windows.panic)
}

fn same_decider(decider: &Value, got: &Resolved) -> Verdict {
    let scale = &got.scale;
    same("metric", decider["metric"].as_str(), Some(got.metric.as_str()))?;
    for (key, value) in [
        ("target", scale.target),
        ("total", scale.total),
        ("tbc", scale.target_burst_capacity),
        ("activator_capacity", scale.activator_capacity),
        ("panic_threshold", scale.panic_threshold),
        ("max_scale_up_rate", scale.max_scale_up_rate),
        ("max_scale_down_rate", scale.max_scale_down_rate),
    ] {
        exact(key, &decider[key], value)?;
    }
    same("initial_scale", part(&decider["initial_scale"])?, scale.initial_scale)?;
    same("activation_scale", part(&decider["activation_scale"])?, scale.activation_scale)?;
    same("reachable", part(&decider["reachable"])?, scale.reachable)?;
    same_nanos("stable_window_ns", decider, scale.stable_window)?;
    same_nanos("scale_down_delay_ns", decider, scale.scale_down_delay)
}

fn same_nanos(key: &str, of: &Value, got: Duration) -> Verdict {
    same(key, part(&of[key])?, got.as_nanos())
}
