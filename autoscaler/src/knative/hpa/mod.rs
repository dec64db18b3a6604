//! PodAutoscalers that Kubernetes scales: the HorizontalPodAutoscaler made of
//! one, and what is said of it (autoscaler reference, section 16). Nothing is
//! decided or collected for them, and they never go to zero.

mod quantity;
mod reconcile;

pub use quantity::Quantity;
pub use reconcile::{Outcome, Replicas, Seen, Write, reconcile};

use super::annotations::{Annotations, Wish, keys, metric};
use super::object::{Child, HORIZONTAL_POD_AUTOSCALER, Meta, ObjectRef, POD_AUTOSCALER};
use super::text::{duration, float};
use policy::compat::Compat;
use policy::revision::Bounds;
use serde_json::{Value, json};

/// What Kubernetes is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HpaSpec {
    /// What is scaled.
    pub target: ObjectRef,
    /// Lower bound; `None` = Kubernetes' own, which is 1.
    pub min_replicas: Option<i32>,
    /// Upper bound.
    pub max_replicas: i32,
    /// What is measured, and how much of it one pod should have; `None` =
    /// Kubernetes' own choice.
    pub goal: Option<Goal>,
    /// For how many seconds both a lower and a higher number must have been
    /// right; `None` = Kubernetes' own.
    pub stabilization_seconds: Option<i32>,
}

/// What is measured, and how much of it one pod should have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Goal {
    /// CPU time, in percent of what it asks for.
    CpuUtilization(i32),
    /// Memory.
    Memory(Quantity),
    /// Something that pods tell, by its name.
    Pods(String, Quantity),
}

impl HpaSpec {
    /// For a revision that says `wish`, within these bounds.
    pub fn new(wish: &Wish<'_>, bounds: &Bounds, target: &ObjectRef, compat: Compat) -> HpaSpec {
        HpaSpec {
            target: target.clone(),
            min_replicas: Some(bounds.min_scale).filter(|&pods| pods > 0),
            max_replicas: if bounds.max_scale == 0 { i32::MAX } else { bounds.max_scale },
            goal: goal(wish, compat),
            stabilization_seconds: stabilization(wish.annotations),
        }
    }

    /// As it stands in the object.
    pub fn json(&self) -> Value {
        let mut json = json!({ "scaleTargetRef": self.target.json(), "maxReplicas": self.max_replicas });
        if let Some(pods) = self.min_replicas {
            json["minReplicas"] = pods.into();
        }
        if let Some(goal) = &self.goal {
            json["metrics"] = json!([goal.json()]);
        }
        if let Some(seconds) = self.stabilization_seconds {
            let window = json!({ "stabilizationWindowSeconds": seconds });
            json["behavior"] = json!({ "scaleUp": window, "scaleDown": window });
        }
        json
    }

    /// The object for the revision of this pod autoscaler.
    pub fn object(&self, pa: &Meta) -> Value {
        let child = Child {
            kind: HORIZONTAL_POD_AUTOSCALER,
            name: &pa.name,
            owner_kind: POD_AUTOSCALER,
            owner: pa,
            labels: &[],
            without: None,
        };
        child.json("spec", self.json())
    }
}

/// Only where a target is given, and reads.
fn goal(wish: &Wish<'_>, compat: Compat) -> Option<Goal> {
    let (_, text) = keys::TARGET.find(wish.annotations)?;
    let target = float(text).ok().filter(|target| target.is_finite() || compat == Compat::Strict)?;
    // `as` takes the nearest that fits, and 0 for no number.
    let whole = target as i64;
    Some(match wish.metric() {
        metric::CPU => Goal::CpuUtilization(target.ceil() as i32),
        metric::MEMORY => Goal::Memory(Quantity::Mebibytes(whole)),
        other => Goal::Pods(other.to_owned(), Quantity::Count(whole)),
    })
}

/// Whole seconds of the window; the cluster's own window does not count here.
fn stabilization(annotations: &Annotations) -> Option<i32> {
    let (_, text) = keys::WINDOW.find(annotations)?;
    let seconds = duration(text).ok()? / 1_000_000_000;
    Some(i32::try_from(seconds).unwrap_or(i32::MAX))
}

impl Goal {
    fn json(&self) -> Value {
        let resource =
            |name: &str, target: Value| json!({ "type": "Resource", "resource": { "name": name, "target": target } });
        let average = |quantity: &Quantity| json!({ "type": "AverageValue", "averageValue": quantity.to_string() });
        match self {
            Goal::CpuUtilization(percent) => {
                resource(metric::CPU, json!({ "type": "Utilization", "averageUtilization": percent }))
            }
            Goal::Memory(quantity) => resource(metric::MEMORY, average(quantity)),
            Goal::Pods(name, quantity) => {
                json!({ "type": "Pods", "pods": { "metric": { "name": name }, "target": average(quantity) } })
            }
        }
    }
}
