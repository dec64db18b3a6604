//! `config-autoscaler`: how revisions scale where they do not say otherwise.

use super::bounds::check;
use super::map::{read, span, trimmed};
use super::{ConfigFault, Data};
use crate::knative::text::{boolean, float, int32};
use policy::compat::Compat;
use policy::revision::ScaleSpec;
use std::ops::RangeInclusive;
use std::time::Duration;

/// Lowest load that a pod may be said to carry.
pub const TARGET_LOWEST: f64 = 0.01;

/// Shortest stable window.
pub const WINDOW_SHORTEST: Duration = Duration::from_secs(6);

/// Longest stable window; also the longest retention and scale-down delay that
/// a revision may ask for.
pub const WINDOW_LONGEST: Duration = Duration::from_secs(3600);

/// Length of the panic window, in percent of the stable one.
pub const PANIC_WINDOW_PERCENTAGE: RangeInclusive<f64> = 1.0..=100.0;

/// Utilisation to aim for where load is not measured as concurrency; no key
/// changes it.
pub const NOT_CONCURRENCY_UTILIZATION: f64 = 0.7;

/// The settings, checked.
#[derive(Clone, Debug, PartialEq)]
pub struct AutoscalerConfig {
    /// `pod-autoscaler-class`: whose a revision is that does not say.
    pub pod_autoscaler_class: String,
    /// `enable-scale-to-zero`.
    pub enable_scale_to_zero: bool,
    /// `allow-zero-initial-scale`, here and in annotations.
    pub allow_zero_initial_scale: bool,
    /// `initial-scale`: pods to reach once.
    pub initial_scale: i32,
    /// `min-scale`: lower bound.
    pub min_scale: i32,
    /// `max-scale`: upper bound; 0 = none.
    pub max_scale: i32,
    /// `max-scale-limit`: highest upper bound that is admitted; 0 = any.
    pub max_scale_limit: i32,
    /// `max-scale-up-rate`, a ratio.
    pub max_scale_up_rate: f64,
    /// `max-scale-down-rate`, a ratio.
    pub max_scale_down_rate: f64,
    /// `container-concurrency-target-percentage`, as a fraction.
    pub container_concurrency_target_fraction: f64,
    /// `container-concurrency-target-default`: what a pod without a limit
    /// carries, in requests at a time.
    pub container_concurrency_target_default: f64,
    /// `requests-per-second-target-default`: what a pod carries.
    pub requests_per_second_target_default: f64,
    /// `target-burst-capacity`, in requests at a time; -1 = without bound.
    pub target_burst_capacity: f64,
    /// `activator-capacity`: what one activator carries, in requests at a time.
    pub activator_capacity: f64,
    /// `stable-window`.
    pub stable_window: Duration,
    /// `panic-window-percentage`, of the stable window.
    pub panic_window_percentage: f64,
    /// `panic-threshold-percentage`, of what the ready pods carry.
    pub panic_threshold_percentage: f64,
    /// `scale-to-zero-grace-period`.
    pub scale_to_zero_grace_period: Duration,
    /// `scale-to-zero-pod-retention-period`.
    pub scale_to_zero_pod_retention_period: Duration,
    /// `scale-down-delay`.
    pub scale_down_delay: Duration,
}

impl Default for AutoscalerConfig {
    fn default() -> AutoscalerConfig {
        let spec = ScaleSpec::KNATIVE;
        AutoscalerConfig {
            pod_autoscaler_class: "kpa.autoscaling.knative.dev".to_owned(),
            enable_scale_to_zero: true,
            allow_zero_initial_scale: false,
            initial_scale: spec.initial_scale,
            min_scale: 0,
            max_scale: 0,
            max_scale_limit: 0,
            max_scale_up_rate: spec.max_scale_up_rate,
            max_scale_down_rate: spec.max_scale_down_rate,
            container_concurrency_target_fraction: 0.7,
            container_concurrency_target_default: spec.total,
            requests_per_second_target_default: 200.0,
            target_burst_capacity: spec.target_burst_capacity,
            activator_capacity: spec.activator_capacity,
            stable_window: spec.stable_window,
            panic_window_percentage: 10.0,
            panic_threshold_percentage: 200.0,
            scale_to_zero_grace_period: Duration::from_secs(30),
            scale_to_zero_pod_retention_period: Duration::ZERO,
            scale_down_delay: spec.scale_down_delay,
        }
    }
}

/// Spans as they were read, in nanoseconds: they may be negative still.
pub(super) struct Spans {
    pub(super) stable_window: i64,
    pub(super) scale_down_delay: i64,
    pub(super) grace: i64,
    pub(super) retention: i64,
}

