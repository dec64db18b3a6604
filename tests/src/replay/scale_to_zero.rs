//! `autoscaler/scale_to_zero`: the scaler's verdict, one moment a row.

use super::config::{config, texts, wish};
use super::reconcile::condition;
use super::row::{Verdict, at, int, part, same};
use super::serverless_service::path;
use autoscaler::knative::annotations::resolve;
use policy::active::Activity;
use policy::compat::Compat;
use policy::zero::{self, Probe, Target, ZeroInput, patch};
use serde_json::Value;
use std::time::Duration;

pub(super) fn judge(row: &Value, mode: Compat) -> Verdict {
    let annotations = texts(&row["annotations"])?;
    let wish = wish(&annotations, &Value::Null, &row["reachability"])?;
    let deadline = Duration::from_secs(part(&row["progress_deadline_s"])?);
    let resolved = resolve(&wish, &config(&row["config"], mode)?, deadline, mode);
    let input = ZeroInput {
        desired: part(&row["desired_in"])?,
        excess_burst_capacity: 0,
        ready: 0,
        bounds: &resolved.bounds,
        spec: &resolved.scale,
        path_through_activator_for: millis(&row["sks_proxy_for_ms"])?,
        probe_ok: row["probe"] == "ok",
    };
    let initialized = part(&row["scale_target_initialized"])?;
    let activity = Activity::restore(condition(&row["active"])?, at(0), initialized);
    let now = at(int(&row["active_for_ms"])?);
    let got = zero::verdict(&input, &activity, path(&row["sks_mode"])?, now, mode);
    let patched = patch(got.order, target(&row["replicas"], part(&row["target_exists"])?)?);

    let out = &row["out"];
    same("want", part(&out["want"])?, got.want)?;
    same("error", out["error"] != "", patched.is_err())?;
    same("patch_replicas", part(&out["patch_replicas"])?, patched.unwrap_or(None))?;
    let rechecks: Vec<u128> = got.recheck_after.iter().map(Duration::as_millis).collect();
    same("requeue_after_ms", part(&out["requeue_after_ms"])?, rechecks)?;
    let calls = u32::from(got.probe != Probe::Unused);
    same("probe_calls", part(&out["probe_calls"])?, calls)?;
    let offered = got.probe == Probe::Failed;
    same("async_probe_offered", part(&out["async_probe_offered"])?, offered)
}

/// How many pods the target asks for.
pub(super) fn target(replicas: &Value, exists: bool) -> Verdict<Target> {
    Ok(match (exists, part(replicas)?) {
        (false, _) => Target::Missing,
        (true, None) => Target::Unset,
        (true, Some(pods)) => Target::Pods(pods),
    })
}

fn millis(value: &Value) -> Verdict<Option<Duration>> {
    let millis: Option<u64> = part(value)?;
    Ok(millis.map(Duration::from_millis))
}
