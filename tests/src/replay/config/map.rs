//! A config map as a whole.

use super::super::row::{Verdict, differs, exact, part, same};
use autoscaler::knative::config::{AutoscalerConfig, ConfigFault, Data, NOT_CONCURRENCY_UTILIZATION};
use policy::compat::Compat;
use serde_json::Value;
use std::time::Duration;

pub(super) fn judge(row: &Value, mode: Compat) -> Verdict {
    let data: Data = part(&row["data"])?;
    match (AutoscalerConfig::parse(&data, mode), row["error"].as_str()) {
        (Ok(config), None) => same_values(&row["values"], &config),
        (Ok(_), Some(text)) => differs(format!("expected an error: {text}")),
        (Err(fault), None) => differs(format!("unexpected error: {}", fault.as_str())),
        (Err(fault), Some(text)) => same_fault(row, text, &fault),
    }
}

/// Kind and key count; the texts are only for people.
fn same_fault(row: &Value, text: &str, fault: &ConfigFault) -> Verdict {
    let kind = match fault {
        ConfigFault::Parse(_) => "parse",
        ConfigFault::Validate(_) => "validate",
    };
    same("error_kind", row["error_kind"].as_str(), Some(kind))?;
    let got = key(kind, fault.as_str());
    if key(kind, text) == got {
        return Ok(());
    }
    differs(format!("key of the error: expected {text:?}, got {:?}", fault.as_str()))
}

/// The key that an error is about: the one that does not read, in quotes, or
/// the first word.
pub(super) fn key<'a>(kind: &str, text: &'a str) -> &'a str {
    let mut parts = text.split(if kind == "parse" { '"' } else { ' ' });
    match kind {
        "parse" => parts.nth(1).unwrap_or(text),
        _ => parts.next().unwrap_or(text),
    }
}

fn same_values(values: &Value, config: &AutoscalerConfig) -> Verdict {
    let Some(values) = values.as_object() else { return differs("malformed row: no values") };
    for (key, value) in values {
        same_value(key, value, config)?;
    }
    Ok(())
}

fn same_value(key: &str, value: &Value, config: &AutoscalerConfig) -> Verdict {
    let number = |got: f64| exact(key, value, got);
    let count = |got: i32| same(key, part(value)?, got);
    let flag = |got: bool| same(key, part(value)?, got);
    let nanos = |got: Duration| same(key, part(value)?, got.as_nanos());
    match key {
        "pod-autoscaler-class" => same(key, value.as_str(), Some(config.pod_autoscaler_class.as_str())),
        "enable-scale-to-zero" => flag(config.enable_scale_to_zero),
        "allow-zero-initial-scale" => flag(config.allow_zero_initial_scale),
        "initial-scale" => count(config.initial_scale),
        "min-scale" => count(config.min_scale),
        "max-scale" => count(config.max_scale),
        "max-scale-limit" => count(config.max_scale_limit),
        "max-scale-up-rate" => number(config.max_scale_up_rate),
        "max-scale-down-rate" => number(config.max_scale_down_rate),
        "container-concurrency-target-fraction" => number(config.container_concurrency_target_fraction),
        "container-concurrency-target-default" => number(config.container_concurrency_target_default),
        "requests-per-second-target-default" => number(config.requests_per_second_target_default),
        "target-utilization" => number(NOT_CONCURRENCY_UTILIZATION),
        "target-burst-capacity" => number(config.target_burst_capacity),
        "activator-capacity" => number(config.activator_capacity),
        "panic-window-percentage" => number(config.panic_window_percentage),
        "panic-threshold-percentage" => number(config.panic_threshold_percentage),
        "stable-window-ns" => nanos(config.stable_window),
        "scale-to-zero-grace-period-ns" => nanos(config.scale_to_zero_grace_period),
        "scale-to-zero-pod-retention-period-ns" => nanos(config.scale_to_zero_pod_retention_period),
        "scale-down-delay-ns" => nanos(config.scale_down_delay),
        other => differs(format!("malformed row: unknown value {other}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// More than the rows ask for: every word of a fault is as recorded.
    #[test]
    fn the_texts_of_all_faults_are_as_recorded() {
        let rows = include_str!("../../../vectors/autoscaler/config.jsonl");
        let mut faults = 0;
        for line in rows.lines() {
            let row: Value = serde_json::from_str(line).unwrap();
            let Some(text) = row["error"].as_str() else { continue };
            let data: Data = serde_json::from_value(row["data"].clone()).unwrap();
            let fault = AutoscalerConfig::parse(&data, Compat::Strict).unwrap_err();
            assert_eq!(fault.as_str(), text);
            faults += 1;
        }
        assert_eq!(faults, 53);
    }

    #[test]
    fn the_key_of_an_error_is_the_first_that_it_names() {
        assert_eq!(key("parse", "failed to parse data: failed to parse \"min-scale\": x"), "min-scale");
        assert_eq!(key("validate", "min-scale (2) must be less than max-scale (1)"), "min-scale");
    }
}
