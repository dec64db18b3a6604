//! An activator on the file platform, as a program with its port on standard
//! error and its end on TERM; and within a test.

use activator::{Activator, Config, Links, Sockets, uplink};
use anyhow::{Context, bail};
use platform::file::{Health, Source, snapshots};
use plumbing::fds::Budget;
use plumbing::shutdown::Shutdown;
use plumbing::telemetry::{self, Format, Level};
use plumbing::trust::Trust;
use plumbing::worker::{Worker, Workers};
use plumbing::{clock, stats};
use policy::world::{Holding, Snapshot};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// One that runs on the current runtime.
pub struct Running {
    /// Where it listens.
    pub address: SocketAddr,
    /// The activator.
    pub activator: Activator,
    /// What it knows.
    pub world: watch::Receiver<Arc<Snapshot>>,
    /// How its file is.
    pub health: watch::Receiver<Health>,
    /// Whether its stats are taken.
    pub connected: watch::Receiver<bool>,
    /// Stops it.
    pub shutdown: Shutdown,
    /// Resolves when it has ended.
    pub ended: tokio::task::JoinHandle<()>,
}

/// Starts one; its stats go to `autoscaler`, or nowhere.
///
/// # Panics
/// Without a free port.
pub async fn start(name: &str, file: PathBuf, autoscaler: Option<String>) -> Running {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("an address");
    let (shutdown, stop) = (Shutdown::new(), CancellationToken::new());
    let followed = snapshots(Source { path: file, now: clock::now }, stop.clone());
    let (sink, source) = stats::link();
    let (holding, _) = watch::channel(Arc::new(Holding::default()));
    let activator = Activator::new(Config::new(name, Trust::nobody()), sink, holding);
    let workers = Workers::only(Worker::here(&shutdown, Budget::unlimited()));
    let links = Links { world: followed.world.clone(), workers };
    let sockets = Sockets { serving: vec![listener.into()] };
    let served = activator::run(activator.clone(), sockets, links, shutdown.clone());
    let (connected, is_connected) = watch::channel(false);
    let over = CancellationToken::new();
    let reporting = autoscaler.map(|autoscaler| {
        let over = over.clone();
        tokio::spawn(uplink::run(autoscaler, source, connected, async move { over.cancelled().await }))
    });
    let ended = tokio::spawn(async move {
        served.await;
        over.cancel();
        if let Some(reporting) = reporting {
            let _ = reporting.await;
        }
        stop.cancel();
    });
    let (world, health) = (followed.world, followed.health);
    Running { address, activator, world, health, connected: is_connected, shutdown, ended }
}

/// The program.
///
/// # Errors
/// For a command line that makes no sense.
pub fn main(mut arguments: impl Iterator<Item = String>) -> anyhow::Result<()> {
    let (mut file, mut autoscaler, mut own) = (None, None, "activator-1".to_owned());
    while let Some(name) = arguments.next() {
        let value = arguments.next().with_context(|| format!("{name} needs a value"))?;
        match name.as_str() {
            "--snapshots" => file = Some(PathBuf::from(value)),
            "--stats" => autoscaler = Some(value),
            "--name" => own = value,
            _ => bail!("there is no option {name}"),
        }
    }
    let file = file.context("--snapshots must be given")?;
    telemetry::install(Format::Text, Level::INFO);
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
        let mut term = signal(SignalKind::terminate())?;
        let running = start(&own, file, autoscaler).await;
        eprintln!("listening for requests address={}", running.address);
        term.recv().await;
        running.shutdown.drain();
        running.ended.await.context("it ended badly")
    })
}
