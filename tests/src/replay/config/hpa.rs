//! The HorizontalPodAutoscaler of a revision that Kubernetes scales.

use super::super::row::{Verdict, part, same};
use super::{config, texts, wish};
use autoscaler::knative::annotations::resolve;
use autoscaler::knative::hpa::{Goal, HpaSpec};
use autoscaler::knative::object::ObjectRef;
use policy::compat::Compat;
use serde_json::{Value, json};
use std::time::Duration;

pub(super) fn judge(row: &Value, mode: Compat) -> Verdict {
    let annotations = texts(&row["annotations"])?;
    let wish = wish(&annotations, &Value::Null, &row["reachability"])?;
    let bounds = resolve(&wish, &config(&row["config"], mode)?, Duration::MAX, mode).bounds;
    let got = HpaSpec::new(&wish, &bounds, &ObjectRef::default(), mode);
    same("min", part(&row["min"])?, got.min_replicas)?;
    same("max", part(&row["max"])?, got.max_replicas)?;
    let metrics: Vec<Value> = got.goal.iter().map(metric).collect();
    same("metrics", &row["metrics"], &Value::from(metrics))?;
    let both = got.stabilization_seconds.map(|seconds| [seconds, seconds]);
    same("stabilization_up_down_s", part(&row["stabilization_up_down_s"])?, both)
}

/// A goal as rows write it.
fn metric(goal: &Goal) -> Value {
    let average = |kind: &str, name: &str, value: String| json!({ "type": kind, "name": name, "target_type": "AverageValue", "average_value": value });
    match goal {
        Goal::CpuUtilization(percent) => {
            json!({ "type": "Resource", "name": "cpu", "target_type": "Utilization", "average_utilization": percent })
        }
        Goal::Memory(quantity) => average("Resource", "memory", quantity.to_string()),
        Goal::Pods(name, quantity) => average("Pods", name, quantity.to_string()),
    }
}
