//! ServerlessServices: whether requests to a revision go through activators or
//! straight to its pods (autoscaler reference, section 15).
//!
//! [`reconcile()`] takes one object with all that belongs to it, and says what
//! is to be written.

mod endpoints;
mod reconcile;
mod service;
#[cfg(test)]
mod tests;

pub use endpoints::{ready_addresses, subsets_json};
pub use reconcile::{Fault, Outcome, Seen, Write, reconcile};
pub use service::{ServicePort, ServiceSpec, TargetPort};

use super::conditions::Conditions;
use super::object::{Child, Meta, ObjectRef, POD_AUTOSCALER, SERVERLESS_SERVICE, conditions_json};
use policy::moment::Moment;
use policy::world::Path;
use serde_json::{Map, Value, json};

/// Conditions that must hold.
pub const NEEDED: &[&str] = &[ENDPOINTS_POPULATED];

/// There is somebody to serve requests.
pub const ENDPOINTS_POPULATED: &str = "EndpointsPopulated";

/// Requests go through activators; since when that is so counts on the way to
/// zero.
pub const ACTIVATOR_ENDPOINTS_POPULATED: &str = "ActivatorEndpointsPopulated";

/// What requests to a revision speak (`spec.protocolType`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/1.1.
    #[default]
    Http1,
    /// HTTP/2 without TLS.
    H2c,
}

impl Protocol {
    /// From the field's text.
    pub fn parse(text: &str) -> Protocol {
        if text == "h2c" { Protocol::H2c } else { Protocol::Http1 }
    }

    /// As the field's text.
    pub const fn as_str(self) -> &'static str {
        match self {
            Protocol::Http1 => "http1",
            Protocol::H2c => "h2c",
        }
    }

    /// Port of the sidecar for such requests.
    pub const fn sidecar_port(self) -> u16 {
        match self {
            Protocol::Http1 => 8012,
            Protocol::H2c => 8013,
        }
    }
}

/// Port of the sidecar, and of the activator, for requests with TLS.
pub const HTTPS_PORT: u16 = 8112;

/// The word for a path in `spec.mode`.
pub const fn mode(path: Path) -> &'static str {
    match path {
        Path::Activator => "Proxy",
        Path::Direct => "Serve",
    }
}

/// What is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SksSpec {
    /// How requests should go.
    pub path: Path,
    /// Activators in the path; 0 = all.
    pub num_activators: u32,
    /// What runs the pods.
    pub target: ObjectRef,
    /// What requests speak.
    pub protocol: Protocol,
}

impl SksSpec {
    /// As it stands in the object.
    pub fn json(&self) -> Value {
        json!({
            "mode": mode(self.path),
            "numActivators": self.num_activators,
            "objectRef": self.target.json(),
            "protocolType": self.protocol.as_str(),
        })
    }

    /// The object for the revision of this pod autoscaler.
    pub fn object(&self, pa: &Meta) -> Value {
        let child = Child {
            kind: SERVERLESS_SERVICE,
            name: &pa.name,
            owner_kind: POD_AUTOSCALER,
            owner: pa,
            labels: &[],
            without: Some(super::annotations::keys::METRIC.name),
        };
        child.json("spec", self.json())
    }
}

/// What was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SksStatus {
    /// The service by which the revision is reached; empty while there is none.
    pub service_name: String,
    /// The service whose endpoints are its pods; empty while there is none.
    pub private_service_name: String,
    /// The generation of the spec that it is about.
    pub observed_generation: i64,
    /// See [`NEEDED`].
    pub conditions: Conditions,
}

impl Default for SksStatus {
    fn default() -> SksStatus {
        SksStatus {
            service_name: String::new(),
            private_service_name: String::new(),
            observed_generation: 0,
            conditions: Conditions::new(NEEDED),
        }
    }
}

impl SksStatus {
    /// As it stands in the object.
    pub fn json(&self) -> Value {
        let mut json = Map::new();
        for (key, name) in [("serviceName", &self.service_name), ("privateServiceName", &self.private_service_name)] {
            if !name.is_empty() {
                json.insert(key.to_owned(), name.as_str().into());
            }
        }
        json.insert("observedGeneration".to_owned(), self.observed_generation.into());
        json.insert("conditions".to_owned(), conditions_json(&self.conditions));
        Value::Object(json)
    }

    /// Since when requests go through activators; `None` when they do not.
    pub fn through_activators_since(&self) -> Option<Moment> {
        let condition = self.conditions.get(ACTIVATOR_ENDPOINTS_POPULATED)?;
        (condition.truth == super::conditions::Truth::True).then_some(condition.since)
    }
}

/// An object of this kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerlessService {
    /// Name and generation.
    pub meta: Meta,
    /// What is asked for.
    pub spec: SksSpec,
    /// What was found.
    pub status: SksStatus,
}

impl ServerlessService {
    /// True when it is ready, and what is said of it is about its present spec.
    pub fn is_ready(&self) -> bool {
        let current = self.status.observed_generation == self.meta.generation;
        current && self.status.conditions.holds(super::conditions::READY)
    }

    /// Why it is not ready, in a sentence.
    pub fn why_not_ready(&self) -> &str {
        self.status.conditions.get(super::conditions::READY).map_or("", |ready| &ready.message)
    }
}
