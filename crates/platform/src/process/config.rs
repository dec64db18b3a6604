//! What the process platform is told at start, and what it is linked to.
//! No behaviour beyond defaults.

use super::backoff::Backoff;
use super::output::Output;
use policy::moment::Moment;
use policy::revision::{RevisionId, RevisionSpec};
use policy::world::{Holding, PodName, Routes};
use std::ffi::OsString;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;

/// Everything the process platform is told at start.
#[derive(Clone, Debug)]
pub struct Config {
    /// The services; each revision at most once.
    pub services: Vec<Service>,
    /// Passed on in every snapshot.
    pub routes: Routes,
    /// Most pods of all services together, ending ones included; 0 = none
    /// (then [`super::HARD_MAX_PODS`] holds). Default of the local floor: 64.
    pub max_pods: u32,
    /// How the guard process is started.
    pub guard: GuardCommand,
    /// Waits between failed starts.
    pub backoff: Backoff,
    /// How readiness is asked for.
    pub probing: Probing,
    /// Where the apps' output goes, and how much of it.
    pub output: Output,
    /// Longest wait for a sidecar to close once it was told to.
    pub seat_timeout: Duration,
}

impl Config {
    /// The local floor's defaults for these services.
    pub fn new(services: Vec<Service>, routes: Routes, guard: GuardCommand) -> Config {
        Config {
            services,
            routes,
            max_pods: 64,
            guard,
            backoff: Backoff::default(),
            probing: Probing::default(),
            output: Output::default(),
            seat_timeout: Duration::from_secs(10),
        }
    }
}

/// One revision, and how a process of it is started and stopped.
#[derive(Clone, Debug)]
pub struct Service {
    /// Which revision.
    pub revision: RevisionId,
    /// Its limits and scaling.
    pub spec: Arc<RevisionSpec>,
    /// Program and arguments; `{port}` is replaced in each.
    pub command: Vec<OsString>,
    /// Working directory; `None` = that of `zeroscale`.
    pub cwd: Option<PathBuf>,
    /// Added to the inherited environment; `PORT`, `K_SERVICE`, `K_REVISION`
    /// and `K_CONFIGURATION` are set after these.
    pub env: Vec<(OsString, OsString)>,
    /// What makes a pod ready.
    pub readiness: Readiness,
    /// A start that takes longer has failed, and is tried again.
    pub start_timeout: Duration,
    /// From TERM to KILL.
    pub stop_timeout: Duration,
    /// Pods to start before the first order (0, or the lower bound).
    pub initial: u32,
}

impl Service {
    /// The local floor's defaults for this command.
    pub fn new(revision: RevisionId, spec: Arc<RevisionSpec>, command: Vec<OsString>) -> Service {
        Service {
            revision,
            spec,
            command,
            cwd: None,
            env: Vec::new(),
            readiness: Readiness::Tcp,
            start_timeout: Duration::from_secs(60),
            stop_timeout: Duration::from_secs(10),
            initial: 0,
        }
    }
}

/// What makes a pod ready; asked of 127.0.0.1 at the pod's port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Readiness {
    /// Its port accepts a connection. Not asked again while the process lives.
    Tcp,
    /// A GET of this path (with its query) answers 200 to 399. Asked again
    /// while the pod is ready.
    Http(String),
}

/// How readiness is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probing {
    /// Limit of one attempt (default 1 s).
    pub attempt: Duration,
    /// Between two checks of a ready pod (default 2 s).
    pub period: Duration,
    /// Failed checks in a row after which a ready pod is not ready (default 3).
    pub failures: u32,
}

impl Default for Probing {
    fn default() -> Probing {
        Probing { attempt: Duration::from_secs(1), period: Duration::from_secs(2), failures: 3 }
    }
}

/// How the guard process is started: it must call [`super::guard::serve`].
#[derive(Clone, Debug)]
pub struct GuardCommand {
    /// The program.
    pub program: PathBuf,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// Soft limit of file descriptors for pods: the one that `zeroscale` had
    /// before it raised its own. `None` = as inherited.
    pub soft_nofile: Option<u64>,
}

impl GuardCommand {
    /// This very program again, with `argument` as its only argument.
    pub fn own(argument: impl Into<OsString>) -> GuardCommand {
        GuardCommand { program: PathBuf::from("/proc/self/exe"), args: vec![argument.into()], soft_nofile: None }
    }
}

/// What the process platform is linked to.
#[derive(Clone, Debug)]
pub struct Links {
    /// Who makes sidecars. One is asked for at each start of a process, while
    /// the app starts.
    pub seats: mpsc::Sender<SeatRequest>,
    /// What senders of requests still hold; when its sender is gone, nothing.
    pub holding: watch::Receiver<Arc<Holding>>,
    /// The time.
    pub now: fn() -> Moment,
}

/// Asks for a sidecar in front of one process.
#[derive(Debug)]
pub struct SeatRequest {
    /// The pod.
    pub pod: PodName,
    /// Its revision.
    pub revision: RevisionId,
    /// Where the app listens, or will.
    pub app: SocketAddr,
    /// Limits and scaling.
    pub spec: Arc<RevisionSpec>,
    /// Takes the sidecar. When nobody listens any more, the [`Seat`] comes
    /// back and closes itself as it is dropped.
    pub reply: oneshot::Sender<io::Result<Seat>>,
}

/// A sidecar that listens. Dropped, it is told to shut down.
#[derive(Debug)]
pub struct Seat {
    /// Where it listens.
    pub address: SocketAddr,
    /// Cancelled: take no more work, finish, close.
    pub shutdown: CancellationToken,
    /// Resolves, also by being dropped, when the sidecar has closed.
    pub ended: oneshot::Receiver<()>,
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.shutdown.cancel();
    }
}
