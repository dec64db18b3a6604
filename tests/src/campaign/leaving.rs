//! Crowds that leave, one after the other, while one pod is busy.

use super::report::{NO_SLACK, table};
use super::{Arguments, Failure, Tally};
use crate::leaving::{self, Size};
use std::io::Write;
use std::time::Duration;

pub(super) const ABOUT: &str =
    "200 clients a second with 10 KB each that leave after 1 s, at one pod with limit 2 that takes 30 s
    --minutes N     so long (10)";

pub(super) fn run(mut arguments: Arguments, out: &mut dyn Write) -> Result<Tally, Failure> {
    let minutes: f64 = arguments.take("minutes")?.unwrap_or(10.0);
    arguments.finish()?;
    let time = Duration::try_from_secs_f64(minutes * 60.0).ok().filter(|time| *time >= Duration::from_secs(8));
    let time = time.ok_or_else(|| Failure::Usage("--minutes is 0.15 at least".to_owned()))?;
    let size = Size { time, warm: (time / 4).min(Duration::from_secs(60)), slack: NO_SLACK };
    let mut tally = Tally::default();
    table(&format!("{minutes} minutes"), leaving::run(size), &mut tally, out)?;
    Ok(tally)
}
