//! From annotations and config to what the decisions take.

use super::read::Reader;
use super::{Annotations, algorithm, class, keys, metric};
use crate::knative::config::{AutoscalerConfig, NOT_CONCURRENCY_UTILIZATION, TARGET_LOWEST};
use policy::compat::Compat;
use policy::revision::{Aggregation, Bounds, Metric, ScaleSpec, WindowSpec};
use std::time::Duration;

/// Whether a route leads to a revision (`spec.reachability`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reachability {
    /// It is not known yet; as good as reachable.
    #[default]
    Unknown,
    /// One does.
    Reachable,
    /// None does.
    Unreachable,
}

impl Reachability {
    /// From the field's text.
    pub fn parse(text: &str) -> Reachability {
        match text {
            "Reachable" => Reachability::Reachable,
            "Unreachable" => Reachability::Unreachable,
            _ => Reachability::Unknown,
        }
    }
}

/// What a revision says of its scaling.
#[derive(Clone, Copy, Debug)]
pub struct Wish<'a> {
    /// Its annotations.
    pub annotations: &'a Annotations,
    /// Requests at one pod at a time; 0 = no limit.
    pub container_concurrency: u32,
    /// Whether a route leads to it.
    pub reachability: Reachability,
}

/// What follows from it.
#[derive(Clone, Debug, PartialEq)]
pub struct Resolved {
    /// Whose it is; where it does not say, ours.
    pub class: String,
    /// What load is measured in, by name. All but `rps` is taken for
    /// concurrency by our windows.
    pub metric: String,
    /// How seconds are weighed, by name; empty where it is not said.
    pub algorithm: String,
    /// Input of the decision.
    pub scale: ScaleSpec,
    /// The windows over which load is averaged.
    pub windows: WindowSpec,
    /// Bounds, and the way to zero.
    pub bounds: Bounds,
}

impl Wish<'_> {
    /// Whose it is; where it does not say, ours.
    pub fn class(&self) -> &str {
        self.annotations.get(keys::CLASS.name).map_or(class::KPA, String::as_str)
    }

    /// What load is measured in; where it does not say, what is usual for its
    /// class.
    pub fn metric(&self) -> &str {
        let usual = match self.class() {
            class::KPA => metric::CONCURRENCY,
            class::HPA => metric::CPU,
            _ => "",
        };
        self.annotations.get(keys::METRIC.name).map_or(usual, String::as_str)
    }
}

/// What the decisions take for a revision that says `wish`, where it does not
/// say otherwise by `config` and the deployments' `progress_deadline`.
pub fn resolve(wish: &Wish<'_>, config: &AutoscalerConfig, progress_deadline: Duration, compat: Compat) -> Resolved {
    let read = Reader { annotations: wish.annotations, compat };
    let algorithm = match read.text(keys::ALGORITHM) {
        Some(algorithm::WEIGHTED_OLD) => algorithm::WEIGHTED,
        other => other.unwrap_or_default(),
    };
    Resolved {
        class: wish.class().to_owned(),
        metric: wish.metric().to_owned(),
        algorithm: algorithm.to_owned(),
        scale: scale(wish, config, read),
        windows: windows(algorithm, config, read),
        bounds: bounds(wish, config, progress_deadline, read),
    }
}

fn scale(wish: &Wish<'_>, config: &AutoscalerConfig, read: Reader<'_>) -> ScaleSpec {
    let (target, total) = target(wish, config, read);
    let threshold = read.number(keys::PANIC_THRESHOLD).unwrap_or(config.panic_threshold_percentage);
    ScaleSpec {
        metric: if wish.metric() == metric::RPS { Metric::Rps } else { Metric::Concurrency },
        target,
        total,
        target_burst_capacity: read.number(keys::TARGET_BURST_CAPACITY).unwrap_or(config.target_burst_capacity),
        activator_capacity: config.activator_capacity,
        panic_threshold: threshold / 100.0,
        stable_window: read.span(keys::WINDOW).unwrap_or(config.stable_window),
        max_scale_up_rate: config.max_scale_up_rate,
        max_scale_down_rate: config.max_scale_down_rate,
        scale_down_delay: read.span(keys::SCALE_DOWN_DELAY).unwrap_or(config.scale_down_delay),
        initial_scale: initial_scale(config, read),
        activation_scale: read.count(keys::ACTIVATION_SCALE).unwrap_or(0),
        reachable: wish.reachability != Reachability::Unreachable,
    }
}

/// What a pod should carry, and what it can carry.
fn target(wish: &Wish<'_>, config: &AutoscalerConfig, read: Reader<'_>) -> (f64, f64) {
    let limit = wish.container_concurrency;
    let (usual, mut utilization) = match wish.metric() {
        metric::RPS => (config.requests_per_second_target_default, NOT_CONCURRENCY_UTILIZATION),
        _ if limit == 0 => (config.container_concurrency_target_default, config.container_concurrency_target_fraction),
        _ => (f64::from(limit), config.container_concurrency_target_fraction),
    };
    let total = match read.number(keys::TARGET) {
        Some(target) if wish.metric() == metric::CONCURRENCY && limit != 0 => least(target, f64::from(limit)),
        Some(target) => target,
        None => usual,
    };
    if let Some(percentage) = read.number(keys::TARGET_UTILIZATION) {
        utilization = percentage / 100.0;
    }
    let target = total * utilization;
    // No number stays none.
    (if target < TARGET_LOWEST { TARGET_LOWEST } else { target }, total)
}

