//! Pods as child processes of this machine.
//!
//! One task owns what is wanted and what is, and publishes snapshots; one task
//! a pod lives the pod's life; a [`guard`] process is the pods' parent and sees
//! to it that nothing outlives us. Not here: sidecars (asked for by
//! [`SeatRequest`]), and how many pods there should be.

mod backoff;
mod config;
mod drain;
pub mod guard;
mod launch;
mod names;
mod output;
mod pod;
mod port;
mod readiness;
mod reconcile;
mod revision;
mod words;

pub use backoff::Backoff;
pub use config::{Config, GuardCommand, Links, Probing, Readiness, Seat, SeatRequest, Service};
pub use output::{Line, Output, Sink, Stream};

use crate::Platform;
use guard::Guard;
use readiness::Crowd;
use reconcile::Reconciler;
use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// Most pods at a time, whatever [`Config::max_pods`] says: a slip in a number
/// must not take the machine down.
pub const HARD_MAX_PODS: u32 = 4096;

/// Orders that may wait.
const ORDERS: usize = 256;

/// What all pods share.
struct Shared {
    guard: Guard,
    links: Links,
    backoff: Backoff,
    probing: Probing,
    output: Output,
    seat_timeout: Duration,
    soft_nofile: Option<u64>,
    crowd: Crowd,
}

/// Starts the guard process and the platform's tasks, on the current runtime.
///
/// When `shutdown` is cancelled, all pods are stopped (sidecar, TERM, KILL),
/// whatever `links.holding` says; [`Platform::ended`] tells when they are gone.
/// This process becomes a child subreaper: when its guard is killed it kills
/// its children outside its own session, so it should have none of its own there.
///
/// # Errors
/// When the guard cannot be started, or the configuration is of no use: no
/// command, a revision twice, or a readiness path that is none.
///
/// # Panics
/// Outside a tokio runtime with I/O and time.
pub fn start(config: Config, links: Links, shutdown: CancellationToken) -> io::Result<Platform> {
    check(&config)?;
    let (guard, guard_task) = guard::start(config.guard.clone())?;
    let shared = Shared {
        guard,
        links,
        backoff: config.backoff,
        probing: config.probing,
        output: config.output.clone(),
        seat_timeout: config.seat_timeout,
        soft_nofile: config.guard.soft_nofile,
        crowd: Crowd::default(),
    };
    let (orders, inbox) = mpsc::channel(ORDERS);
    let reconciler = Reconciler::new(config, Arc::new(shared));
    Ok(Platform { world: reconciler.world(), orders, ended: tokio::spawn(reconciler.run(inbox, shutdown, guard_task)) })
}

fn check(config: &Config) -> io::Result<()> {
    let mut seen = BTreeSet::new();
    for service in &config.services {
        let revision = &service.revision;
        let fault = if !seen.insert(revision) {
            "is there twice"
        } else if service.command.first().is_none_or(|program| program.is_empty()) {
            "has no command"
        } else if !is_path(&service.readiness) {
            "has a readiness path that is none"
        } else {
            continue;
        };
        return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("{revision} {fault}")));
    }
    Ok(())
}

fn is_path(readiness: &Readiness) -> bool {
    match readiness {
        Readiness::Tcp => true,
        Readiness::Http(path) => path.starts_with('/') && path.bytes().all(|byte| byte.is_ascii_graphic()),
    }
}
