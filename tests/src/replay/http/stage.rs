//! One row: an activator, its pods, and a client that speaks raw bytes.

use super::super::cases::latin;
use super::pod::Pod;
use super::row::{Row, Seen};
use crate::bench::{EPOCH, spec};
use activator::link::Reach;
use activator::{Activator, Cluster, Config, Links, Sockets};
use observe::{Component, Identity, Observer, Setup};
use plumbing::fds::Budget;
use plumbing::shutdown::Shutdown;
use plumbing::stats;
use plumbing::trust::Trust;
use plumbing::worker::{Worker, Workers};
use policy::compat::Compat;
use policy::mesh::MeshMode;
use policy::revision::{RevisionId, RevisionSpec, Timeouts};
use policy::world::{Holding, Network, Path, Pod as PodView, PodPhase, RevisionView, Routes, Snapshot};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout, timeout_at};

/// What NUL in a request stands for.
const PAUSE: Duration = Duration::from_millis(150);
/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(15);
/// How long an upgraded connection is watched, and how often a byte is sent.
const WATCHED: Duration = Duration::from_millis(2500);
const BYTE_EVERY: Duration = Duration::from_millis(100);
/// When a pod of a row comes that is without at first, in the default mode.
const POD_LATER: Duration = Duration::from_millis(1500);

/// Plays a row.
///
/// # Errors
/// When something beside the activator does not work.
pub(super) async fn play(row: &Row, mode: Compat) -> Result<Seen, String> {
    let shutdown = Shutdown::new();
    let played = timeout(PATIENCE, Stage::set(row, mode, &shutdown).await.map_err(words)?.play(row, mode)).await;
    shutdown.stop();
    played.map_err(|_| format!("nothing came of it within {PATIENCE:?}"))?.map_err(words)
}

fn words(error: std::io::Error) -> String {
    error.to_string()
}

struct Stage {
    address: SocketAddr,
    activator: Activator,
    world: watch::Sender<Arc<Snapshot>>,
    pod: Pod,
    /// Where it listens, or would.
    pod_address: SocketAddr,
    /// Set while it does not.
    unborn: Option<TcpListener>,
    _reach: watch::Sender<Reach>,
}

impl Stage {
    async fn set(row: &Row, mode: Compat, shutdown: &Shutdown) -> std::io::Result<Stage> {
        let number = row.number();
        let (pod, pod_listener) = (Pod::of(row), TcpListener::bind("127.0.0.1:0").await?);
        let pod_address = pod_listener.local_addr()?;
        let unborn = match number {
            // Nothing listens at that address any more.
            48 => {
                drop(pod_listener);
                None
            }
            39 | 41..=43 => Some(pod_listener),
            _ => {
                pod.serve(pod_listener);
                None
            }
        };
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let (world, seen) = watch::channel(snapshot(1, unborn.is_none().then_some(pod_address), &REVISIONS));
        let (holding, mut taken_in) = watch::channel(Arc::new(Holding::default()));
        let (sink, _source) = stats::link();
        let activator = Activator::new(config(row, mode), sink, holding);
        let (reach, reached) = watch::channel(if number == 31 { Reach::NeverYet } else { Reach::Up });
        activator.reaches(reached);
        if matches!(number, 32..=34) {
            activator.terminate();
        }
        let workers = Workers::only(Worker::here(shutdown, Budget::unlimited()));
        let links = Links { world: seen, workers };
        tokio::spawn(activator::run(
            activator.clone(),
            Sockets { serving: vec![listener.into()] },
            links,
            shutdown.clone(),
        ));
        let _ = taken_in.wait_for(|held| held.version >= 1).await;
        Ok(Stage { address, activator, world, pod, pod_address, unborn, _reach: reach })
    }

    async fn play(mut self, row: &Row, mode: Compat) -> std::io::Result<Seen> {
        if row.kind == "upgrade_timer" {
            return self.upgraded(row, mode).await;
        }
        if matches!(row.number(), 59 | 60) {
            self.earlier().await?;
        }
        let began = Instant::now();
        let mut client = TcpStream::connect(self.address).await?;
        let later = self.later(row.number(), mode);
        let exchange = async {
            for (number, part) in row.request.split('\0').enumerate() {
                if number > 0 {
                    sleep(PAUSE).await;
                }
                client.write_all(part.as_bytes()).await?;
            }
            let until = began + row.reads_for().unwrap_or(PATIENCE);
            read(&mut client, began, until).await
        };
        let (exchange, ()) = tokio::join!(exchange, later);
        let (response, first_byte, ended) = exchange?;
        // What the pod saw, it saw before it answered; but for bodies that are still on their way.
        let elapsed = began.elapsed();
        Ok(Seen { mode, response, first_byte, elapsed, ended, pod_received: self.pod.received(self.pod_address) })
    }

    /// A request over the connection that the next one uses too.
    async fn earlier(&self) -> std::io::Result<()> {
        let mut client = TcpStream::connect(self.address).await?;
        let request = "GET /a/b?q=1 HTTP/1.1\r\nHost: app.example.com\r\nConnection: close\r\n\
                       Knative-Serving-Revision: rev\r\nKnative-Serving-Namespace: ns\r\n\r\n";
        client.write_all(request.as_bytes()).await?;
        let _ = read(&mut client, Instant::now(), Instant::now() + PATIENCE).await?;
        Ok(())
    }

