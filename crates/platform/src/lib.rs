//! Where pods come from.
//!
//! The seam is data, not a trait: a platform is a function that spawns its
//! tasks and returns a [`Platform`]. What is comes out of `world`, what is
//! wanted goes into `orders`; there is nothing to call and nothing to wait for.
//! Here: [`process`], where pods are child processes of this machine, and
//! [`mod@file`], where somebody else writes down what is.

#[cfg(not(target_os = "linux"))]
compile_error!("Zeroscale runs on Linux only: it relies on subreapers, death signals and /proc");

pub mod file;
pub mod process;

use policy::world::{Order, Snapshot};
use std::sync::Arc;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

/// A running platform: the two ends of its seam, and its end.
#[derive(Debug)]
pub struct Platform {
    /// What is. The first snapshot is there from the start. A pod whose sidecar
    /// is not known yet has the address 127.0.0.1:0; it is not ready.
    pub world: watch::Receiver<Arc<Snapshot>>,
    /// What is wanted. Orders for unknown revisions are dropped with a log line.
    pub orders: mpsc::Sender<Order>,
    /// Resolves when, after the shutdown, every child process is gone. An
    /// error means that the platform's task panicked; the guard then has
    /// killed the children.
    pub ended: JoinHandle<()>,
}
