//! The local floor as it ships: the real binary, started as a person starts it,
//! spoken to over its real sockets, and killed the hard way.
//!
//! | job | module |
//! | --- | --- |
//! | where the binaries are | [`binaries`] |
//! | one running instance | [`instance`] |
//! | what it says of itself | [`status`] |
//! | which processes are its | [`processes`] |
//! | clients | [`client`] |
//! | what the app saw, by its own clock | [`sightings`] |
//! | how late timers are here | [`jitter`] |
//! | the experiments, at any size | [`trial`] |
//!
//! `cargo test` runs the experiments small (`tests/tests/floor_*.rs`), the
//! campaigns at full size (`campaign`); both judge the same figures.

pub mod binaries;
pub mod client;
pub mod instance;
pub mod jitter;
pub mod processes;
pub mod sightings;
pub mod status;
pub mod trial;

pub use instance::{Instance, TestApp};

use std::time::{Duration, Instant};

/// How long anything may take before it is given up.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// Between two looks at a condition.
const LOOK_EVERY: Duration = Duration::from_millis(2);

/// Waits until a condition holds; how long that took.
///
/// # Errors
/// Naming `what`, when it does not hold within [`PATIENCE`].
pub async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) -> anyhow::Result<Duration> {
    let began = Instant::now();
    while !holds().await {
        anyhow::ensure!(began.elapsed() < PATIENCE, "not within {PATIENCE:?}: {what}");
        tokio::time::sleep(LOOK_EVERY).await;
    }
    Ok(began.elapsed())
}
