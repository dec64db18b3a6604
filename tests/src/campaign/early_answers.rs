//! Apps that answer before they have read the body.

use super::report::table;
use super::{Arguments, Failure, Tally};
use crate::front::Through;
use crate::sidecar::early_answer;
use std::io::Write;

pub(super) const ABOUT: &str = "uploads of 2 MB at 1 MB/s through the sidecar, refused by the app after 100 ms
    --runs N        so many of each kind (200)";

pub(super) fn run(mut arguments: Arguments, out: &mut dyn Write) -> Result<Tally, Failure> {
    let runs = arguments.take("runs")?.unwrap_or(200);
    arguments.finish()?;
    let mut tally = Tally::default();
    table(&format!("{runs} uploads of each kind"), early_answer::run(Through::Sidecar, runs), &mut tally, out)?;
    Ok(tally)
}
