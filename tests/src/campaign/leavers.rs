//! Crowds that give up before the app is there.

use super::report::{NO_SLACK, table};
use super::{Arguments, Failure, Tally};
use crate::floor::trial::leavers::{self, Size};
use std::io::Write;
use std::time::Duration;

pub(super) const ABOUT: &str = "clients that give up at zero after 200 ms, the app there after 2 s
    --clients N     so many (1000)
    --rounds N      crowds, one after the other (10)";

/// What each client has to send.
const BODIES: [(&str, Option<usize>); 3] =
    [("without a body", None), ("a body of 100 bytes", Some(100)), ("a body of 1 MB", Some(1_000_000))];

pub(super) fn run(mut arguments: Arguments, out: &mut dyn Write) -> Result<Tally, Failure> {
    let clients = arguments.take("clients")?.unwrap_or(1000);
    let rounds = arguments.take("rounds")?.unwrap_or(10);
    arguments.finish()?;
    let mut tally = Tally::default();
    for (title, body_bytes) in BODIES {
        let size = Size {
            clients,
            body_bytes,
            rounds,
            patience: Duration::from_millis(200),
            open_after: Duration::from_secs(2),
            slack: NO_SLACK,
        };
        table(title, leavers::run(size), &mut tally, out)?;
    }
    Ok(tally)
}
