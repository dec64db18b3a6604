//! The object by which collection is asked for, and what is said of it
//! (autoscaler reference, section 15).

use super::conditions::{Conditions, READY};
use super::object::{Child, METRIC, Meta, POD_AUTOSCALER, conditions_json};
use policy::moment::Moment;
use policy::revision::WindowSpec;
use serde_json::{Value, json};
use std::time::Duration;

/// What is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetricSpec {
    /// Length of the stable window.
    pub stable_window: Duration,
    /// Length of the panic window.
    pub panic_window: Duration,
    /// The service whose pods are asked; empty: nobody is.
    pub scrape_target: String,
}

impl MetricSpec {
    /// For a revision with these windows, whose pods `service` stands for.
    /// Where the activator never leaves the path, it knows all there is.
    pub fn new(windows: &WindowSpec, service: &str, target_burst_capacity: f64) -> MetricSpec {
        let scrape_target = if target_burst_capacity == -1.0 { "" } else { service }.to_owned();
        MetricSpec { stable_window: windows.stable, panic_window: windows.panic, scrape_target }
    }

    /// As it stands in the object.
    pub fn json(&self) -> Value {
        let nanos = |span: Duration| u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
        json!({
            "stableWindow": nanos(self.stable_window),
            "panicWindow": nanos(self.panic_window),
            "scrapeTarget": self.scrape_target,
        })
    }

    /// The object for the revision of this pod autoscaler.
    pub fn object(&self, pa: &Meta) -> Value {
        let child =
            Child { kind: METRIC, name: &pa.name, owner_kind: POD_AUTOSCALER, owner: pa, labels: &[], without: None };
        child.json("spec", self.json())
    }
}

/// How the last collection went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Collected {
    /// Well.
    Fine,
    /// The pods of the revision could not be counted.
    NoEndpoints(String),
    /// Not enough different pods answered.
    NoStat(String),
    /// Anything else.
    Failed(String),
}

/// What is said of a collection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetricStatus {
    /// The generation of the spec that it is about.
    pub observed_generation: i64,
    /// `Ready`, and no other.
    pub conditions: Conditions,
}

impl Default for MetricStatus {
    fn default() -> MetricStatus {
        MetricStatus { observed_generation: 0, conditions: Conditions::new(&[]) }
    }
}

impl MetricStatus {
    /// The next status: it never fails, it only says how collection went.
    pub fn after(&self, generation: i64, collected: &Collected, now: Moment) -> MetricStatus {
        let mut next = self.clone();
        next.conditions.begin(self.observed_generation != generation, now);
        match collected {
            Collected::Fine => next.conditions.mark_true(READY, now),
            Collected::NoEndpoints(why) => next.conditions.mark_unknown(READY, "NoEndpoints", why, now),
            Collected::NoStat(why) => next.conditions.mark_false(READY, "DidNotReceiveStat", why, now),
            Collected::Failed(why) => {
                let why = format!("Failed to reconcile metric collection: {why}");
                next.conditions.mark_false(READY, "CollectionFailed", &why, now);
            }
        }
        next.conditions.settle(&self.conditions, now);
        next.observed_generation = generation;
        next
    }

    /// As it stands in the object.
    pub fn json(&self) -> Value {
        json!({
            "observedGeneration": self.observed_generation,
            "conditions": conditions_json(&self.conditions),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use policy::revision::Aggregation;

    #[test]
    fn nobody_is_asked_where_the_activator_never_leaves() {
        let windows = WindowSpec {
            stable: Duration::from_secs(60),
            panic: Duration::from_secs(6),
            aggregation: Aggregation::Linear,
        };
        for (burst, target) in [(-1.0, ""), (0.0, "rev-private"), (211.0, "rev-private")] {
            let spec = MetricSpec::new(&windows, "rev-private", burst);
            assert_eq!(spec.scrape_target, target);
            assert_eq!(spec.json()["stableWindow"], 60_000_000_000_u64);
        }
    }

    #[test]
    fn the_same_outcome_again_changes_nothing() {
        let at = Moment::from_unix_millis;
        let failed = Collected::Failed("boom".into());
        let first = MetricStatus::default().after(1, &failed, at(1000));
        assert_eq!(first.after(1, &failed, at(2000)), first);
        let fine = first.after(2, &Collected::Fine, at(3000));
        assert!(fine.conditions.holds(READY));
        assert_eq!((fine.observed_generation, fine.conditions.get(READY).unwrap().since), (2, at(3000)));
    }
}
