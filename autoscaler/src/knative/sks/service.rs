//! The two services of a revision: the private one, behind which Kubernetes
//! puts its pods, and the public one, behind which we put pods or activators.

use super::{HTTPS_PORT, Protocol};
use serde_json::{Value, json};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// A port of a service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServicePort {
    /// Its name.
    pub name: Cow<'static, str>,
    /// Where clients connect.
    pub port: u16,
    /// Where they get to.
    pub target: TargetPort,
    /// What is spoken there (`appProtocol`), where it is said.
    pub speaks: Option<Cow<'static, str>>,
}

/// A port of a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TargetPort {
    /// By number.
    Number(u16),
    /// By the name that the container gives it.
    Name(Cow<'static, str>),
}

/// What a service is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceSpec {
    /// Labels of the pods behind it; none where endpoints are written by hand.
    pub selector: BTreeMap<String, String>,
    /// Its ports.
    pub ports: Vec<ServicePort>,
}

impl ServiceSpec {
    /// The service behind which are the pods with these labels.
    pub fn private(selector: &BTreeMap<String, String>, protocol: Protocol) -> ServiceSpec {
        let named = |name: &'static str, port| {
            let target = TargetPort::Name(name.into());
            ServicePort { name: name.into(), port, target, speaks: None }
        };
        let number = protocol.sidecar_port();
        // A mesh that routes to single pods knows the port by its number.
        let single = match protocol {
            Protocol::Http1 => "http-istio",
            Protocol::H2c => "http2-istio",
        };
        ServiceSpec {
            selector: selector.clone(),
            ports: vec![
                requests(protocol, 80),
                https(),
                named("http-autometric", 9090),
                named("http-usermetric", 9091),
                ServicePort { name: single.into(), port: number, target: TargetPort::Number(number), speaks: None },
            ],
        }
    }

    /// The service by which a revision is reached.
    pub fn public(protocol: Protocol) -> ServiceSpec {
        let port = match protocol {
            Protocol::Http1 => 80,
            Protocol::H2c => 81,
        };
        ServiceSpec { selector: BTreeMap::new(), ports: vec![requests(protocol, port), https()] }
    }

    /// As it stands in the object.
    pub fn json(&self) -> Value {
        let ports: Vec<Value> = self.ports.iter().map(ServicePort::json).collect();
        let mut json = json!({ "ports": ports });
        if !self.selector.is_empty() {
            json["selector"] = json!(self.selector);
        }
        json
    }
}

fn requests(protocol: Protocol, port: u16) -> ServicePort {
    let (name, speaks) = match protocol {
        Protocol::Http1 => ("http", None),
        Protocol::H2c => ("http2", Some("kubernetes.io/h2c".into())),
    };
    ServicePort { name: name.into(), port, target: TargetPort::Number(protocol.sidecar_port()), speaks }
}

fn https() -> ServicePort {
    ServicePort { name: "https".into(), port: 443, target: TargetPort::Number(HTTPS_PORT), speaks: None }
}

impl ServicePort {
    fn json(&self) -> Value {
        let target = match &self.target {
            TargetPort::Number(number) => Value::from(*number),
            TargetPort::Name(name) => Value::from(&**name),
        };
        let mut json = json!({ "name": self.name, "port": self.port, "protocol": "TCP", "targetPort": target });
        if let Some(speaks) = &self.speaks {
            json["appProtocol"] = Value::from(&**speaks);
        }
        json
    }
}
