//! PodAutoscalers of our class: one for each revision, with what is wanted of
//! it and how far that has come (autoscaler reference, sections 12 to 14).
//!
//! [`reconcile()`] takes one object with all that belongs to it and the last
//! decision, and says what is to be written.

mod activity;
mod reconcile;
#[cfg(test)]
mod tests;
mod write;

pub(super) use activity::tell_of_owner;
pub use reconcile::{Fault, Outcome, Seen, reconcile};
pub use write::Write;

use super::annotations::{Reachability, Wish};
use super::conditions::Conditions;
use super::object::{Meta, ObjectRef, conditions_json};
use super::sks::Protocol;
use serde_json::{Map, Value};

/// Conditions that must hold.
pub const NEEDED: &[&str] = &[ACTIVE, SCALE_TARGET_INITIALIZED, SKS_READY];

/// It serves requests.
pub const ACTIVE: &str = "Active";

/// It was started once.
pub const SCALE_TARGET_INITIALIZED: &str = "ScaleTargetInitialized";

/// Its service is ready.
pub const SKS_READY: &str = "SKSReady";

/// What is asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PaSpec {
    /// Requests at one pod at a time; 0 = no limit.
    pub container_concurrency: u32,
    /// Whether a route leads to the revision.
    pub reachability: Reachability,
    /// What requests speak.
    pub protocol: Protocol,
    /// What is scaled.
    pub target: ObjectRef,
}

/// How far it has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PaStatus {
    /// Pods wanted; -1 = unknown, `None` before the first look.
    pub desired_scale: Option<i32>,
    /// Ready pods; `None` before the first look.
    pub actual_scale: Option<u32>,
    /// The service by which the revision is reached; empty while there is none.
    pub service_name: String,
    /// The service whose endpoints are its pods; empty while there is none.
    pub metrics_service_name: String,
    /// The generation of the spec that it is about.
    pub observed_generation: i64,
    /// See [`NEEDED`].
    pub conditions: Conditions,
}

impl Default for PaStatus {
    fn default() -> PaStatus {
        PaStatus {
            desired_scale: None,
            actual_scale: None,
            service_name: String::new(),
            metrics_service_name: String::new(),
            observed_generation: 0,
            conditions: Conditions::new(NEEDED),
        }
    }
}

impl PaStatus {
    /// As it stands in the object.
    pub fn json(&self) -> Value {
        let mut json = Map::new();
        let mut put = |key: &str, value: Option<Value>| {
            if let Some(value) = value {
                json.insert(key.to_owned(), value);
            }
        };
        let name = |name: &String| (!name.is_empty()).then(|| Value::from(name.as_str()));
        put("desiredScale", self.desired_scale.map(Value::from));
        put("actualScale", self.actual_scale.map(Value::from));
        put("serviceName", name(&self.service_name));
        put("metricsServiceName", name(&self.metrics_service_name));
        put("observedGeneration", Some(self.observed_generation.into()));
        put("conditions", Some(conditions_json(&self.conditions)));
        Value::Object(json)
    }
}

/// An object of this kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodAutoscaler {
    /// Name, labels, annotations and generation.
    pub meta: Meta,
    /// What is asked for.
    pub spec: PaSpec,
    /// How far it has come.
    pub status: PaStatus,
}

impl PodAutoscaler {
    /// What it says of its scaling.
    pub fn wish(&self) -> Wish<'_> {
        Wish {
            annotations: &self.meta.annotations,
            container_concurrency: self.spec.container_concurrency,
            reachability: self.spec.reachability,
        }
    }
}
