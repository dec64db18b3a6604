//! What `config-autoscaler` may say.

use super::autoscaler::{
    AutoscalerConfig, PANIC_WINDOW_PERCENTAGE, Spans, TARGET_LOWEST, WINDOW_LONGEST, WINDOW_SHORTEST,
};
use crate::knative::text::{show_duration, show_float};
use policy::compat::Compat;
use std::time::Duration;

const SECOND: i64 = 1_000_000_000;

/// The first fault, in the reference's order and words. Comparisons are such
/// that no number passes, as it does there; the better way refuses it first.
pub(super) fn check(config: &AutoscalerConfig, spans: &Spans, compat: Compat) -> Result<(), String> {
    if compat == Compat::Better {
        finite(config)?;
    }
    way_to_zero(spans)?;
    targets(config)?;
    rates(config)?;
    windows(config, spans)?;
    scales(config)
}

/// A number that is none poisons whatever is computed with it.
fn finite(config: &AutoscalerConfig) -> Result<(), String> {
    let numbers = [
        ("max-scale-up-rate", config.max_scale_up_rate),
        ("max-scale-down-rate", config.max_scale_down_rate),
        ("container-concurrency-target-percentage", config.container_concurrency_target_fraction),
        ("container-concurrency-target-default", config.container_concurrency_target_default),
        ("requests-per-second-target-default", config.requests_per_second_target_default),
        ("target-burst-capacity", config.target_burst_capacity),
        ("panic-window-percentage", config.panic_window_percentage),
        ("activator-capacity", config.activator_capacity),
        ("panic-threshold-percentage", config.panic_threshold_percentage),
    ];
    match numbers.iter().find(|(_, value)| !value.is_finite()) {
        Some((key, value)) => Err(format!("{key} = {}, must be a finite number", show_float(*value))),
        None => Ok(()),
    }
}

fn refuse_if(refused: bool, why: impl FnOnce() -> String) -> Result<(), String> {
    if refused { Err(why()) } else { Ok(()) }
}

fn way_to_zero(spans: &Spans) -> Result<(), String> {
    let Spans { grace, retention, scale_down_delay: delay, .. } = *spans;
    refuse_if(grace <= 0, || format!("scale-to-zero-grace-period must be positive, was: {}", show_duration(grace)))?;
    refuse_if(retention < 0, || {
        format!("scale-to-zero-pod-retention-period cannot be negative, was: {}", show_duration(retention))
    })?;
    refuse_if(delay < 0, || format!("scale-down-delay cannot be negative, was: {}", show_duration(delay)))?;
    whole_seconds("scale-down-delay", delay)
}

fn whole_seconds(key: &str, nanos: i64) -> Result<(), String> {
    refuse_if(nanos % SECOND != 0, || {
        format!("{key} = {}, must be specified with at most second precision", show_duration(nanos))
    })
}

fn targets(config: &AutoscalerConfig) -> Result<(), String> {
    let burst = config.target_burst_capacity;
    refuse_if(burst < 0.0 && burst != -1.0, || {
        format!("target-burst-capacity must be either non-negative or -1 (for unlimited), was: {burst:.6}")
    })?;
    let fraction = config.container_concurrency_target_fraction;
    refuse_if(fraction <= 0.0 || fraction > 1.0, || {
        format!("container-concurrency-target-percentage = {fraction:.6} is outside of valid range of (0, 100]")
    })?;
    let target = fraction * config.container_concurrency_target_default;
    refuse_if(target < TARGET_LOWEST, || {
        format!(
            "container-concurrency-target-percentage and container-concurrency-target-default \
             yield target concurrency of {}, can't be less than {TARGET_LOWEST}",
            show_float(target)
        )
    })?;
    let rate = config.requests_per_second_target_default;
    refuse_if(rate < TARGET_LOWEST, || {
        format!("requests-per-second-target-default must be at least {TARGET_LOWEST}, was: {}", show_float(rate))
    })?;
    let capacity = config.activator_capacity;
    refuse_if(capacity < 1.0, || format!("activator-capacity = {}, must be at least 1", show_float(capacity)))
}

fn rates(config: &AutoscalerConfig) -> Result<(), String> {
    for (key, rate) in
        [("max-scale-up-rate", config.max_scale_up_rate), ("max-scale-down-rate", config.max_scale_down_rate)]
    {
        refuse_if(rate <= 1.0, || format!("{key} = {}, must be greater than 1.0", show_float(rate)))?;
    }
    Ok(())
}

fn windows(config: &AutoscalerConfig, spans: &Spans) -> Result<(), String> {
    let window = spans.stable_window;
    let nanos = |span: Duration| i64::try_from(span.as_nanos()).unwrap_or(i64::MAX);
    let (shortest, longest) = (nanos(WINDOW_SHORTEST), nanos(WINDOW_LONGEST));
    refuse_if(window < shortest || window > longest, || {
        let [window, shortest, longest] = [window, shortest, longest].map(show_duration);
        format!("stable-window = {window}, must be in [{shortest}; {longest}] range")
    })?;
    whole_seconds("stable-window", window)?;
    let share = config.panic_window_percentage;
    let (least, most) = (*PANIC_WINDOW_PERCENTAGE.start(), *PANIC_WINDOW_PERCENTAGE.end());
    refuse_if(share < least || share > most, || {
        format!("panic-window-percentage = {}, must be in [{least}, {most}] interval", show_float(share))
    })
}

fn scales(config: &AutoscalerConfig) -> Result<(), String> {
    let AutoscalerConfig { initial_scale: initial, min_scale: min, max_scale: max, max_scale_limit: limit, .. } =
        *config;
    refuse_if(initial < 0 || initial == 0 && !config.allow_zero_initial_scale, || {
        format!("initial-scale = {initial}, must be at least 0 (or at least 1 when allow-zero-initial-scale is false)")
    })?;
    refuse_if(limit < 0, || format!("max-scale-limit = {limit}, must be at least 0"))?;
    refuse_if(min < 0, || format!("min-scale = {min}, must be at least 0"))?;
    let least = i32::from(limit > 0);
    refuse_if(max < least || limit > 0 && max > limit, || {
        format!("max-scale = {max}, must be in [{least}, max-scale-limit({limit})] range")
    })?;
    refuse_if(max > 0 && min > max, || format!("min-scale ({min}) must be less than max-scale ({max})"))
}
