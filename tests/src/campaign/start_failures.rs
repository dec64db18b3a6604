//! Starts that cannot work.

use super::report::{NO_SLACK, table};
use super::{Arguments, Failure, Tally};
use crate::floor::trial::start_failures::{crashes, missing_command, never_opens};
use std::io::Write;
use std::time::Duration;

pub(super) const ABOUT: &str = "commands that are missing, crash, or never open their port; then mended";

/// Short enough to wait for, and long beside all that is measured.
const START_TIMEOUT: Duration = Duration::from_secs(3);

pub(super) fn run(arguments: Arguments, out: &mut dyn Write) -> Result<Tally, Failure> {
    arguments.finish()?;
    let mut tally = Tally::default();
    table("no such command", missing_command(NO_SLACK), &mut tally, out)?;
    table("exits with 1", crashes(NO_SLACK), &mut tally, out)?;
    table("never opens its port", never_opens(START_TIMEOUT, NO_SLACK), &mut tally, out)?;
    Ok(tally)
}
