//! Crowds that give up before the app is there.

use super::report::{NO_SLACK, table};
use super::{Arguments, Failure, Tally};
use crate::floor::trial::leavers::{self, Size};
use std::io::Write;
use std::time::Duration;

pub(super) const ABOUT: &str = "clients that give up at zero after 200 ms, the app there after 2 s
    --clients N     so many (1000)
    --rounds N      crowds, one after the other (10)
    --body BYTES    only with such a body";

/// What each client has to send.
const BODIES: [Option<usize>; 3] = [None, Some(100), Some(1_000_000)];

pub(super) fn run(mut arguments: Arguments, out: &mut dyn Write) -> Result<Tally, Failure> {
    let clients = arguments.take("clients")?.unwrap_or(1000);
    let rounds = arguments.take("rounds")?.unwrap_or(10);
    let only: Option<usize> = arguments.take("body")?;
    arguments.finish()?;
    let mut tally = Tally::default();
    for body_bytes in BODIES.into_iter().filter(|_| only.is_none()).chain(only.map(Some)) {
        let title = body_bytes.map_or("without a body".to_owned(), |bytes| format!("a body of {bytes} bytes"));
        let size = Size {
            clients,
            body_bytes,
            rounds,
            patience: Duration::from_millis(200),
            open_after: Duration::from_secs(2),
            slack: NO_SLACK,
        };
        table(&title, leavers::run(size), &mut tally, out)?;
    }
    Ok(tally)
}
