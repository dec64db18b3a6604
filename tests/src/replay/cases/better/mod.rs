//! Named checks of the better outcome, for rows whose original is not to be
//! matched.
//!
//! A check of a `quirk` holds for the original too: what it asks for is the
//! essence. A check of a `flaw` must fail on the original's outcome; a test
//! sees to that.

mod failures;
mod flow;
mod logs;
mod malformed;
mod metrics;
mod probes;
mod starts;
mod streams;

use super::observed::{Held, Observed};
use policy::compat::Compat;

/// What must hold of one case.
pub struct Check {
    /// The case.
    pub case: &'static str,
    /// What it asks for, as a claim.
    pub name: &'static str,
    /// Asked for in the default mode alone.
    pub only_by_default: bool,
    /// Looks.
    pub look: fn(&Observed) -> Held,
}

/// A check for both modes.
const fn check(case: &'static str, name: &'static str, look: fn(&Observed) -> Held) -> Check {
    Check { case, name, only_by_default: false, look }
}

/// A check that strict mode need not pass.
const fn by_default(case: &'static str, name: &'static str, look: fn(&Observed) -> Held) -> Check {
    Check { case, name, only_by_default: true, look }
}

/// All checks.
pub fn all() -> impl Iterator<Item = &'static Check> {
    let tables = [
        failures::CHECKS,
        flow::CHECKS,
        logs::CHECKS,
        malformed::CHECKS,
        metrics::CHECKS,
        probes::CHECKS,
        starts::CHECKS,
        streams::CHECKS,
    ];
    tables.into_iter().flatten()
}

/// The checks of a case.
pub fn of(case: &str) -> Vec<&'static Check> {
    all().filter(|check| check.case == case).collect()
}

/// All that are asked for hold.
///
/// # Errors
/// The first that does not, by name, and why.
pub fn hold(checks: &[&Check], seen: &Observed) -> Held {
    for check in checks {
        if check.only_by_default && seen.mode == Compat::Strict {
            continue;
        }
        (check.look)(seen).map_err(|why| format!("not so that {}: {why}", check.name))?;
    }
    Ok(())
}

/// Everything is as recorded: for rows that leave free only what is free
/// everywhere.
fn as_recorded(seen: &Observed) -> Held {
    seen.as_recorded()
}
