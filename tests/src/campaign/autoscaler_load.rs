//! The autoscaler under many stats.

use super::report::{NO_SLACK, table};
use super::{Arguments, Failure, Tally};
use crate::stat_load::{self, Settings};
use std::io::Write;
use std::time::Duration;

pub(super) const ABOUT: &str =
    "the autoscaler under many stats, with default windows: a tick of all, memory, processor time
    --revisions N   so many (20000)
    --pods N        of each; each sends a stat a second (5)
    --streams N     that they come by (64)
    --seconds N     how long they come (70)";

pub(super) fn run(mut arguments: Arguments, out: &mut dyn Write) -> Result<Tally, Failure> {
    let settings = Settings {
        revisions: arguments.take("revisions")?.unwrap_or(20_000),
        pods: arguments.take("pods")?.unwrap_or(5),
        streams: arguments.take("streams")?.unwrap_or(64),
        load: Duration::from_secs(arguments.take("seconds")?.unwrap_or(70)),
        window: Duration::from_secs(60),
        slack: NO_SLACK,
    };
    arguments.finish()?;
    let mut tally = Tally::default();
    let title = format!("{} revisions, {} stats a second", settings.revisions, settings.revisions * settings.pods);
    table(&title, async { stat_load::run(settings) }, &mut tally, out)?;
    Ok(tally)
}
