//! Apps that close idle connections just as a request comes.

use super::report::table;
use super::{Arguments, Failure, Tally};
use crate::sidecar::reuse::{self, Size};
use std::io::Write;

pub(super) const ABOUT: &str = "requests through the sidecar to an app that closes idle connections after 200 ms
    --requests N    so many about then, of each method (2000)
    --chains N      so many at a time (8)";

pub(super) fn run(mut arguments: Arguments, out: &mut dyn Write) -> Result<Tally, Failure> {
    let close_calls = arguments.take("requests")?.unwrap_or(2000);
    let chains = arguments.take("chains")?.unwrap_or(8);
    arguments.finish()?;
    let mut tally = Tally::default();
    let size = Size { close_calls, brisk: close_calls, chains };
    table(&format!("{close_calls} requests of each method and pace"), reuse::run(size), &mut tally, out)?;
    Ok(tally)
}
