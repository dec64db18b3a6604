//! User metrics.

use super::super::observed::{Held, Observed, holds};
use super::{Check, by_default, check};
use policy::compat::Compat;
use serde_json::Value;

/// The original's gauge keeps the last sample for ever; ours may fall.
const DEPTH: &str = "kn_serving_queue_depth";

pub(super) const CHECKS: &[Check] = &[
    check("prometheus-request-metrics", "the series of the contract are there", contract),
    by_default("prometheus-request-metrics", "the pod has its name", |seen| {
        let all = series(seen)?;
        let info = all.iter().find(|series| series["name"] == "target_info");
        let pod = info.map_or(&Value::Null, |info| &info["labels"]["k8s_pod_name"]);
        holds(pod == "pod-1", || format!("k8s_pod_name is {pod}"))
    }),
    check("prometheus-error-status", "a request that timed out is counted as such", |seen| {
        let count = |name: &str, status: &str| -> Result<f64, String> {
            let fits =
                |series: &&Value| series["name"] == name && series["labels"]["http_response_status_code"] == status;
            Ok(series(seen)?.iter().filter(fits).filter_map(|series| series["value"].as_f64()).sum())
        };
        for status in ["404", "502", "504"] {
            for name in ["http_server_request_duration_seconds_count", "kn_serving_invocation_duration_seconds_count"] {
                let there = count(name, status)?;
                holds((there - 1.0).abs() < 1e-9, || format!("{name} {status}: {there}"))?;
            }
        }
        let fine = count("kn_serving_invocation_duration_seconds_count", "200")?;
        holds(fine < 1e-9, || format!("{fine} are counted as 200"))
    }),
];

/// The recorded `kn_` and `http_server_` series and their labels.
fn contract(seen: &Observed) -> Held {
    let wanted = seen.recorded("text", 0);
    let ours = |name: &str| name.starts_with("kn_") || name.starts_with("http_server_");
    let page = seen.nth("text", 0)?.0;
    let all = series(seen)?;
    for want in wanted["series"].as_array().into_iter().flatten() {
        let name = want["name"].as_str().unwrap_or_default();
        if ours(name) {
            let there = all.iter().any(|series| fits(want, series, seen.mode));
            holds(there, || format!("no {name} {} of {}", want["labels"], want["value"]))?;
        }
    }
    for what in ["types", "bucket_bounds"] {
        for (name, want) in wanted[what].as_object().into_iter().flatten().filter(|(name, _)| ours(name)) {
            let got = &page[what][name];
            holds(got == want, || format!("{what} of {name}: expected {want}, got {got}"))?;
        }
    }
    holds(page["status"] == 200 && page["content_type"] == wanted["content_type"], || {
        format!("{} {}", page["status"], page["content_type"])
    })
}

/// By default the client's Host may not be a label: that one is unbounded.
fn fits(want: &Value, series: &Value, mode: Compat) -> bool {
    let mut labels = want["labels"].as_object().into_iter().flatten();
    let bounded = |label: &str| mode == Compat::Better && label == "server_address";
    let same = labels.all(|(label, value)| bounded(label) || &series["labels"][label] == value);
    let depth = mode == Compat::Better && want["name"] == DEPTH;
    series["name"] == want["name"] && same && (depth || series["value"].as_f64() == want["value"].as_f64())
}

fn series<'a>(seen: &Observed<'a>) -> Result<&'a [Value], String> {
    let page = seen.nth("text", 0)?.0;
    page["series"].as_array().map(Vec::as_slice).ok_or_else(|| "there is no page of metrics".to_owned())
}
