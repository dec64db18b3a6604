//! `autoscaler/metric_status`: what is said of a collection.

use super::row::{Verdict, at, differs, part, same};
use autoscaler::knative::conditions::READY;
use autoscaler::knative::metric::{Collected, MetricStatus};
use policy::compat::Compat;
use serde_json::Value;

pub(super) fn judge(row: &Value, _mode: Compat) -> Verdict {
    let collected = collected(row)?;
    let generation = part(&row["observed_generation"])?;
    let status = MetricStatus::default().after(generation, &collected, at(0));
    let Some(ready) = status.conditions.get(READY) else { return differs("there is no condition") };
    same("ready", row["ready"].as_str(), Some(ready.truth.as_str()))?;
    same("reason", row["reason"].as_str(), Some(ready.reason.as_str()))?;
    same("message", row["message"].as_str(), Some(ready.message.as_str()))?;
    same("conditions", part(&row["conditions"])?, status.conditions.iter().count())?;
    // Whatever came of the collection, it is told and nothing fails.
    same("reconcile_error", row["reconcile_error"].as_bool(), Some(false))
}

/// Rows name the error, with `wrapped` before it where it is inside another.
fn collected(row: &Value) -> Verdict<Collected> {
    let (name, text): (String, String) = (part(&row["collector_error"])?, part(&row["collector_error_text"])?);
    Ok(match name.trim_start_matches("wrapped").trim_start_matches([':', ' ']) {
        "ok" => Collected::Fine,
        "failed_get_endpoints" => Collected::NoEndpoints(text),
        "did_not_receive_stat" => Collected::NoStat(text),
        _ => Collected::Failed(text),
    })
}