    /// What happens while the request waits.
    fn later(&mut self, number: u32, mode: Compat) -> impl Future<Output = ()> + use<> {
        let (world, activator, address) = (self.world.clone(), self.activator.clone(), self.pod_address);
        let (pod, unborn) = (self.pod.clone(), self.unborn.take());
        async move {
            let held = async {
                while activator.load().iter().all(|load| load.held == 0) {
                    sleep(Duration::from_millis(1)).await;
                }
            };
            match (number, mode) {
                (41, _) => {
                    held.await;
                    world.send_replace(snapshot(2, None, &REVISIONS[1..]));
                }
                // Longer than the limit that is not to count.
                (42 | 43, Compat::Better) => {
                    held.await;
                    sleep(POD_LATER).await;
                    if let Some(listener) = unborn {
                        pod.serve(listener);
                    }
                    world.send_replace(snapshot(2, Some(address), &REVISIONS));
                }
                (48, Compat::Better) => {
                    held.await;
                    if let Ok(listener) = TcpListener::bind(address).await {
                        pod.serve(listener);
                    }
                }
                _ => {}
            }
        }
    }

    /// Bytes both ways, until the connection ends or the watch does.
    async fn upgraded(&self, row: &Row, mode: Compat) -> std::io::Result<Seen> {
        let revision = match row.number() {
            61 => "short",
            62 => "idleshort",
            _ => "rev",
        };
        let mut client = TcpStream::connect(self.address).await?;
        let request = format!(
            "GET /ws HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
             Knative-Serving-Revision: {revision}\r\nKnative-Serving-Namespace: ns\r\n\r\n"
        );
        client.write_all(request.as_bytes()).await?;
        let began = Instant::now();
        let (mut seen, mut first_byte) = (Vec::new(), None);
        let (mut reading, mut writing) = client.split();
        let bytes = async {
            loop {
                sleep(BYTE_EVERY).await;
                if writing.write_all(b".").await.is_err() {
                    std::future::pending::<()>().await;
                }
            }
        };
        let echoes = async {
            while reading.read_buf(&mut seen).await.is_ok_and(|read| read > 0) {
                first_byte.get_or_insert_with(|| began.elapsed());
            }
        };
        let ended = tokio::select! {
            () = echoes => true,
            () = bytes => true,
            () = sleep(WATCHED) => false,
        };
        let (response, elapsed) = (latin::text(&seen), began.elapsed());
        Ok(Seen { mode, response, first_byte, elapsed, ended, pod_received: self.pod.received(self.pod_address) })
    }
}

/// Reads until the connection ends, or it is time. What came, when its first
/// byte did, and whether the connection ended.
async fn read(
    client: &mut TcpStream,
    began: Instant,
    until: Instant,
) -> std::io::Result<(String, Option<Duration>, bool)> {
    let (mut seen, mut first_byte) = (Vec::new(), None);
    let ended = loop {
        match timeout_at(until, client.read_buf(&mut seen)).await {
            Err(_) => break false,
            Ok(Ok(0) | Err(_)) => break true,
            Ok(Ok(_)) => _ = first_byte.get_or_insert_with(|| began.elapsed()),
        }
    };
    Ok((latin::text(&seen), first_byte, ended))
}

fn config(row: &Row, mode: Compat) -> Config {
    let mut config = Config::new("activator", Trust::everybody());
    config.compat = mode;
    let mut cluster = Cluster::new("cluster.local", "127.0.0.1");
    cluster.probing.passthrough = row.passthrough_lb;
    // The recording has the pods' readiness from a stub.
    cluster.probing.mesh = if mode == Compat::Strict { MeshMode::Disabled } else { MeshMode::Auto };
    config.cluster = Some(cluster);
    if row.tracing != "none" {
        let observe = observe::Config { tracing: observe::config::Tracing::Unrecorded, ..observe::Config::default() };
        let who = Identity::default();
        let setup = Setup { component: Component::Activator, who, compat: mode, app: None };
        config.observer = Observer::start(observe, setup).0;
    }
    if row.number() == 39 {
        config.held_per_revision_max = 0;
    }
    config
}

/// Names, and their limits in seconds: total, to the first byte, idle.
const REVISIONS: [(&str, u64, Option<u64>, Option<u64>); 4] = [
    ("rev", 300, None, None),
    ("short", 1, None, None),
    ("startshort", 10, Some(1), None),
    ("idleshort", 10, None, Some(1)),
];

fn snapshot(
    version: u64,
    pod: Option<SocketAddr>,
    revisions: &[(&str, u64, Option<u64>, Option<u64>)],
) -> Arc<Snapshot> {
    let seconds = Duration::from_secs;
    let view = |&(name, total, first, idle): &(&str, u64, Option<u64>, Option<u64>)| {
        let timeouts = Timeouts {
            total: seconds(total),
            response_start: first.map(seconds),
            idle: idle.map(seconds),
            upgrade: Some(seconds(total)),
        };
        let pod = pod.map(|address| PodView {
            name: format!("{name}-pod").into(),
            address,
            phase: PodPhase::Ready,
            since: EPOCH,
            start_took: None,
        });
        let view = RevisionView {
            spec: Arc::new(RevisionSpec { timeouts, ..spec(0) }),
            pods: pod.into_iter().collect(),
            path: Path::Activator,
            path_since: EPOCH,
            trouble: None,
            without_room: 0,
            network: Network::default(),
        };
        (RevisionId::new("ns", name), Arc::new(view))
    };
    let revisions = revisions.iter().map(view).collect();
    Arc::new(Snapshot { version, revisions, routes: Routes::default() })
}
