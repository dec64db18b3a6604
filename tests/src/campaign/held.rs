//! Crowds that are held at zero.

use super::report::table;
use super::{Arguments, Failure, Tally};
use crate::held::{self, Size, Speaks};
use std::io::Write;

pub(super) const ABOUT: &str =
    "what a request that is held at zero costs in memory, and how fast a crowd is answered after the wake
    --http1 N       clients with a connection each (15000)
    --http2 N       streams, 250 on a connection (100000)";

/// What one may cost, in bytes.
const HTTP1_BYTES_MAX: u64 = 20 << 10;
const HTTP2_BYTES_MAX: u64 = 5 << 10;
/// Compared with the memory at so many.
const LOW: usize = 1000;

pub(super) fn run(mut arguments: Arguments, out: &mut dyn Write) -> Result<Tally, Failure> {
    let http1 = arguments.take("http1")?.unwrap_or(15_000);
    let http2 = arguments.take("http2")?.unwrap_or(100_000);
    arguments.finish()?;
    let mut tally = Tally::default();
    let sizes = [(Speaks::Http1, http1, HTTP1_BYTES_MAX), (Speaks::Http2, http2, HTTP2_BYTES_MAX)];
    for (speaks, top, bytes_max) in sizes.into_iter().filter(|(_, top, _)| *top > LOW) {
        let size = Size { speaks, low: LOW, top, bytes_max, judge_pace: true };
        table(&format!("{top} held, {speaks:?}"), held::run(size), &mut tally, out)?;
    }
    Ok(tally)
}
