//! What `kill -9` leaves behind: nothing.

use super::report::{NO_SLACK, table};
use super::{Arguments, Failure, Tally};
use crate::floor::trial::{crashes, kills, orphans};
use std::io::Write;
use std::time::Duration;

pub(super) const ABOUT: &str = "kill -9 of app, zeroscale and guard under load; orphans; a long request
    --long SECONDS  how long that takes (60)";

pub(super) fn run(mut arguments: Arguments, out: &mut dyn Write) -> Result<Tally, Failure> {
    let long = Duration::from_secs(arguments.take("long")?.unwrap_or(60));
    arguments.finish()?;
    let mut tally = Tally::default();
    table("kill -9 of the app", kills::app(4, 40, NO_SLACK), &mut tally, out)?;
    for pods in [3, 1] {
        let size = crashes::Size { pods, rate: 200, time: Duration::from_secs(20), kills: 3, slack: NO_SLACK };
        table(&format!("kill -9 of apps under load, pods: {pods}"), crashes::run(size), &mut tally, out)?;
    }
    table("kill -9 of zeroscale", kills::zeroscale(NO_SLACK), &mut tally, out)?;
    table("kill -9 of the guard", kills::guard(NO_SLACK), &mut tally, out)?;
    for end in [orphans::End::ScaleDown, orphans::End::Term, orphans::End::Kill] {
        table(&format!("a daemon of the app, {end:?}"), orphans::run(end, NO_SLACK), &mut tally, out)?;
    }
    table("long requests", kills::long_requests(long, NO_SLACK), &mut tally, out)?;
    Ok(tally)
}
