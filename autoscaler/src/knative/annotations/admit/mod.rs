//! Whether annotations are admitted when a revision is made.
//!
//! All faults are told, each once, in the order of their text. A key is named
//! as it was spelled.

mod load;
mod refusal;
mod scale;
mod time;

pub use refusal::Refusal;

use super::{Annotations, algorithm, class, keys, metric};
use crate::knative::config::AutoscalerConfig;
use policy::compat::Compat;
use refusal::Refusals;

/// What is wrong with annotations; nothing if they are admitted.
pub fn admit(annotations: &Annotations, config: &AutoscalerConfig, compat: Compat) -> Vec<Refusal> {
    let mut refusals = Refusals::default();
    class(annotations, &mut refusals);
    scale::bounds(annotations, config, &mut refusals);
    scale::initial(annotations, config, &mut refusals);
    load::check(annotations, compat, &mut refusals);
    time::check(annotations, &mut refusals);
    measure(annotations, config, &mut refusals);
    weights(annotations, &mut refusals);
    refusals.merged()
}

/// Names in Knative's own domain are its own.
fn class(annotations: &Annotations, refusals: &mut Refusals) {
    let Some((key, value)) = keys::CLASS.find(annotations) else { return };
    if value.ends_with(class::OURS) && ![class::KPA, class::HPA].contains(&value) {
        refusals.invalid(value, key);
    }
}

fn measure(annotations: &Annotations, config: &AutoscalerConfig, refusals: &mut Refusals) {
    let Some((key, value)) = keys::METRIC.find(annotations) else { return };
    let class = keys::CLASS.find(annotations).map_or(config.pod_autoscaler_class.as_str(), |(_, class)| class);
    let known = match class {
        class::KPA => [metric::CONCURRENCY, metric::RPS].contains(&value),
        class::HPA => !value.is_empty(),
        _ => true,
    };
    if !known {
        refusals.invalid(value, key);
    }
}

/// Only where the class is said to be ours.
fn weights(annotations: &Annotations, refusals: &mut Refusals) {
    let ours = keys::CLASS.find(annotations).is_some_and(|(_, class)| class == class::KPA);
    let Some((key, value)) = keys::ALGORITHM.find(annotations).filter(|_| ours) else { return };
    if !["", algorithm::LINEAR, algorithm::WEIGHTED, algorithm::WEIGHTED_OLD].contains(&value) {
        refusals.invalid(value, key);
    }
}

#[cfg(test)]
mod tests {
    use super::keys::Key;
    use super::*;

    fn refused(pairs: &[(Key, &str)], config: &AutoscalerConfig, compat: Compat) -> Vec<String> {
        let annotations = pairs.iter().map(|(key, value)| (key.name.to_owned(), value.to_string())).collect();
        admit(&annotations, config, compat).iter().map(Refusal::to_string).collect()
    }

    fn strict(pairs: &[(Key, &str)]) -> Vec<String> {
        refused(pairs, &AutoscalerConfig::default(), Compat::Strict)
    }

    #[test]
    fn faults_with_the_same_words_are_one_with_all_keys() {
        let both = strict(&[
            (keys::WINDOW, "60.5s"),
            (keys::SCALE_DOWN_DELAY, "1.5s"),
            (keys::MIN_SCALE, "x"),
            (keys::MAX_SCALE, "x"),
        ]);
        assert_eq!(
            both,
            [
                "invalid value: x: autoscaling.knative.dev/max-scale, autoscaling.knative.dev/min-scale",
                "must be specified with at most second precision: \
             autoscaling.knative.dev/scale-down-delay, autoscaling.knative.dev/window",
            ]
        );
    }

    #[test]
    fn what_is_not_finite_is_refused_unless_strict() {
        let floats = [
            keys::TARGET,
            keys::TARGET_UTILIZATION,
            keys::TARGET_BURST_CAPACITY,
            keys::PANIC_WINDOW,
            keys::PANIC_THRESHOLD,
        ];
        for key in floats {
            assert!(strict(&[(key, "nan")]).is_empty(), "{key:?}");
            for value in ["nan", "inf", "-Inf"] {
                let better = refused(&[(key, value)], &AutoscalerConfig::default(), Compat::Better);
                assert_eq!(better.len(), 1, "{key:?} {better:?}");
            }
            let huge = refused(&[(key, "1e999")], &AutoscalerConfig::default(), Compat::Better);
            assert_eq!(huge, strict(&[(key, "1e999")]));
            assert_eq!(huge, [format!("invalid value: 1e999: {}", key.name)]);
        }
    }

    #[test]
    fn one_that_does_not_read_is_not_taken_for_unlimited() {
        let config = AutoscalerConfig { max_scale: 5, max_scale_limit: 10, ..AutoscalerConfig::default() };
        let got = refused(&[(keys::MAX_SCALE, "x")], &config, Compat::Strict);
        assert_eq!(got, ["invalid value: x: autoscaling.knative.dev/max-scale"]);
    }

    #[test]
    fn the_activation_scale_lies_between_the_bounds() {
        let act =
            |min, act, max| strict(&[(keys::MIN_SCALE, min), (keys::ACTIVATION_SCALE, act), (keys::MAX_SCALE, max)]);
        assert!(act("2", "2", "2").is_empty() && act("0", "9", "0").is_empty());
        assert_eq!(
            act("4", "3", "9"),
            ["min-scale=4 is greater than activation-scale=3: autoscaling.knative.dev/activation-scale"]
        );
        assert_eq!(
            act("1", "3", "2"),
            ["max-scale=2 is less than activation-scale=3: autoscaling.knative.dev/activation-scale"]
        );
    }
}
