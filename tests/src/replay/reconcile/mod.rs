//! `autoscaler/reconcile`: whole reconciles of a PodAutoscaler, the table of
//! the Active condition, and the number of activators.

mod whole;

use super::row::{Verdict, at, differs, float, part, same};
use policy::active::{Active, Activity, Idle, Standing, Starting};
use policy::compat::Compat;
use policy::revision::ScaleSpec;
use policy::zero::{num_activators, shown_scale};
use serde_json::Value;

pub(super) fn judge(row: &Value, mode: Compat) -> Verdict {
    match row["kind"].as_str() {
        Some("reconcile") => whole::judge(row, mode),
        Some("active") => active(row, mode),
        Some("num_activators") => activators(row),
        _ => differs("malformed row: unknown kind"),
    }
}

fn active(row: &Value, mode: Compat) -> Verdict {
    let initialized = part(&row["initialized"])?;
    let mut activity = Activity::restore(condition(&row["active"])?, at(0), initialized);
    let initial: String = part(&row["initial_scale"])?;
    let Ok(initial_scale) = initial.parse() else {
        return differs(format!("malformed row: initial scale {initial:?}"));
    };
    let want = part(&row["want"])?;
    let standing = Standing { want, ready: part(&row["ready"])?, min_scale: part(&row["min_scale"])?, initial_scale };
    activity.settle(&standing, at(1000), mode);
    let out = &row["out"];
    same("status", out[0].as_str(), Some(activity.active().status()))?;
    same("reason", out[1].as_str(), Some(activity.active().reason()))?;
    same("initialized", part(&out[2])?, activity.initialized())?;
    same("desired scale", part(&out[3])?, shown_scale(None, want))
}

/// A condition by its status alone; rows do not give the reason before.
pub(super) fn condition(status: &Value) -> Verdict<Active> {
    match status.as_str() {
        Some("True") => Ok(Active::Yes),
        Some("Unknown") => Ok(Active::Starting(Starting::New)),
        Some("False") => Ok(Active::No(Idle::Unsaid)),
        _ => differs("malformed row: unknown status of a condition"),
    }
}

fn activators(row: &Value) -> Verdict {
    let spec = ScaleSpec {
        total: float(&row["total"])?,
        target_burst_capacity: float(&row["tbc"])?,
        activator_capacity: float(&row["activator_capacity"])?,
        ..ScaleSpec::KNATIVE
    };
    same("activators", part(&row["out"])?, num_activators(part(&row["ready"])?, &spec))
}
