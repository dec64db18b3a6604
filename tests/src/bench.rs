//! An activator in a test: snapshots in, real sockets out.

use crate::rig::{PATIENCE, long_timeouts};
use activator::{Activator, Config, Links, Sockets};
use plumbing::fds::Budget;
use plumbing::shutdown::Shutdown;
use plumbing::stats::{self, StatSource};
use plumbing::trust::Trust;
use plumbing::worker::{Worker, Workers};
use policy::moment::Moment;
use policy::revision::{Aggregation, Bounds, RevisionId, RevisionSpec, ScaleSpec, WindowSpec};
use policy::world::{Holding, Network, Path, Pod, PodPhase, RevisionView, Routes, Snapshot, Trouble};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::time::timeout;

/// A running activator, its platform in the test's hands.
pub struct Bench {
    /// Where it listens.
    pub address: SocketAddr,
    /// The activator.
    pub activator: Activator,
    /// What the platform says.
    pub world: watch::Sender<Arc<Snapshot>>,
    /// What the activator still holds.
    pub holding: watch::Receiver<Arc<Holding>>,
    /// Its stats.
    pub stats: StatSource,
    /// Stops it.
    pub shutdown: Shutdown,
    /// Resolves when it has ended.
    pub ended: tokio::task::JoinHandle<()>,
    /// The revision's spec.
    pub spec: RevisionSpec,
    /// What the network of a cluster knows of it.
    pub network: Network,
}

/// A moment that plays no part.
pub const EPOCH: Moment = Moment::from_unix_millis(0);

/// A spec with the reference's defaults.
pub fn spec(limit: u32) -> RevisionSpec {
    let seconds = Duration::from_secs;
    RevisionSpec {
        service: "svc".into(),
        configuration: "svc".into(),
        container_concurrency: limit,
        timeouts: long_timeouts(),
        scale: ScaleSpec { initial_scale: 0, activation_scale: 1, ..ScaleSpec::KNATIVE },
        windows: WindowSpec { stable: seconds(60), panic: seconds(6), aggregation: Aggregation::Linear },
        bounds: Bounds {
            min_scale: 0,
            max_scale: 10,
            scale_to_zero: true,
            grace: seconds(0),
            retention: seconds(0),
            progress_deadline: seconds(60),
        },
    }
}

/// Starts an activator for one revision without pods.
pub async fn bench(limit: u32, change: impl FnOnce(&mut Config)) -> Bench {
    bench_within(Budget::unlimited(), limit, change).await
}

/// The same, within a budget of descriptors.
pub async fn bench_within(fds: Budget, limit: u32, change: impl FnOnce(&mut Config)) -> Bench {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("an address");
    let (world, seen) = watch::channel(Arc::new(Snapshot::default()));
    let (holding, holding_seen) = watch::channel(Arc::new(Holding::default()));
    let (sink, stats) = stats::link();
    let shutdown = Shutdown::new();
    let mut config = Config::new("activator", Trust::nobody());
    change(&mut config);
    let activator = Activator::new(config, sink, holding);
    let workers = Workers::only(Worker::here(&shutdown, fds));
    let links = Links { world: seen, workers };
    let sockets = Sockets { serving: vec![listener.into()] };
    let ended = tokio::spawn(activator::run(activator.clone(), sockets, links, shutdown.clone()));
    let spec = spec(limit);
    let network = Network::default();
    let bench = Bench { address, activator, world, holding: holding_seen, stats, shutdown, ended, spec, network };
    bench.publish(&[], Path::Activator, None).await;
    bench
}

impl Bench {
    /// Publishes pods, and waits until they are taken in.
    pub async fn publish(&self, pods: &[(&str, SocketAddr, PodPhase)], path: Path, trouble: Option<Trouble>) {
        let pods = pods.iter().map(|&(name, address, phase)| Pod {
            name: name.into(),
            address,
            phase,
            since: EPOCH,
            start_took: None,
        });
        let view = RevisionView {
            spec: Arc::new(self.spec.clone()),
            pods: pods.collect(),
            path,
            path_since: EPOCH,
            trouble,
            without_room: 0,
            network: self.network.clone(),
        };
        let id = RevisionId::new("default", "rev");
        let version = self.world.borrow().version + 1;
        let routes = Routes { fallback: Some(id.clone()), ..Routes::default() };
        self.world.send_replace(Arc::new(Snapshot {
            version,
            revisions: [(id, Arc::new(view))].into_iter().collect(),
            routes,
        }));
        let mut holding = self.holding.clone();
        timeout(PATIENCE, holding.wait_for(|held| held.version >= version))
            .await
            .expect("the snapshot is taken in")
            .expect("the activator runs");
    }

    /// Publishes ready pods behind the activator.
    pub async fn ready(&self, pods: &[(&str, SocketAddr)]) {
        let pods: Vec<_> = pods.iter().map(|&(name, address)| (name, address, PodPhase::Ready)).collect();
        self.publish(&pods, Path::Activator, None).await;
    }

    /// Requests that wait.
    pub fn held(&self) -> usize {
        self.activator.load().iter().map(|load| load.held).sum()
    }

    /// Requests at pods.
    pub fn in_flight(&self) -> usize {
        self.activator.load().iter().map(|load| load.in_flight).sum()
    }
}
