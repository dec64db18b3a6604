//! `autoscaler/decider_init`: the first status, who is informed, and pokes.

use super::row::{Verdict, differs, float, list, located, part, same};
use policy::compat::Compat;
use policy::decider::Status;
use policy::revision::ScaleSpec;
use serde_json::Value;

pub(super) fn judge(row: &Value, mode: Compat) -> Verdict {
    match row["kind"].as_str() {
        Some("create") => create(row, mode),
        Some("inform") => inform(row),
        Some("poke") => poke(row, mode),
        _ => differs("malformed row: unknown kind"),
    }
}

fn create(row: &Value, mode: Compat) -> Verdict {
    let spec = ScaleSpec {
        initial_scale: part(&row["initial_scale"])?,
        total: float(&row["total"])?,
        target_burst_capacity: float(&row["tbc"])?,
        ..ScaleSpec::KNATIVE
    };
    same_status(row, Status::initial(&spec, mode))
}

fn inform(row: &Value) -> Verdict {
    let mut status = status(&row["start"][0], &row["start"][1])?;
    for (number, tick) in list(&row["ticks"])?.iter().enumerate() {
        let result = &tick["result"];
        let valid: bool = part(&result[2])?;
        let latest = self::status(&result[0], &result[1])?;
        let informed = status.inform(valid.then_some(latest));
        let verdict = same("informed", part(&tick["informed"])?, informed)
            .and_then(|()| same_status(tick, status))
            // One evaluation for each tick, the judge's own loop.
            .and_then(|()| same("scale_calls", part(&tick["scale_calls"])?, number + 1));
        located(|| format!("tick {number}"), verdict)?;
    }
    Ok(())
}

fn poke(row: &Value, mode: Compat) -> Verdict {
    let status = Status { desired: part(&row["latest_desired"])?, excess_burst_capacity: 0 };
    same("ran", part(&row["ran"])?, status.poke(float(&row["avg_concurrency"])?, mode))
}

fn status(desired: &Value, ebc: &Value) -> Verdict<Status> {
    Ok(Status { desired: part(desired)?, excess_burst_capacity: part(ebc)? })
}

fn same_status(expected: &Value, got: Status) -> Verdict {
    same("desired", part(&expected["desired"])?, got.desired)?;
    same("ebc", part(&expected["ebc"])?, got.excess_burst_capacity)
}
