//! `activator/capacity_*`: which pods are an activator's, and how many
//! requests it may have at them.

use super::row::{Miss, Verdict, at, differs, list, located, part, parts, same};
use policy::assign::{Plan, Target, plan};
use policy::backends::{Backends, Destination};
use policy::compat::Compat;
use policy::endpoints::{Place, Port, Seat, Subset};
use policy::pick::Rule;
use serde_json::Value;
use std::collections::BTreeSet;

/// No recorded sidecar hands anything back.
fn never(_: &Destination) -> bool {
    false
}

pub(super) fn assign(row: &Value, _mode: Compat) -> Verdict {
    let limit: u32 = part(&row["cc"])?;
    let place = place(row)?;
    let rule = rule(&row["policy"])?;
    same("policy", rule, Rule::for_limit(limit))?;
    match row["kind"].as_str() {
        Some("pod") => {
            let plan = plan(limit, &Backends::Pods(destinations(&row["pods"])?), place, never);
            let expected: Vec<u32> = parts(&row["pod_capacities"])?;
            let Target::Pods { pods, limit: each } = &plan.to else {
                return differs("the plan has no pods");
            };
            // 1 is the recording's placeholder for no limit.
            same("pod capacities", expected, vec![each.unwrap_or(1); pods.len()])?;
            same_plan(row, limit, &plan)
        }
        Some("cluster_ip") => {
            let backends = Backends::ClusterIp {
                address: part::<String>(&row["cluster_ip"])?.into(),
                ready: (0..part(&row["ready_backends"])?).map(numbered).collect(),
            };
            same_capacity(row, limit, &plan(limit, &backends, place, never))
        }
        _ => Err(Miss::NotJudged),
    }
}

pub(super) fn public_endpoints(row: &Value, mode: Compat) -> Verdict {
    let limit: u32 = part(&row["cc"])?;
    let own: String = part(&row["self"])?;
    let protocol: String = part(&row["port_name"])?;
    let mut seat = Seat::new(own.into(), mode);
    let earlier: Vec<Value> = parts(&row["earlier"])?;
    for object in earlier.iter().chain([&row["subsets"]]) {
        seat.observe(&subsets(object)?, &protocol, at(0));
    }
    let place = seat.place(at(0));
    same("place", self::place(row)?, place)?;
    same_plan(row, limit, &plan(limit, &Backends::Pods(destinations(&row["pods"])?), place, never))
}

pub(super) fn sequences(row: &Value, _mode: Compat) -> Verdict {
    let limit: u32 = part(&row["cc"])?;
    let (mut backends, mut seen) = (Backends::default(), Place::default());
    for (number, step) in list(&row["steps"])?.iter().enumerate() {
        match step["op"].as_str() {
            Some("dests") => backends = self::backends(step)?,
            Some("activators") => seen = place(step)?,
            _ => return differs("malformed row: unknown op"),
        }
        let plan = plan(limit, &backends, seen, never);
        let verdict = same_step(step, limit, &plan, &backends);
        located(|| format!("step {number}"), verdict)?;
    }
    Ok(())
}

fn same_step(step: &Value, limit: u32, plan: &Plan, backends: &Backends) -> Verdict {
    let expected: String = part(&step["cluster_ip_in_use"])?;
    let in_use = match &plan.to {
        Target::ClusterIp(address) => address,
        Target::Pods { .. } => "",
    };
    same("cluster IP in use", expected.as_str(), in_use)?;
    same("backends", part(&step["backends"])?, backends.count())?;
    // Beside a cluster IP the recording shows an old list, which nobody uses.
    if in_use.is_empty() { same_plan(step, limit, plan) } else { same_capacity(step, limit, plan) }
}

fn same_plan(row: &Value, limit: u32, plan: &Plan) -> Verdict {
    let expected: Vec<String> = parts(&row["assigned"])?;
    let assigned: Vec<&str> = match &plan.to {
        Target::Pods { pods, .. } => pods.iter().map(|pod| &**pod).collect(),
        Target::ClusterIp(_) => Vec::new(),
    };
    same("assigned", expected.iter().map(String::as_str).collect(), assigned)?;
    same_capacity(row, limit, plan)
}

fn same_capacity(row: &Value, limit: u32, plan: &Plan) -> Verdict {
    // Without a limit only closed and open are told apart.
    let capacity = if limit == 0 { plan.capacity.min(1) } else { plan.capacity };
    same("revision capacity", part(&row["revision_capacity"])?, capacity)
}

fn place(row: &Value) -> Verdict<Place> {
    let index: i64 = part(&row["index"])?;
    Ok(Place { activators: part(&row["activators"])?, index: u32::try_from(index).ok(), left: false })
}

/// A rule by the reference's name for it.
pub(super) fn rule(name: &Value) -> Verdict<Rule> {
    match name.as_str() {
        Some("random-choice-2") => Ok(Rule::LeastOfTwo),
        Some("first-available") => Ok(Rule::FirstFree),
        Some("round-robin") => Ok(Rule::RoundRobin),
        _ => differs("malformed row: unknown policy"),
    }
}

/// A set of destinations; null stands for none.
pub(super) fn destinations(value: &Value) -> Verdict<BTreeSet<Destination>> {
    let texts: Vec<String> = parts(value)?;
    Ok(texts.into_iter().map(Destination::from).collect())
}

fn numbered(n: u32) -> Destination {
    format!("ready-{n}").into()
}

fn backends(step: &Value) -> Verdict<Backends> {
    let address: String = part(&step["cluster_ip"])?;
    let pods = destinations(&step["pods"])?;
    let one_address = !address.is_empty();
    Ok(if one_address { Backends::ClusterIp { address: address.into(), ready: pods } } else { Backends::Pods(pods) })
}

fn subsets(object: &Value) -> Verdict<Vec<Subset>> {
    let subsets: Vec<Value> = parts(object)?;
    subsets.iter().map(subset).collect()
}

fn subset(value: &Value) -> Verdict<Subset> {
    let addresses = |value: &Value| -> Verdict<_> {
        let texts: Vec<String> = parts(value)?;
        Ok(texts.into_iter().map(Into::into).collect())
    };
    let mut ports = Vec::new();
    let values: Vec<Value> = parts(&value["ports"])?;
    for port in &values {
        ports.push(Port { name: part::<String>(&port["name"])?.into(), number: part(&port["port"])? });
    }
    Ok(Subset { ports, ready: addresses(&value["ready"])?, not_ready: addresses(&value["not_ready"])? })
}
