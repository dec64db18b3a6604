//! Pods that are asked for their load.

use super::report::{NO_SLACK, table};
use super::{Arguments, Failure, Tally};
use crate::scraped::{Settings, run as ask};
use std::io::Write;
use std::time::Duration;

pub(super) const ABOUT: &str =
    "the autoscaler asks pods for their load, each second; without and with some that answer what none should
    --pods N        pods that answer well, of a revision each (5000)
    --seconds N     how long memory and answers are watched (60)";

pub(super) fn run(mut arguments: Arguments, out: &mut dyn Write) -> Result<Tally, Failure> {
    let well = arguments.take("pods")?.unwrap_or(5000);
    let watched = Duration::from_secs(arguments.take("seconds")?.unwrap_or(60));
    arguments.finish()?;
    let mut tally = Tally::default();
    for hostile in [false, true] {
        let patience = Duration::from_secs(120);
        let settings = Settings { well, hostile, watched, patience, slack: NO_SLACK };
        let beside = if hostile { "some that are not" } else { "nobody else" };
        table(&format!("{well} pods, and {beside}"), ask(settings), &mut tally, out)?;
    }
    Ok(tally)
}
