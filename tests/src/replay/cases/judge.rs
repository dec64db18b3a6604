//! From what was seen to a verdict.

use super::better;
use super::case::{Case, Kind};
use super::compare;
use super::observed::Observed;
use crate::replay::row::{Miss, Verdict, located};
use policy::compat::Compat;

/// How the sidecar is run for a row, unless the command line says otherwise.
pub fn mode_of(kind: Kind) -> Compat {
    match kind {
        Kind::Match | Kind::Quirk => Compat::Strict,
        Kind::Flaw => Compat::Better,
    }
}

/// Judges a case that came to its end.
///
/// # Errors
/// Why it does not pass.
pub fn judge(seen: &Observed) -> Verdict {
    if seen.case.verdict == Kind::Match {
        return in_full(seen);
    }
    let checks = better::of(&seen.case.name);
    if checks.is_empty() {
        return Err(Miss::NotJudged);
    }
    better::hold(&checks, seen).map_err(Miss::Differs)
}

/// Whether a step that is not as recorded already decides the case.
pub fn decides(case: &Case) -> bool {
    case.verdict == Kind::Match
}

/// Every step as recorded; the number of a step is that of the row, from 0.
fn in_full(seen: &Observed) -> Verdict {
    for (number, (step, got)) in seen.case.steps.iter().zip(seen.got).enumerate() {
        let place = || {
            let conn = step.op.conn().map(|conn| format!(" {conn}")).unwrap_or_default();
            format!("step {number} ({}{conn})", step.op.name())
        };
        located(place, compare::step(step, got, seen.slack))?;
    }
    Ok(())
}
