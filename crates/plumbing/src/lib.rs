//! The I/O that two or three components share.
//!
//! | job | module |
//! | --- | --- |
//! | time | [`clock`], [`wheel`] (timers), [`deadline`] (a request's limits), [`duration`] (as text) |
//! | threads and their state | [`worker`] |
//! | connections in | [`serve`], [`conn`], [`fds`] |
//! | what a request says | [`head`], [`headers`], [`trust`] |
//! | waiting for a slot | [`limiter`] |
//! | requests out | [`target`], [`forward`], [`tunnel`] |
//! | bodies | [`body`], [`replay`] |
//! | answers of our own | [`reason`], [`refuse`] |
//! | stopping | [`shutdown`] |
//! | stats between components | [`stats`] |
//! | logs and metrics | [`telemetry`], [`metrics`] |
//!
//! Nothing here ends the process, reads the environment, or spawns a task
//! that a [`shutdown::Shutdown`] does not track.

pub mod body;
pub mod clock;
pub mod conn;
pub mod deadline;
pub mod duration;
pub mod fds;
pub mod forward;
pub mod head;
pub mod headers;
pub mod limiter;
pub mod metrics;
mod peer;
pub mod reason;
pub mod refuse;
pub mod replay;
pub mod serve;
pub mod shutdown;
pub mod stats;
pub mod target;
pub mod telemetry;
pub mod trust;
pub mod tunnel;
pub mod wheel;
pub mod worker;

#[cfg(not(target_os = "linux"))]
compile_error!("zeroscale runs on Linux only (process groups, /proc, child subreapers)");
