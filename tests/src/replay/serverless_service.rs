//! `autoscaler/sks`: the reconcile of a ServerlessService.

use super::conditions::same_conditions;
use super::row::{Verdict, at, differs, list, located, part, parts, same};
use autoscaler::knative::object::{Existing, Meta, ObjectRef};
use autoscaler::knative::sks::{
    Fault, Outcome, Protocol, Seen, ServerlessService, ServiceSpec, SksSpec, SksStatus, Write, reconcile,
};
use policy::compat::Compat;
use policy::endpoints::{Port, Subset};
use policy::world::Path;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What the public endpoints of all rows say before.
const STALE: &str = "10.9.9.9";

pub(super) fn judge(row: &Value, _mode: Compat) -> Verdict {
    let sks = ServerlessService {
        meta: Meta { name: "rev".into(), namespace: "ns".into(), generation: 1, ..Meta::default() },
        spec: spec(row)?,
        status: SksStatus::default(),
    };
    let selector = BTreeMap::from([("app".to_owned(), "rev".to_owned())]);
    let there = |name: &str| part::<bool>(&row["exists"][name]);
    // Owned where a row does not say otherwise.
    let owned = |name: &str| row["exists"][name].as_bool().unwrap_or(true);
    let private_service = there("private_service")?.then(|| Existing {
        is: ServiceSpec::private(&selector, sks.spec.protocol),
        owned: owned("private_service_owned"),
    });
    let public_service = there("public_service")?
        .then(|| Existing { is: ServiceSpec::public(sks.spec.protocol), owned: owned("public_service_owned") });
    let stale = Subset { ready: vec![STALE.into()], ..Subset::default() };
    let public_endpoints =
        there("public_endpoints")?.then(|| Existing { is: vec![stale], owned: owned("public_endpoints_owned") });
    let pods = subsets(row, "private_ports", "private_ready", "private_not_ready")?;
    let activators = subsets(row, "activator_ports", "activators_ready", "activators_not_ready")?;
    let seen = Seen {
        sks: &sks,
        selector: &selector,
        private_service: private_service.as_ref(),
        public_service: public_service.as_ref(),
        private_endpoints: there("private_endpoints")?.then_some(&pods),
        public_endpoints: public_endpoints.as_ref(),
        activator_endpoints: there("activator_endpoints")?.then_some(&activators),
    };
    same_outcome(&row["out"], &reconcile(&seen, at(0)))
}

fn spec(row: &Value) -> Verdict<SksSpec> {
    Ok(SksSpec {
        path: path(&row["mode"])?,
        num_activators: part(&row["num_activators"])?,
        target: ObjectRef::default(),
        protocol: Protocol::parse(row["protocol"].as_str().unwrap_or_default()),
    })
}

/// A path by the word of the spec.
pub(super) fn path(mode: &Value) -> Verdict<Path> {
    match mode.as_str() {
        Some("Proxy") => Ok(Path::Activator),
        Some("Serve") => Ok(Path::Direct),
        _ => differs("malformed row: unknown mode"),
    }
}

/// Kubernetes lists no ports where there are no addresses.
fn subsets(row: &Value, ports: &str, ready: &str, not_ready: &str) -> Verdict<Vec<Subset>> {
    let addresses = |key: &str| -> Verdict<Vec<Arc<str>>> {
        let texts: Vec<String> = parts(&row[key])?;
        Ok(texts.into_iter().map(Arc::from).collect())
    };
    let numbers: Vec<u16> = parts(&row[ports])?;
    let ports = numbers.into_iter().map(|number| Port { name: number.to_string().into(), number }).collect();
    let subset = Subset { ports, ready: addresses(ready)?, not_ready: addresses(not_ready)? };
    let empty = subset.ready.is_empty() && subset.not_ready.is_empty();
    Ok(if empty { Vec::new() } else { vec![subset] })
}

fn same_outcome(out: &Value, got: &Outcome) -> Verdict {
    let writes: Vec<&str> = got.writes.iter().map(word).collect();
    same("writes", parts::<String>(&out["writes"])?.iter().map(String::as_str).collect(), writes)?;
    let error = got.fault.as_ref().map_or_else(String::new, Fault::to_string);
    same("error", out["error"].as_str(), Some(error.as_str()))?;
    located(|| "public_endpoints".to_owned(), same_endpoints(&out["public_endpoints"], got))?;
    let status = &out["status"];
    same("service", status["service"].as_str(), Some(got.status.service_name.as_str()))?;
    same("private_service", status["private_service"].as_str(), Some(got.status.private_service_name.as_str()))?;
    same_conditions(&status["conditions"], &got.status.conditions)
}

fn word(write: &Write) -> &'static str {
    match write {
        Write::CreateService(..) => "create services",
        Write::UpdateService(..) => "update services",
        Write::CreateEndpoints(..) => "create endpoints",
        Write::UpdateEndpoints(..) => "update endpoints",
    }
}

fn same_endpoints(expected: &Value, got: &Outcome) -> Verdict {
    let written = got.writes.iter().find_map(|write| match write {
        Write::CreateEndpoints(_, subsets) | Write::UpdateEndpoints(_, subsets) => Some(subsets),
        _ => None,
    });
    let Some(got) = written else { return same("written", expected.is_null(), true) };
    let expected = list(expected)?;
    same("subsets", expected.len(), got.len())?;
    for (expected, got) in expected.iter().zip(got) {
        let texts = |list: &[Arc<str>]| list.iter().map(|text| text.to_string()).collect::<Vec<_>>();
        same("ready", parts(&expected["ready"])?, texts(&got.ready))?;
        same("not_ready", parts(&expected["not_ready"])?, texts(&got.not_ready))?;
        same("ports", parts(&expected["ports"])?, got.ports.iter().map(|port| port.number).collect::<Vec<_>>())?;
    }
    Ok(())
}