/// The lesser one; no number if one of them is none.
fn least(a: f64, b: f64) -> f64 {
    if a.is_nan() || a < b { a } else { b }
}

/// Zero only where the cluster allows it.
fn initial_scale(config: &AutoscalerConfig, read: Reader<'_>) -> i32 {
    let own = read.count(keys::INITIAL_SCALE);
    own.filter(|&pods| pods != 0 || config.allow_zero_initial_scale).unwrap_or(config.initial_scale)
}

fn windows(algorithm: &str, config: &AutoscalerConfig, read: Reader<'_>) -> WindowSpec {
    let stable = read.span(keys::WINDOW).unwrap_or(config.stable_window);
    let share = read.number(keys::PANIC_WINDOW).unwrap_or(config.panic_window_percentage);
    let aggregation = match algorithm {
        algorithm::WEIGHTED => Aggregation::WeightedExponential,
        _ => Aggregation::Linear,
    };
    WindowSpec { stable, panic: WindowSpec::panic_of(stable, share), aggregation }
}

fn bounds(wish: &Wish<'_>, config: &AutoscalerConfig, progress_deadline: Duration, read: Reader<'_>) -> Bounds {
    let min_scale = match wish.reachability {
        Reachability::Unreachable => 0,
        _ => read.count(keys::MIN_SCALE).unwrap_or(config.min_scale),
    };
    Bounds {
        min_scale,
        max_scale: read.count(keys::MAX_SCALE).unwrap_or(config.max_scale),
        scale_to_zero: config.enable_scale_to_zero,
        grace: config.scale_to_zero_grace_period,
        retention: read.span(keys::RETENTION).unwrap_or(config.scale_to_zero_pod_retention_period),
        progress_deadline: read.span(keys::PROGRESS_DEADLINE).unwrap_or(progress_deadline),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEADLINE: Duration = Duration::from_secs(600);

    fn resolved(pairs: &[(keys::Key, &str)], compat: Compat) -> Resolved {
        let annotations = pairs.iter().map(|(key, value)| (key.name.to_owned(), value.to_string())).collect();
        let wish = Wish { annotations: &annotations, container_concurrency: 10, reachability: Reachability::Unknown };
        resolve(&wish, &AutoscalerConfig::default(), DEADLINE, compat)
    }

    #[test]
    fn what_does_not_read_is_as_if_it_were_not_there() {
        let keys = [
            keys::TARGET,
            keys::TARGET_UTILIZATION,
            keys::TARGET_BURST_CAPACITY,
            keys::WINDOW,
            keys::PANIC_WINDOW,
            keys::PANIC_THRESHOLD,
            keys::RETENTION,
            keys::SCALE_DOWN_DELAY,
            keys::MIN_SCALE,
            keys::MAX_SCALE,
            keys::INITIAL_SCALE,
            keys::ACTIVATION_SCALE,
            keys::PROGRESS_DEADLINE,
        ];
        for compat in [Compat::Strict, Compat::Better] {
            let nothing = resolved(&[], compat);
            for key in keys {
                assert_eq!(resolved(&[(key, "5 apples")], compat), nothing, "{key:?}");
            }
        }
    }

    #[test]
    fn what_is_no_number_counts_only_in_strict_mode() {
        for key in [keys::TARGET, keys::TARGET_UTILIZATION, keys::TARGET_BURST_CAPACITY, keys::PANIC_THRESHOLD] {
            for value in ["nan", "inf"] {
                assert_eq!(resolved(&[(key, value)], Compat::Better), resolved(&[], Compat::Better));
            }
        }
        let strict = resolved(&[(keys::TARGET, "nan")], Compat::Strict).scale;
        assert!(strict.target.is_nan() && strict.total.is_nan());
        assert_eq!(resolved(&[(keys::TARGET, "inf")], Compat::Strict).scale.total, 10.0);
    }

    #[test]
    fn the_deadline_of_a_start_can_be_its_own() {
        assert_eq!(resolved(&[], Compat::Strict).bounds.progress_deadline, DEADLINE);
        let own = resolved(&[(keys::PROGRESS_DEADLINE, "1m")], Compat::Strict);
        assert_eq!(own.bounds.progress_deadline.as_secs(), 60);
    }

    #[test]
    fn the_weights_are_known_by_two_spellings() {
        for (spelling, name, weighted) in [
            ("weightedExponential", "weighted-exponential", true),
            ("weighted-exponential", "weighted-exponential", true),
            ("odd", "odd", false),
        ] {
            let got = resolved(&[(keys::ALGORITHM, spelling)], Compat::Better);
            assert_eq!(got.algorithm, name);
            assert_eq!(got.windows.aggregation == Aggregation::WeightedExponential, weighted);
        }
    }
}
