//! Names of annotations.

use super::Annotations;

/// One annotation, which may have had another spelling once.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// The spelling that counts.
    pub name: &'static str,
    /// The one that is read where the other is absent.
    pub old: Option<&'static str>,
}

impl Key {
    /// Its value, with the spelling that was used. The newer one counts even
    /// if its value makes no sense.
    pub fn find<'a>(&self, annotations: &'a Annotations) -> Option<(&'static str, &'a str)> {
        let find = |name: &'static str| annotations.get(name).map(|value| (name, value.as_str()));
        find(self.name).or_else(|| find(self.old?))
    }
}

macro_rules! keys {
    ($($(#[$doc:meta])* $constant:ident = $name:literal $(, $old:literal)?;)*) => {
        $($(#[$doc])* pub const $constant: Key = Key {
            name: concat!("autoscaling.knative.dev/", $name),
            old: keys!(@old $($old)?),
        };)*

        /// All of them, but for [`PROGRESS_DEADLINE`].
        pub const ALL: &[Key] = &[$($constant),*];
    };
    (@old) => { None };
    (@old $old:literal) => { Some(concat!("autoscaling.knative.dev/", $old)) };
}

keys! {
    /// Whose reconciler it belongs to.
    CLASS = "class";
    /// What load is measured in.
    METRIC = "metric";
    /// How seconds of a window are weighed.
    ALGORITHM = "metric-aggregation-algorithm", "metricAggregationAlgorithm";
    /// Lower bound, in pods.
    MIN_SCALE = "min-scale", "minScale";
    /// Upper bound, in pods.
    MAX_SCALE = "max-scale", "maxScale";
    /// Pods to reach once.
    INITIAL_SCALE = "initial-scale", "initialScale";
    /// Pods to start when any is wanted.
    ACTIVATION_SCALE = "activation-scale";
    /// Load that one pod can carry.
    TARGET = "target";
    /// How much of it to aim for, in percent.
    TARGET_UTILIZATION = "target-utilization-percentage", "targetUtilizationPercentage";
    /// Spare load before the activator leaves the path.
    TARGET_BURST_CAPACITY = "target-burst-capacity", "targetBurstCapacity";
    /// Length of the stable window.
    WINDOW = "window";
    /// Length of the panic window, in percent of it.
    PANIC_WINDOW = "panic-window-percentage", "panicWindowPercentage";
    /// Load from which on there is panic, in percent of what ready pods carry.
    PANIC_THRESHOLD = "panic-threshold-percentage", "panicThresholdPercentage";
    /// Shortest life of the last pod after the load has ended.
    RETENTION = "scale-to-zero-pod-retention-period", "scaleToZeroPodRetentionPeriod";
    /// How long a lower load must last before pods go.
    SCALE_DOWN_DELAY = "scale-down-delay", "scaleDownDelay";
}

/// How long a start may take.
pub const PROGRESS_DEADLINE: Key = Key { name: "serving.knative.dev/progress-deadline", old: None };

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_documented() {
        let text = include_str!("../../../../docs/autoscaler.md");
        for key in ALL {
            let name = key.name.rsplit('/').next().unwrap();
            assert!(text.contains(&format!("`{name}`")), "{name} is not in docs/autoscaler.md");
        }
        assert!(text.contains(&format!("`{}`", PROGRESS_DEADLINE.name)));
        // Which have no older spelling is told there.
        let without: Vec<&str> = ALL.iter().filter(|key| key.old.is_none()).map(|key| &key.name[24..]).collect();
        assert_eq!(without, ["class", "metric", "activation-scale", "target", "window"]);
    }

    #[test]
    fn the_newer_spelling_counts_whatever_its_value() {
        let both = [("autoscaling.knative.dev/min-scale", "x"), ("autoscaling.knative.dev/minScale", "2")];
        let mut annotations: Annotations = both.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect();
        assert_eq!(MIN_SCALE.find(&annotations), Some((MIN_SCALE.name, "x")));
        annotations.remove(MIN_SCALE.name);
        assert_eq!(MIN_SCALE.find(&annotations), Some(("autoscaling.knative.dev/minScale", "2")));
        assert_eq!(WINDOW.find(&annotations), None);
    }
}
