//! The sidecar in front of one app.
//!
//! It takes every request of its pod, keeps the app's concurrency limit,
//! counts until the last byte, enforces the request's time limits, answers
//! probes, and drains. The request path is `chain::serve`.

mod chain;
mod config;
mod readiness;
mod report;
mod sidecar;

pub use config::{Config, QUEUE_DEPTH_PER_SLOT, Readiness};

use plumbing::serve;
use plumbing::shutdown::Shutdown;
use plumbing::stats::StatSink;
use plumbing::worker::{Worker, Workers};
use sidecar::Sidecar;
use std::sync::Arc;
use tokio::net::TcpListener;

/// What a sidecar listens on.
pub struct Sockets {
    /// Requests and probes.
    pub serving: TcpListener,
}

/// What a sidecar is joined to.
pub struct Links {
    /// Where its stats go, once a second.
    pub stats: StatSink,
    /// The worker that serves it.
    pub worker: Worker,
}

/// Serves until `shutdown` drains and the last request has ended; returns
/// then, at the latest at the second stage. Run it on the thread of
/// `links.worker`.
pub async fn run(config: Config, sockets: Sockets, links: Links, shutdown: Shutdown) {
    let sidecar = Arc::new(Sidecar::new(config, shutdown.clone()));
    let reporting = tokio::spawn(report::run(sidecar.clone(), links.stats));
    let settings = sidecar.config.serve.clone();
    let handler = {
        let sidecar = sidecar.clone();
        move |caller, request| chain::serve(sidecar.clone(), caller, request)
    };
    serve::serve(sockets.serving, Workers::only(links.worker), settings, shutdown.clone(), handler).await;
    tokio::select! {
        () = shutdown.finished() => {}
        () = shutdown.stopping() => {}
    }
    reporting.abort();
}
