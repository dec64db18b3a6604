//! Four hundred at once at zero.

use super::report::{NO_SLACK, table};
use super::{Arguments, Failure, Tally};
use crate::floor::trial::burst::{self, Size};
use std::io::Write;
use std::time::Duration;

pub(super) const ABOUT: &str = "requests at once at zero, one at a time in each of 4 pods, 50 ms each
    --requests N    so many (400)
    --runs N        times (5)";

pub(super) fn run(mut arguments: Arguments, out: &mut dyn Write) -> Result<Tally, Failure> {
    let requests = arguments.take("requests")?.unwrap_or(400);
    let runs: usize = arguments.take("runs")?.unwrap_or(5);
    arguments.finish()?;
    let mut tally = Tally::default();
    let size = Size { requests, pods: 4, work: Duration::from_millis(50), slack: NO_SLACK };
    for run in 1..=runs {
        table(&format!("{requests} at once, run {run}"), burst::run(size), &mut tally, out)?;
    }
    Ok(tally)
}
