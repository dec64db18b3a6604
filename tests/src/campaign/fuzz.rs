//! Readers under inputs that nobody would write.

use super::{Arguments, Failure, Tally};
use crate::fuzz::{ALL, run as fuzz};
use std::io::Write;
use std::time::Duration;

pub(super) const ABOUT: &str = "readers of template, readiness JSON, Forwarded, Stat, HTTP/1 requests and answers
    --seconds N     so long each (600)
    --target NAME   only this one
    --seed N        another run than the last (1)";

pub(super) fn run(mut arguments: Arguments, out: &mut dyn Write) -> Result<Tally, Failure> {
    let time = Duration::from_secs(arguments.take("seconds")?.unwrap_or(600));
    let only: Option<String> = arguments.take("target")?;
    let seed = arguments.take("seed")?.unwrap_or(1);
    arguments.finish()?;
    let wanted = |name: &str| only.as_deref().is_none_or(|only| only == name);
    if !ALL.iter().any(|target| wanted(target.name)) {
        let names: Vec<&str> = ALL.iter().map(|target| target.name).collect();
        return Err(Failure::Usage(format!("--target is one of {}", names.join(", "))));
    }
    let mut tally = Tally::default();
    for target in ALL.iter().filter(|target| wanted(target.name)) {
        writeln!(out, "== {}: {}", target.name, target.about)?;
        let outcome = fuzz(target, time, seed);
        writeln!(out, "{} inputs, {} of them new", outcome.tried, outcome.new)?;
        if let Some(finding) = &outcome.finding {
            writeln!(out, "FAILED: {finding}")?;
        }
        tally.count(outcome.finding.is_none());
    }
    Ok(tally)
}
