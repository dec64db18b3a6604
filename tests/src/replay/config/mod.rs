//! `autoscaler/config`: config maps, the admission of annotations, what a
//! revision's settings come to, and the HorizontalPodAutoscaler made of them.

mod admission;
mod hpa;
mod map;
mod resolve;

use super::row::{Verdict, differs, part};
use autoscaler::knative::annotations::{Reachability, Wish};
use autoscaler::knative::config::{AutoscalerConfig, Data};
use policy::compat::Compat;
use serde_json::Value;
use std::collections::BTreeMap;

pub(super) fn judge(row: &Value, mode: Compat) -> Verdict {
    match row["kind"].as_str() {
        Some("config") => map::judge(row, mode),
        Some("annotations") => admission::judge(row, mode),
        Some("resolve") => resolve::judge(row, mode),
        Some("hpa") => hpa::judge(row, mode),
        _ => differs("malformed row: unknown kind"),
    }
}

/// The settings of `config-autoscaler` that a row starts from.
pub(super) fn config(value: &Value, mode: Compat) -> Verdict<AutoscalerConfig> {
    let data: Data = part(value)?;
    AutoscalerConfig::parse(&data, mode).or_else(|fault| differs(format!("config: {}", fault.as_str())))
}

/// Annotations, or any other map of texts.
pub(super) fn texts(value: &Value) -> Verdict<BTreeMap<String, String>> {
    part(value)
}

/// What a row's revision says of its scaling.
pub(super) fn wish<'a>(
    annotations: &'a BTreeMap<String, String>,
    concurrency: &Value,
    reachability: &Value,
) -> Verdict<Wish<'a>> {
    let limit: Option<u32> = part(concurrency)?;
    let reachability = Reachability::parse(reachability.as_str().unwrap_or_default());
    Ok(Wish { annotations, container_concurrency: limit.unwrap_or(0), reachability })
}
