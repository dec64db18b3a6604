//! From an experiment's report to a campaign's tally.

use super::{Failure, Tally};
use crate::floor::trial::Report;
use std::io::Write;

/// The figures themselves are judged here, unlike in `cargo test`.
pub(super) const NO_SLACK: u32 = 1;

/// Runs an experiment, writes its table, and counts it.
pub(super) fn table(
    title: &str,
    experiment: impl Future<Output = anyhow::Result<Report>>,
    tally: &mut Tally,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    writeln!(out, "== {title}")?;
    match runtime.block_on(experiment) {
        Ok(report) => {
            write!(out, "{report}")?;
            report.rows.iter().filter_map(|row| row.passed).for_each(|passed| tally.count(passed));
        }
        Err(error) => {
            writeln!(out, "could not be tried: {error:#}")?;
            tally.count(false);
        }
    }
    writeln!(out)?;
    Ok(())
}
