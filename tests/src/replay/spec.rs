//! Specs of the scale decision and of windows, as rows write them.

use super::row::{Verdict, part};
use policy::revision::{Aggregation, Metric, ScaleSpec, WindowSpec};
use serde::Deserialize;
use serde_json::Value;
use std::time::Duration;

#[derive(Deserialize)]
struct SpecRow {
    max_scale_up_rate: f64,
    max_scale_down_rate: f64,
    metric: String,
    target: f64,
    total: f64,
    tbc: f64,
    activator_capacity: f64,
    panic_threshold: f64,
    stable_window_s: u64,
    scale_down_delay_s: u64,
    initial_scale: i32,
    reachable: bool,
    activation_scale: i32,
}

/// Input of the decision, from a row's `spec`.
pub fn scale_spec(value: &Value) -> Verdict<ScaleSpec> {
    let row: SpecRow = part(value)?;
    Ok(ScaleSpec {
        metric: if row.metric == "rps" { Metric::Rps } else { Metric::Concurrency },
        target: row.target,
        total: row.total,
        target_burst_capacity: row.tbc,
        activator_capacity: row.activator_capacity,
        panic_threshold: row.panic_threshold,
        stable_window: Duration::from_secs(row.stable_window_s),
        max_scale_up_rate: row.max_scale_up_rate,
        max_scale_down_rate: row.max_scale_down_rate,
        scale_down_delay: Duration::from_secs(row.scale_down_delay_s),
        initial_scale: row.initial_scale,
        activation_scale: row.activation_scale,
        reachable: row.reachable,
    })
}

#[derive(Deserialize)]
struct WindowRow {
    stable_window_s: u64,
    panic_window_s: u64,
    algorithm: String,
}

/// The windows of a metric.
pub fn window_spec(value: &Value) -> Verdict<WindowSpec> {
    let row: WindowRow = part(value)?;
    let aggregation = match row.algorithm.as_str() {
        "weightedExponential" | "weighted-exponential" => Aggregation::WeightedExponential,
        _ => Aggregation::Linear,
    };
    Ok(WindowSpec {
        stable: Duration::from_secs(row.stable_window_s),
        panic: Duration::from_secs(row.panic_window_s),
        aggregation,
    })
}
