//! `autoscaler/scale_to_zero`: the scaler's verdict, one moment a row.
//!
//! Rows give settings as text. Those that are about reading such text (values
//! that do not parse, older spellings) are not judged here: that is the work
//! of the settings, not of the verdict.

use super::reconcile::condition;
use super::row::{Miss, Verdict, at, differs, int, part, same};
use policy::active::Activity;
use policy::compat::Compat;
use policy::revision::{Bounds, ScaleSpec};
use policy::world::Path;
use policy::zero::{self, Probe, Target, ZeroInput, patch};
use serde_json::Value;
use std::time::Duration;

const PREFIX: &str = "autoscaling.knative.dev/";
const MIN: &str = "min-scale";
const MAX: &str = "max-scale";
const INITIAL: &str = "initial-scale";
const BURST: &str = "target-burst-capacity";
const WINDOW: &str = "window";
const RETENTION: &str = "scale-to-zero-pod-retention-period";
const GRACE: &str = "scale-to-zero-grace-period";
const SWITCH: &str = "enable-scale-to-zero";
const DEADLINE: &str = "serving.knative.dev/progress-deadline";

pub(super) fn judge(row: &Value, mode: Compat) -> Verdict {
    if !readable(row) {
        return Err(Miss::NotJudged);
    }
    let (spec, bounds) = (spec(row)?, bounds(row)?);
    let input = ZeroInput {
        desired: part(&row["desired_in"])?,
        excess_burst_capacity: 0,
        ready: 0,
        bounds: &bounds,
        spec: &spec,
        path_through_activator_for: millis(&row["sks_proxy_for_ms"])?,
        probe_ok: row["probe"] == "ok",
    };
    let initialized = part(&row["scale_target_initialized"])?;
    let activity = Activity::restore(condition(&row["active"])?, at(0), initialized);
    let now = at(int(&row["active_for_ms"])?);
    let got = zero::verdict(&input, &activity, ordered(row)?, now, mode);
    let patched = patch(got.order, target(row)?);

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

fn spec(row: &Value) -> Verdict<ScaleSpec> {
    let default = ScaleSpec::KNATIVE;
    Ok(ScaleSpec {
        target_burst_capacity: number(row, BURST)?.unwrap_or(default.target_burst_capacity),
        stable_window: span(row, WINDOW)?.unwrap_or(default.stable_window),
        initial_scale: number(row, INITIAL)?.unwrap_or(default.initial_scale),
        reachable: row["reachability"] != "Unreachable",
        ..default
    })
}

fn bounds(row: &Value) -> Verdict<Bounds> {
    let deadline: u64 = part(&row["progress_deadline_s"])?;
    Ok(Bounds {
        min_scale: number(row, MIN)?.unwrap_or(0),
        max_scale: number(row, MAX)?.unwrap_or(0),
        scale_to_zero: text(row, SWITCH) != Some("false"),
        grace: span(row, GRACE)?.unwrap_or(Duration::from_secs(30)),
        retention: span(row, RETENTION)?.unwrap_or(Duration::ZERO),
        progress_deadline: span(row, DEADLINE)?.unwrap_or(Duration::from_secs(deadline)),
    })
}

fn ordered(row: &Value) -> Verdict<Path> {
    match row["sks_mode"].as_str() {
        Some("Proxy") => Ok(Path::Activator),
        Some("Serve") => Ok(Path::Direct),
        _ => differs("malformed row: unknown mode"),
    }
}

fn target(row: &Value) -> Verdict<Target> {
    Ok(match (part::<bool>(&row["target_exists"])?, part(&row["replicas"])?) {
        (false, _) => Target::Missing,
        (true, None) => Target::Unset,
        (true, Some(pods)) => Target::Pods(pods),
    })
}

/// True when every setting is in the current spelling and parses plainly.
fn readable(row: &Value) -> bool {
    let annotations = row["annotations"].as_object();
    let known = [MIN, MAX, INITIAL, BURST, WINDOW, RETENTION];
    let spelled = annotations
        .into_iter()
        .flatten()
        .all(|(key, _)| key == DEADLINE || key.strip_prefix(PREFIX).is_some_and(|key| known.contains(&key)));
    spelled && spec(row).is_ok() && bounds(row).is_ok()
}

/// A setting: the annotation, else the cluster's.
fn text<'a>(row: &'a Value, key: &str) -> Option<&'a str> {
    let annotations = &row["annotations"];
    let own = annotations.get(format!("{PREFIX}{key}")).or_else(|| annotations.get(key));
    own.or_else(|| row["config"].get(key))?.as_str()
}

fn number<T: std::str::FromStr>(row: &Value, key: &str) -> Verdict<Option<T>> {
    let parse = |text: &str| text.parse().or_else(|_| differs(format!("{key} is {text:?}")));
    text(row, key).map(parse).transpose()
}

fn span(row: &Value, key: &str) -> Verdict<Option<Duration>> {
    let parse = |text: &str| {
        let at = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let (count, unit) = text.split_at(at);
        match (count.parse(), unit) {
            (Ok(count), "ms") => Ok(Duration::from_millis(count)),
            (Ok(count), "s") => Ok(Duration::from_secs(count)),
            (Ok(count), "m") => Ok(Duration::from_secs(60 * count)),
            _ => differs(format!("{key} is {text:?}")),
        }
    };
    text(row, key).map(parse).transpose()
}

fn millis(value: &Value) -> Verdict<Option<Duration>> {
    let millis: Option<u64> = part(value)?;
    Ok(millis.map(Duration::from_millis))
}
