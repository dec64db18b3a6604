//! The autoscaler as its program puts it together: ingest, decisions and the
//! order file on one thread.

use anyhow::{Context, Result, ensure};
use autoscaler::ingest::{self, Intake, Limits};
use autoscaler::{Autoscaler, Config, Links, Tick};
use platform::file;
use plumbing::shutdown::Shutdown;
use plumbing::stats;
use policy::world::Snapshot;
use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

const PATIENCE: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(10);

pub(super) struct Side {
    pub(super) autoscaler: Autoscaler,
    pub(super) world: watch::Sender<Arc<Snapshot>>,
    pub(super) address: SocketAddr,
    shutdown: Shutdown,
    times: PathBuf,
    thread: JoinHandle<Result<()>>,
}

impl Side {
    pub(super) fn start(streams: usize) -> Result<Side> {
        // As in the program: series of revisions are part of what they cost.
        plumbing::metrics::install().map_err(anyhow::Error::msg)?;
        let autoscaler = Autoscaler::new(Config::default());
        let (world, seen) = watch::channel(Arc::new(Snapshot::default()));
        let shutdown = Shutdown::new();
        let (tell, told) = channel();
        let (decides, stop) = (autoscaler.clone(), shutdown.clone());
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(async move {
                let listener = TcpListener::bind("127.0.0.1:0").await?;
                let folder = tempfile::tempdir()?;
                let over = CancellationToken::new();
                let (orders, written) = file::orders(folder.path().join("orders.yaml"), over.clone());
                let times = fs::read_link("/proc/thread-self")?;
                tell.send((listener.local_addr()?, PathBuf::from("/proc").join(times).join("schedstat")))?;
                // Other ways than the stream come by it.
                let (_sink, stats) = stats::link();
                let limits = Limits { streams, ..Limits::default() };
                let intake = Intake::Decisions(decides.clone(), orders.clone());
                tokio::spawn(ingest::serve(listener, intake, limits, stop.clone()));
                autoscaler::run(decides, Links { world: seen, orders, stats }, stop).await;
                over.cancel();
                written.await.context("the order file")
            })
        });
        let (address, times) = told.recv_timeout(PATIENCE)?;
        Ok(Side { autoscaler, world, address, shutdown, times, thread })
    }

    /// Waits for the end of a round of decisions that is later than that one.
    pub(super) fn tick_after(&self, number: u64) -> Result<Tick> {
        let began = Instant::now();
        loop {
            let tick = self.autoscaler.last_tick();
            if tick.number > number {
                return Ok(tick);
            }
            ensure!(began.elapsed() < PATIENCE, "no round of decisions comes to its end");
            std::thread::sleep(LOOK);
        }
    }

    /// Its thread's processor time so far.
    pub(super) fn cpu(&self) -> Result<Duration> {
        let text = fs::read_to_string(&self.times)?;
        let first = text.split_ascii_whitespace().next().context("no time")?;
        Ok(Duration::from_nanos(first.parse()?))
    }

    pub(super) fn stop(self) -> Result<()> {
        self.shutdown.stop();
        self.thread.join().map_err(|_| anyhow::anyhow!("the autoscaler's thread panicked"))?
    }
}
