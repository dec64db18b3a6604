//! The end of a pod that much holds, at full size.

use super::{Arguments, Failure, Tally};
use crate::pod_end::live;
use std::io::Write;
use std::time::Duration;

pub(super) const ABOUT: &str = "the end of a sidecar: a request of 45 s, late requests, a websocket that never ends
    --second MS     how long each second takes (1000)";

pub(super) fn run(mut arguments: Arguments, out: &mut dyn Write) -> Result<Tally, Failure> {
    let second = Duration::from_millis(arguments.take("second")?.unwrap_or(1000));
    arguments.finish()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let lived = runtime.block_on(live(second));
    let mut tally = Tally::default();
    tally.count(lived.is_ok());
    match lived {
        Ok(figures) => writeln!(out, "{figures}")?,
        Err(error) => writeln!(out, "FAILED: {error:#}")?,
    }
    Ok(tally)
}
