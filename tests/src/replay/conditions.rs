//! Conditions, as rows write them.

use super::row::{Verdict, at, differs, same};
use autoscaler::knative::conditions::{Condition, Conditions};
use serde_json::{Value, json};

/// The two lists are equal, times included.
pub(super) fn same_conditions(expected: &Value, got: &Conditions) -> Verdict {
    let Some(expected) = expected.as_array() else { return differs("malformed row: no conditions") };
    let got: Vec<Value> = got.iter().map(condition).collect();
    for (expected, got) in expected.iter().zip(&got) {
        same("condition", expected, got)?;
    }
    same("number of conditions", expected.len(), got.len())
}

fn condition(condition: &Condition) -> Value {
    json!({
        "type": condition.kind,
        "status": condition.truth.as_str(),
        "severity": if condition.info { "Info" } else { "" },
        "reason": condition.reason,
        "message": condition.message,
        "since_ms": condition.since.unix_millis() - at(0).unix_millis(),
    })
}
