//! The sidecar for a long time.

use super::report::table;
use super::{Arguments, Failure, Tally};
use crate::soak::{self, Size};
use std::io::Write;
use std::time::Duration;

pub(super) const ABOUT: &str =
    "the sidecar at half of its capacity: churn, cancels, restarts of the app; flat memory, nothing left
    --minutes N     so long (20)
    --seed N        another run than the last (1)";

pub(super) fn run(mut arguments: Arguments, out: &mut dyn Write) -> Result<Tally, Failure> {
    let minutes: f64 = arguments.take("minutes")?.unwrap_or(20.0);
    let seed = arguments.take("seed")?.unwrap_or(1);
    arguments.finish()?;
    let time = Duration::try_from_secs_f64(minutes * 60.0).ok().filter(|time| *time >= Duration::from_secs(30));
    let time = time.ok_or_else(|| Failure::Usage("--minutes is 0.5 at least".to_owned()))?;
    let mut tally = Tally::default();
    table(&format!("{minutes} minutes"), soak::run(Size { time, seed }), &mut tally, out)?;
    Ok(tally)
}
