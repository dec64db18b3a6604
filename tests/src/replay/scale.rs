//! `autoscaler/scale`: one decision a step.

use super::row::{Verdict, at, differs, float, int, list, located, part, same, time};
use super::spec::scale_spec;
use policy::collect::Load;
use policy::compat::Compat;
use policy::limit::Overrides;
use policy::scale::{Decision, Memory, Observed, Ready, Undecided, decide};
use serde_json::Value;

pub(super) fn judge(row: &Value, mode: Compat) -> Verdict {
    let mut spec = scale_spec(&row["spec"])?;
    // A count that failed is told to the product as no pods (`Memory::new`).
    let ready = row["ready_at_create"].as_u64().unwrap_or(0);
    let mut memory = Memory::new(&spec, ready as u32, at(0), mode);
    for (number, step) in list(&row["steps"])?.iter().enumerate() {
        if let Some(update) = step.get("update") {
            spec = scale_spec(update)?;
            continue;
        }
        let seen = Observed::new(load(step)?, pods(&step[3])?);
        let result = decide(&spec, &seen, &Overrides::NONE, &mut memory, time(&step[0])?);
        located(|| format!("step {number} {step}"), compare(step, &result, &memory))?;
    }
    Ok(())
}

fn load(step: &Value) -> Verdict<Load> {
    match step[1].as_str() {
        Some("nodata") => Ok(Load::NoData),
        Some("notcollecting") => Ok(Load::NotCollecting),
        _ => Ok(Load::Average { stable: float(&step[1])?, panic: float(&step[2])? }),
    }
}

fn pods(value: &Value) -> Verdict<Ready> {
    match value.as_str() {
        Some("error") => Ok(Ready::Unknown),
        Some("notfound") => Ok(Ready::NotFound),
        Some(_) => differs("malformed row: unknown count of pods"),
        None => Ok(Ready::Pods(part(value)?)),
    }
}

fn compare(step: &Value, result: &Result<Decision, Undecided>, memory: &Memory) -> Verdict {
    same_decision(&step[4], &step[5], &step[6], result)?;
    same("panic mode", int(&step[7])? != 0, memory.panic_since().is_some())?;
    same("max panic pods", part(&step[8])?, memory.max_panic_pods())
}

/// Compares `desired`, `ebc` and `valid`; an invalid result is recorded with
/// zeros.
pub(super) fn same_decision(
    desired: &Value,
    ebc: &Value,
    valid: &Value,
    result: &Result<Decision, Undecided>,
) -> Verdict {
    same("valid", int(valid)? != 0, result.is_ok())?;
    let got = result.as_ref().map_or((0, 0), |d| (d.desired, d.excess_burst_capacity));
    same("desired", part(desired)?, got.0)?;
    same("ebc", part(ebc)?, got.1)
}
