//! The sidecar in front of one app.
//!
//! It takes every request of its pod, keeps the app's concurrency limit,
//! counts until the last byte, enforces the request's time limits, answers
//! probes, and drains. The request path is `chain`.

mod chain;
mod config;
mod end;
pub mod env;
mod lease;
mod ports;
mod probes;
pub mod process_log;
mod push;
pub mod readiness;
mod report;
mod sidecar;
mod version;

use crate::chain::Chain;
pub use config::{Config, QUEUE_DEPTH_PER_SLOT};
pub use readiness::Readiness;

use observe::Observer;
use plumbing::serve::{self, Port};
use plumbing::shutdown::Shutdown;
use plumbing::stats::StatSink;
use plumbing::tls::Acceptor;
use plumbing::worker::{Worker, Workers};
use ports::{admin, autometric, usermetric};
use push::Push;
use report::Latest;
use sidecar::Sidecar;
use std::sync::Arc;
use tokio::net::TcpListener;

/// What a sidecar listens on; the side ports only where they are there.
pub struct Sockets {
    /// Requests and probes.
    pub serving: TcpListener,
    /// The same under TLS.
    pub serving_tls: Option<(TcpListener, Acceptor)>,
    /// The stop hook.
    pub admin: Option<TcpListener>,
    /// Metrics of requests, for the operator.
    pub user_metrics: Option<TcpListener>,
    /// The stat of the last second.
    pub autometric: Option<TcpListener>,
    /// Where the app says that it is busy; it must be on loopback.
    pub lease: Option<TcpListener>,
}

impl Sockets {
    /// The main port alone.
    pub fn serving(serving: TcpListener) -> Sockets {
        Sockets { serving, serving_tls: None, admin: None, user_metrics: None, autometric: None, lease: None }
    }
}

/// What a sidecar is joined to.
pub struct Links {
    /// Where its stats go, once a second.
    pub stats: Option<StatSink>,
    /// What is told of its requests.
    pub observer: Observer,
    /// The worker that serves it.
    pub worker: Worker,
}

/// Serves until `shutdown` drains, then for the quiet time, and until the last
/// request has ended; returns then, at the latest at the second stage. Run it
/// on the thread of `links.worker`.
pub async fn run(config: Config, sockets: Sockets, links: Links, shutdown: Shutdown) {
    let sidecar = Arc::new(Sidecar::new(config, links.observer));
    let latest = Arc::new(Latest::new(&sidecar.config.pod));
    let pushing = sidecar.config.stats_push.clone().map(|receiver| {
        let push = Push { receiver, revision: sidecar.config.revision.clone(), reports: latest.follow() };
        tokio::spawn(push.run())
    });
    let reporting = tokio::spawn(report::run(sidecar.clone(), latest.clone(), links.stats));
    // In the order in which they are closed.
    let mut side_ports = Vec::new();
    let mut side_port = || {
        let port = Shutdown::new();
        side_ports.push(port.clone());
        port
    };
    if let Some(listener) = sockets.lease {
        tokio::spawn(ports::lease::serve(sidecar.clone(), listener, side_port()));
    }
    if let Some(listener) = sockets.admin {
        tokio::spawn(admin::serve(sidecar.clone(), listener, side_port()));
    }
    if let (Some(listener), Some(metrics)) = (sockets.user_metrics, sidecar.observer.metrics()) {
        tokio::spawn(usermetric::serve(metrics, listener, side_port()));
    }
    if let Some(listener) = sockets.autometric {
        tokio::spawn(autometric::serve(latest, listener, side_port()));
    }
    let serving = async {
        serve_main(&sidecar, sockets.serving, sockets.serving_tls, links.worker, &shutdown).await;
        end::finish(&sidecar).await;
        end::close(&side_ports).await;
    };
    tokio::select! {
        () = serving => {}
        () = shutdown.stopping() => {}
    }
    sidecar.drain.close();
    for stage in [&sidecar.closing, &sidecar.tunnels].into_iter().chain(&side_ports) {
        stage.stop();
    }
    reporting.abort();
    if let Some(pushing) = pushing {
        pushing.abort();
    }
}

/// Serves the main port, under TLS too, until the quiet time is over.
async fn serve_main(
    sidecar: &Arc<Sidecar>,
    plain: TcpListener,
    tls: Option<(TcpListener, Acceptor)>,
    worker: Worker,
    shutdown: &Shutdown,
) {
    let mut settings = sidecar.config.serve.clone();
    settings.reuse_after_early_answer &= !sidecar.config.full_duplex;
    let workers = Workers::only(worker);
    let serve_port = |port: Port| {
        let chain = Chain(sidecar.clone());
        serve::serve(port, workers.clone(), settings.clone(), sidecar.closing.clone(), chain)
    };
    let plain = serve_port(plain.into());
    let tls = tls.map(|(listener, acceptor)| serve_port(Port::with_tls(listener, acceptor)));
    let tls = async {
        if let Some(served) = tls {
            served.await;
        }
    };
    let quiet = async {
        end::quiet(sidecar, shutdown).await;
        sidecar.closing.drain();
    };
    tokio::join!(plain, tls, quiet);
}
