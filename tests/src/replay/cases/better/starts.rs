//! Starts that fail: the code, and the name of what is at fault.

use super::super::observed::{Held, Observed, holds};
use super::{Check, check};

pub(super) const CHECKS: &[Check] = &[
    check("start-bad-integer", "it ends with 1 and names the variable", |seen| {
        ends_naming(seen, &["CONTAINER_CONCURRENCY"])
    }),
    check("start-empty-int", "it ends with 1 and names the variable", |seen| {
        ends_naming(seen, &["CONTAINER_CONCURRENCY"])
    }),
    check("start-bad-observability", "it ends with 1 and names the variable", |seen| {
        ends_naming(seen, &["OBSERVABILITY_CONFIG"])
    }),
    check("probe-bad-json", "it ends with 1 and names the probe", |seen| {
        ends_naming(seen, &["SERVING_READINESS_PROBE", "readiness probe"])
    }),
    check("start-port-taken", "it ends with 1 and names the port", |seen| ends_naming(seen, &["8012"])),
];

fn ends_naming(seen: &Observed, names: &[&str]) -> Held {
    let exit = seen.nth("wait_exit", 0)?;
    holds(exit.number("exit_code") == Some(1.0), || format!("it ended otherwise: {}", exit.shown()))?;
    let lines = seen.lines("stderr")?;
    let named = lines.iter().any(|line| names.iter().any(|name| line.contains(name)));
    holds(named, || format!("nothing on stderr names {}: {}", names.join(" or "), lines.join(" | ")))
}
