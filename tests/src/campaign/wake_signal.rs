//! From a request at zero to the signal that asks for a pod.

use super::report::{NO_SLACK, table};
use super::{Arguments, Failure, Tally};
use crate::wake_signal;
use std::io::Write;

pub(super) const ABOUT: &str =
    "from the last byte of a head to the signal that asks for a pod, all woken in the same second
    --revisions N   so many (1000)
    --runs N        one after the other (5)";

pub(super) fn run(mut arguments: Arguments, out: &mut dyn Write) -> Result<Tally, Failure> {
    let revisions = arguments.take("revisions")?.unwrap_or(1000);
    let runs = arguments.take("runs")?.unwrap_or(5);
    arguments.finish()?;
    let mut tally = Tally::default();
    for run in 1..=runs {
        let report = async { wake_signal::run(revisions, NO_SLACK) };
        table(&format!("{revisions} revisions, run {run} of {runs}"), report, &mut tally, out)?;
    }
    Ok(tally)
}
