//! Instructions that the sidecar spends on a request, counted by valgrind's
//! callgrind: the same on a busy machine as on a quiet one, so CI can hold them
//! against a budget (`bench/counts.json`).
//!
//! The shipped binary is counted, with a limit and with metrics on, from a
//! request's first byte to the last of its answer, on one connection to it and
//! one from it. What the kernel does is not in the figure.

mod budget;
mod callgrind;
mod work;

pub use budget::{Budget, Held, TOLERANCE};
pub use work::{WORKS, Work};

use crate::program::Program;
use callgrind::Callgrind;
use std::path::Path;

/// Requests that are not counted: connections and buffers come with them.
const WARM: usize = 200;
/// Requests that are.
const COUNTED: usize = 1000;

/// What the sidecar is told beside the stock environment.
const SETTINGS: [(&str, &str); 2] = [
    ("CONTAINER_CONCURRENCY", "100"),
    ("OBSERVABILITY_CONFIG", r#"{"requestMetrics":{"protocol":"prometheus","endpoint":"127.0.0.1:0"}}"#),
];

/// Instructions per request of this work. Writes into `folder`.
///
/// # Errors
/// What failed, in words.
///
/// # Panics
/// When the sidecar does not come up.
pub async fn count(work: &Work, folder: &Path) -> anyhow::Result<u64> {
    let app = work.app().await;
    let callgrind = Callgrind::new(&folder.join(work.name));
    let program = Program::start_under(&callgrind.wrapper(), app, &SETTINGS);
    let mut client = work.client(program.main).await?;
    client.send(WARM).await?;
    callgrind.begin(program.pid()).await?;
    client.send(COUNTED).await?;
    callgrind.end(program.pid()).await?;
    Ok(callgrind.instructions()? / COUNTED as u64)
}
