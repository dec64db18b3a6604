//! What a start from zero costs beside the app's own.

use super::report::{NO_SLACK, table};
use super::{Arguments, Failure, Tally};
use crate::floor::trial::cold_start::{self, Size};
use std::io::Write;

pub(super) const ABOUT: &str = "overhead and processor time of starts from zero
    --instances N   side by side, one measured at a time (10)
    --starts N      of each (5)";

/// When the apps open their ports, in milliseconds.
const APPS: [&str; 2] = ["0-2", "300"];

pub(super) fn run(mut arguments: Arguments, out: &mut dyn Write) -> Result<Tally, Failure> {
    let instances = arguments.take("instances")?.unwrap_or(10);
    let starts = arguments.take("starts")?.unwrap_or(5);
    arguments.finish()?;
    let mut tally = Tally::default();
    let size = Size { instances, starts, slack: NO_SLACK };
    for open_after in APPS {
        let title = format!("port open after {open_after} ms");
        table(&title, cold_start::run(open_after, size), &mut tally, out)?;
    }
    Ok(tally)
}
