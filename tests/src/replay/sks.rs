//! `activator/sks`: which activators serve a revision and how many, and the
//! name of its private service.

use super::row::{Miss, Verdict, float, part, parts, same};
use policy::compat::Compat;
use policy::names::private_service;
use policy::revision::ScaleSpec;
use policy::subset::choose;
use policy::zero::num_activators;
use serde_json::Value;

pub(super) fn judge(row: &Value, _mode: Compat) -> Verdict {
    match row["kind"].as_str() {
        Some("subset") => subset(row),
        Some("private_name") => {
            let revision: String = part(&row["revision"])?;
            same("private service", row["private_service"].as_str(), Some(&private_service(&revision)))
        }
        Some("num_activators") => activators(row),
        _ => Err(Miss::NotJudged),
    }
}

fn subset(row: &Value) -> Verdict {
    let addresses: Vec<String> = parts(&row["activators"])?;
    let revision: String = part(&row["target"])?;
    let chosen = choose(addresses.iter().map(String::as_str), &revision, part(&row["n"])?);
    let expected: Vec<String> = parts(&row["chosen"])?;
    same("chosen", expected.iter().map(String::as_str).collect(), chosen)
}

fn activators(row: &Value) -> Verdict {
    let spec = ScaleSpec {
        total: float(&row["total_value"])?,
        target_burst_capacity: float(&row["target_burst_capacity"])?,
        activator_capacity: float(&row["activator_capacity"])?,
        ..ScaleSpec::KNATIVE
    };
    same("activators", part(&row["num_activators"])?, num_activators(part(&row["ready_pods"])?, &spec))
}
