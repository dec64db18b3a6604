//! Holds requests for pods that are not there yet, wakes them, and hands each
//! waiting request to the first slot that frees on any pod.
//!
//! It is also the ingress where there is none: then it leaves its own queue
//! and counts out when the path says that requests go straight to the pods.
//! The request path is `chain::serve`; what comes from the platform arrives as
//! snapshots (`table`).

mod burst;
mod callers;
mod chain;
mod condition;
mod config;
mod crowd;
mod end;
pub mod env;
mod exposition;
mod full;
mod health;
pub mod link;
mod metrics;
mod offer;
mod parked;
mod passthrough;
mod pods;
mod prober;
mod probes;
mod question;
mod repeat;
mod report;
mod retire;
mod revision;
mod route;
mod share;
mod strict;
mod suspect;
mod table;
mod tracked;
mod trouble;
pub mod uplink;
mod wait;
mod wake;

pub use config::{Cluster, Config};

use plumbing::conn::Caller;
use plumbing::head::Head;
use plumbing::replay::PrefixBudget;
use plumbing::serve;
use plumbing::serve::Port;
use plumbing::shutdown::Shutdown;
use plumbing::stats::StatSink;
use plumbing::worker::Workers;
use policy::compat::Compat;
use policy::moment::Moment;
use policy::revision::RevisionId;
use policy::world::{Holding, Snapshot};
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use tokio::sync::{Notify, watch};

/// What an activator listens on.
pub struct Sockets {
    /// Requests: HTTP/1 and HTTP/2, in the clear or under TLS.
    pub serving: Vec<Port>,
}

/// What an activator is joined to.
pub struct Links {
    /// What the platform knows.
    pub world: watch::Receiver<Arc<Snapshot>>,
    /// Who serves its connections.
    pub workers: Workers,
}

/// An activator. Clones share it.
#[derive(Clone)]
pub struct Activator {
    shared: Arc<Shared>,
}

struct Shared {
    config: Config,
    table: table::Table,
    stats: StatSink,
    budget: PrefixBudget,
    held: AtomicUsize,
    callers: callers::Callers,
    metrics: Arc<metrics::Metrics>,
    crowd: Arc<crowd::Crowd>,
    health: health::Health,
    /// Ends upgraded connections: asked politely first, then dropped.
    tunnels: Shutdown,
    /// Somebody waits at zero.
    waits: Notify,
    tracked: tracked::Tracked,
}

/// What an activator does for one revision now.
#[derive(Clone, Debug, PartialEq)]
pub struct RevisionLoad {
    /// The revision.
    pub revision: RevisionId,
    /// Requests that wait.
    pub held: usize,
    /// When the oldest of them came.
    pub oldest_held_since: Option<Moment>,
    /// Requests that are at pods.
    pub in_flight: usize,
    /// Pods that it may choose; one address for all of them counts as one.
    pub pods: usize,
}

impl Activator {
    /// Without revisions; [`run`] feeds it. Its stats go to `stats`, once a
    /// second and on the first request at zero; by `holding` it says which
    /// terminating pods still have requests of its.
    pub fn new(config: Config, stats: StatSink, holding: watch::Sender<Arc<Holding>>) -> Activator {
        let budget = PrefixBudget::new(config.held_bytes_max);
        let table = table::Table::new(retire::Retirement::new(holding));
        let (metrics, crowd) = (Arc::new(metrics::Metrics::new()), crowd::Crowd::new());
        let health = health::Health::new(config.compat);
        let callers = callers::Callers::new(config.wakes_per_caller_max);
        let (held, waits, tunnels) = (AtomicUsize::new(0), Notify::new(), Shutdown::new());
        let tracked = tracked::Tracked::default();
        let shared =
            Shared { config, table, stats, budget, held, callers, metrics, crowd, health, tunnels, waits, tracked };
        let shared = Arc::new(shared);
        let seen = Arc::downgrade(&shared);
        // The counters are the activator's own: they must not keep it.
        shared.config.observer.read_more(move || seen.upgrade().map(|all| exposition::all(&all)).unwrap_or_default());
        Activator { shared }
    }

    /// Its kubelet is told from now on that it is on its way out; everybody
    /// else is served as before.
    pub fn terminate(&self) {
        self.shared.health.terminate();
    }

    /// Whether it reaches its autoscaler is part of its health from now on.
    pub fn reaches(&self, reach: watch::Receiver<link::Reach>) {
        self.shared.health.follow(reach);
    }

    /// Its metrics by revision, and those of its requests where they are asked
    /// for, in the text form of Prometheus.
    pub fn exposition(&self) -> String {
        match self.shared.config.observer.metrics() {
            Some(metrics) => observe::metrics::page(&metrics),
            None => observe::metrics::families(&exposition::all(&self.shared).families),
        }
    }

    /// The revision that a request is for, if it is there.
    pub fn revision_of(&self, head: &Head) -> Option<RevisionId> {
        self.shared.table.lookup(head).map(|revision| revision.id.clone())
    }

    /// What it does now, one entry a revision.
    pub fn load(&self) -> Vec<RevisionLoad> {
        self.shared.table.all().iter().map(|revision| revision.load()).collect()
    }
}

/// Serves until `shutdown` drains and the last request has ended; returns
/// then, at the latest at the second stage.
pub async fn run(activator: Activator, sockets: Sockets, links: Links, shutdown: Shutdown) {
    // The reference tells once.
    let repeating = (activator.shared.config.compat == Compat::Better)
        .then(|| tokio::spawn(repeat::run(activator.clone(), links.world.clone())));
    let following = tokio::spawn(table::follow(activator.clone(), links.world, links.workers.clone()));
    let reporting = tokio::spawn(report::run(activator.clone()));
    let settings = activator.shared.config.serve.clone();
    let mut serving = Vec::new();
    for listener in sockets.serving {
        let handler = {
            let activator = activator.clone();
            move |caller: Arc<Caller>, request| chain::serve(activator.clone(), caller, request)
        };
        let served = serve::serve(listener, links.workers.clone(), settings.clone(), shutdown.clone(), handler);
        serving.push(tokio::spawn(served));
    }
    for listener in serving {
        let _ = listener.await;
    }
    tokio::select! {
        () = end::finish(&activator, &shutdown) => {}
        () = shutdown.stopping() => {}
    }
    activator.shared.tunnels.stop();
    if let Some(repeating) = repeating {
        repeating.abort();
    }
    following.abort();
    reporting.abort();
    activator.shared.table.all().iter().for_each(|revision| revision.stop_asking());
}
