//! A sidecar for each process: a task on one of the workers, with a listener
//! of its own on loopback.

use crate::assemble;
use crate::settings::Settings;
use observe::Observer;
use platform::process::{Readiness as PodReadiness, Seat, SeatRequest};
use plumbing::shutdown::Shutdown;
use plumbing::stats::StatSink;
use plumbing::trust::Trust;
use plumbing::worker::{Worker, Workers};
use policy::compat::Compat;
use policy::revision::RevisionId;
use queue_proxy::{Config, Links, Readiness, Sockets};
use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

/// What all sidecars have in common.
pub(crate) struct Seats {
    pub(crate) workers: Workers,
    pub(crate) stats: StatSink,
    readiness: BTreeMap<RevisionId, PodReadiness>,
    compat: Compat,
}

impl Seats {
    pub(crate) fn new(workers: Workers, stats: StatSink, settings: &Settings) -> Seats {
        let readiness = settings.services.iter().map(|service| (service.revision.clone(), service.readiness.clone()));
        Seats { workers, stats, readiness: readiness.collect(), compat: settings.compat }
    }

    /// Makes sidecars until nobody asks any more.
    pub(crate) async fn run(self, mut asked: mpsc::Receiver<SeatRequest>) {
        while let Some(request) = asked.recv().await {
            let seat = self.seat(&request);
            // Nobody waits any more: the seat comes back and closes itself.
            let _ = request.reply.send(seat);
        }
    }

    fn seat(&self, request: &SeatRequest) -> io::Result<Seat> {
        // Made here and moved to the worker's runtime: a listener of the
        // standard library would have a backlog of 128, and a burst more.
        let listener = assemble::listen((Ipv4Addr::LOCALHOST, 0).into())?.into_std()?;
        let address = listener.local_addr()?;
        let config = self.config(request);
        let drain = CancellationToken::new();
        let (closed, ended) = oneshot::channel();
        let worker = self.workers.least_busy().clone();
        let served = serve_pod(config, listener, worker.clone(), self.stats.clone(), drain.clone());
        worker.spawn(async move {
            served.await;
            let _ = closed.send(());
        });
        Ok(Seat { address, shutdown: drain, ended })
    }

    fn config(&self, request: &SeatRequest) -> Config {
        let mut config = Config::new(request.pod.clone(), request.revision.clone(), request.app, Trust::loopback());
        config.limit_to(request.spec.container_concurrency);
        config.timeouts = request.spec.timeouts;
        config.readiness = readiness(self.readiness.get(&request.revision), request.app);
        config.compat = self.compat;
        config
    }
}

async fn serve_pod(
    config: Config,
    listener: std::net::TcpListener,
    worker: Worker,
    stats: StatSink,
    drain: CancellationToken,
) {
    let serving = match tokio::net::TcpListener::from_std(listener) {
        Ok(serving) => serving,
        Err(error) => {
            tracing::error!(pod = %config.pod, %error, "a sidecar could not listen");
            return;
        }
    };
    queue_proxy::run(
        config,
        Sockets::serving(serving),
        Links { stats: Some(stats), observer: Observer::off(), worker },
        Shutdown::with_drain(drain),
    )
    .await;
}

fn readiness(of_pod: Option<&PodReadiness>, app: SocketAddr) -> Readiness {
    match of_pod {
        Some(PodReadiness::Http(path)) => Readiness::http(app, path),
        Some(PodReadiness::Tcp) | None => Readiness::tcp(app),
    }
}