impl AutoscalerConfig {
    /// From the map's text.
    ///
    /// # Errors
    /// The first value that does not read, by kind of value (text, boolean,
    /// fraction, whole number, span); else the first that is not allowed.
    pub fn parse(data: &Data, compat: Compat) -> Result<AutoscalerConfig, ConfigFault> {
        let base = AutoscalerConfig::default();
        let nanos = |span: Duration| i64::try_from(span.as_nanos()).unwrap_or(i64::MAX);
        let pod_autoscaler_class = read(data, "pod-autoscaler-class", base.pod_autoscaler_class, trimmed)?;

        let flag = |key, default| read(data, key, default, boolean);
        let enable_scale_to_zero = flag("enable-scale-to-zero", base.enable_scale_to_zero)?;
        let allow_zero_initial_scale = flag("allow-zero-initial-scale", base.allow_zero_initial_scale)?;

        let number = |key, default| read(data, key, default, float);
        let max_scale_up_rate = number("max-scale-up-rate", base.max_scale_up_rate)?;
        let max_scale_down_rate = number("max-scale-down-rate", base.max_scale_down_rate)?;
        let percentage = number("container-concurrency-target-percentage", base.container_concurrency_target_fraction)?;
        let container_concurrency_target_default =
            number("container-concurrency-target-default", base.container_concurrency_target_default)?;
        let requests_per_second_target_default =
            number("requests-per-second-target-default", base.requests_per_second_target_default)?;
        let target_burst_capacity = number("target-burst-capacity", base.target_burst_capacity)?;
        let panic_window_percentage = number("panic-window-percentage", base.panic_window_percentage)?;
        let activator_capacity = number("activator-capacity", base.activator_capacity)?;
        let panic_threshold_percentage = number("panic-threshold-percentage", base.panic_threshold_percentage)?;

        let count = |key, default| read(data, key, default, int32);
        let initial_scale = count("initial-scale", base.initial_scale)?;
        let min_scale = count("min-scale", base.min_scale)?;
        let max_scale = count("max-scale", base.max_scale)?;
        let max_scale_limit = count("max-scale-limit", base.max_scale_limit)?;

        let time = |key, default: Duration| read(data, key, nanos(default), span);
        let spans = Spans {
            stable_window: time("stable-window", base.stable_window)?,
            scale_down_delay: time("scale-down-delay", base.scale_down_delay)?,
            grace: time("scale-to-zero-grace-period", base.scale_to_zero_grace_period)?,
            retention: time("scale-to-zero-pod-retention-period", base.scale_to_zero_pod_retention_period)?,
        };

        let whole = |nanos: i64| Duration::from_nanos(u64::try_from(nanos).unwrap_or(0));
        let config = AutoscalerConfig {
            pod_autoscaler_class,
            enable_scale_to_zero,
            allow_zero_initial_scale,
            initial_scale,
            min_scale,
            max_scale,
            max_scale_limit,
            max_scale_up_rate,
            max_scale_down_rate,
            // So `1` is all of it, and `1.01` very little.
            container_concurrency_target_fraction: if percentage > 1.0 { percentage / 100.0 } else { percentage },
            container_concurrency_target_default,
            requests_per_second_target_default,
            target_burst_capacity,
            activator_capacity,
            stable_window: whole(spans.stable_window),
            panic_window_percentage,
            panic_threshold_percentage,
            scale_to_zero_grace_period: whole(spans.grace),
            scale_to_zero_pod_retention_period: whole(spans.retention),
            scale_down_delay: whole(spans.scale_down_delay),
        };
        check(&config, &spans, compat).map_err(ConfigFault::Validate)?;
        Ok(config)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(pairs: &[(&str, &str)], compat: Compat) -> Result<AutoscalerConfig, ConfigFault> {
        let data = pairs.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect();
        AutoscalerConfig::parse(&data, compat)
    }

    #[test]
    fn an_empty_map_and_unknown_keys_are_the_defaults() {
        assert_eq!(parse(&[], Compat::Strict), Ok(AutoscalerConfig::default()));
        let old = parse(&[("tick-interval", "no span"), ("_example", "x")], Compat::Better);
        assert_eq!(old, Ok(AutoscalerConfig::default()));
    }

    #[test]
    fn each_key_is_documented() {
        let (_, parsed) = include_str!("autoscaler.rs").split_once("pub fn parse").unwrap();
        let (parsed, _) = parsed.split_once("let whole").unwrap();
        let keys: Vec<&str> = parsed.split('"').skip(1).step_by(2).collect();
        let text = include_str!("../../../../docs/autoscaler.md");
        for key in &keys {
            assert!(text.contains(&format!("| `{key}` | ")), "{key} is not in docs/autoscaler.md");
        }
        assert_eq!(keys.len(), 20);
    }

    #[test]
    fn what_does_not_read_is_told_before_what_is_not_allowed() {
        let fault = parse(&[("min-scale", "-1"), ("stable-window", "60")], Compat::Better).unwrap_err();
        let text = "failed to parse data: failed to parse \"stable-window\": time: missing unit in duration \"60\"";
        assert_eq!(fault, ConfigFault::Parse(text.to_owned()));
    }

    #[test]
    fn what_is_not_finite_is_refused_unless_strict() {
        for (key, value) in [
            ("max-scale-up-rate", "nan"),
            ("max-scale-down-rate", "inf"),
            ("container-concurrency-target-percentage", "NaN"),
            ("container-concurrency-target-default", "inf"),
            ("requests-per-second-target-default", "nan"),
            ("target-burst-capacity", "nan"),
            ("activator-capacity", "+Inf"),
            ("panic-window-percentage", "nan"),
            ("panic-threshold-percentage", "-inf"),
        ] {
            let better = parse(&[(key, value)], Compat::Better).unwrap_err();
            assert!(better.as_str().starts_with(key), "{better:?}");
            assert!(matches!(better, ConfigFault::Validate(_)));
            assert!(parse(&[(key, value)], Compat::Strict).is_ok(), "{key}={value}");
        }
    }
}
