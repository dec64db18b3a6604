//! What the sidecar costs, of the binary in this program's profile: run it
//! with `cargo run --profile dist --bin campaign -- cost`.

use super::report::table;
use super::{Arguments, Failure, Tally};
use crate::cost::{self, SHIPPED};
use std::io::Write;
use std::time::Duration;

pub(super) const ABOUT: &str = "the sidecar's size, memory, wake-ups and start, in this program's profile
    --connections N idle clients (1000)
    --seconds N     how long wake-ups are counted (60)
    --starts N      so many (40)";

pub(super) fn run(mut arguments: Arguments, out: &mut dyn Write) -> Result<Tally, Failure> {
    let connections = arguments.take("connections")?.unwrap_or(1000);
    let over = Duration::from_secs(arguments.take("seconds")?.unwrap_or(60));
    let starts = arguments.take("starts")?.unwrap_or(40);
    arguments.finish()?;
    let mut tally = Tally::default();
    table("size", async { cost::size(SHIPPED) }, &mut tally, out)?;
    table("start", cost::start(SHIPPED, starts), &mut tally, out)?;
    table("memory", cost::memory(SHIPPED, connections), &mut tally, out)?;
    table("wake-ups", cost::wake_ups(SHIPPED, over), &mut tally, out)?;
    Ok(tally)
}
