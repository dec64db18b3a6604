//! Our server for HTTP/1 beside hyper's, on the same bytes.

use super::{Arguments, Failure, Tally};
use crate::differential::{survey, tally};
use crate::fuzz::{ALL, run as fuzz};
use std::io::Write;
use std::time::Duration;

pub(super) const ABOUT: &str = "our server for HTTP/1 and hyper's, on the same bytes
    --minutes N     so long (60)
    --seed N        another run than the last (1)";

pub(super) fn run(mut arguments: Arguments, out: &mut dyn Write) -> Result<Tally, Failure> {
    let minutes: u64 = arguments.take("minutes")?.unwrap_or(60);
    let seed = arguments.take("seed")?.unwrap_or(1);
    arguments.finish()?;
    let mut passed = Tally::default();
    survey();
    for target in ALL.iter().filter(|target| target.name == "differential") {
        let outcome = fuzz(target, Duration::from_secs(60 * minutes), seed);
        let all = tally();
        writeln!(out, "{} inputs, {} of them new", outcome.tried, outcome.new)?;
        writeln!(
            out,
            "{} requests that both served, all the same; {} connections with more than one",
            all.same, all.reused
        )?;
        writeln!(out, "{} inputs end with one that neither serves", all.refused)?;
        for (what, count) in &all.known {
            writeln!(out, "{count} as meant: {what}")?;
        }
        if let Some(finding) = &outcome.finding {
            writeln!(out, "FAILED: {finding}")?;
        }
        for (kind, (count, input, told)) in &all.faults {
            writeln!(out, "FAILED {count} times: {kind}\n  {told}\n  input: {}", input.escape_ascii())?;
        }
        passed.count(outcome.finding.is_none() && all.faults.is_empty());
    }
    Ok(passed)
}
