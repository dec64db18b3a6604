//! The guard: a small process between `zeroscale` and its pods, so that
//! nothing outlives `zeroscale`, however it ends.
//!
//! It is the pods' parent and a child subreaper: what calls setsid or forks
//! twice falls to it. It holds one end of a socket; at end of file, which comes
//! even when `zeroscale` is killed, it kills every group and every descendant,
//! then exits. Should the guard itself be killed, the pods' death signal takes
//! the direct children, and the rest falls to `zeroscale`, a subreaper too,
//! which kills them and starts another guard.
//!
//! Not here: when to start or stop a pod, and sidecars.
//!
//! What it cannot catch: a process that has both lost its parents and wiped
//! its environment is not known to be of one pod; it ends with the guard's last
//! pod. And nothing helps against the guard and `zeroscale` being killed in the
//! same instant, for what had called setsid.

mod client;
mod keeper;
mod protocol;
mod raw;
mod running;
mod serve;
mod spawn;
mod sweep;
mod ward;

pub use serve::serve;

pub(super) use client::{End, Guard, Launch, Process, start};
pub(super) use protocol::{Exit, Spawn};

use std::time::Duration;

/// Names the pod in the environment of all its processes, which is how the
/// guard knows whose an orphan is.
const MARK: &str = "ZEROSCALE_POD";

/// Longest time for killing what is left, once KILL is due. What then still
/// runs cannot be killed (another user's, or stuck in the kernel).
const SWEEP_LIMIT: Duration = Duration::from_secs(5);
