//! How long it takes from a request at zero to the stat that asks for a pod:
//! from the last byte of its head to the moment at which the stat leaves the
//! activator, at a thousand revisions within a second.
//!
//! The activator has a thread of its own, and so has whoever takes its stats.

use crate::bench::{EPOCH, spec};
use crate::floor::jitter::Jitter;
use crate::floor::trial::{Report, median_and_worst, show};
use activator::{Activator, Config, Links, Sockets};
use anyhow::Context;
use plumbing::fds::Budget;
use plumbing::shutdown::Shutdown;
use plumbing::stats::{self, StatSource};
use plumbing::trust::Trust;
use plumbing::worker::{Worker, Workers};
use policy::revision::RevisionId;
use policy::world::{Holding, Network, Path, RevisionView, Routes, Snapshot};
use std::collections::HashMap;
use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};
use tokio::net::TcpListener;
use tokio::sync::watch;

/// As they should be on a machine that has nothing else to do.
const MEDIAN_MAX: Duration = Duration::from_millis(1);
const NEARLY_ALL_MAX: Duration = Duration::from_millis(10);
/// That share of them is nearly all.
const NEARLY_ALL: f64 = 0.999;
/// All are woken within.
const WITHIN: Duration = Duration::from_secs(1);
/// How long the last signal may take before it is given up.
const PATIENCE: Duration = Duration::from_secs(20);

/// Wakes so many revisions in the same second, with limits stretched by `slack`.
///
/// # Errors
/// When something cannot be tried at all.
pub fn run(revisions: usize, slack: u32) -> anyhow::Result<Report> {
    let mut report = Report::new(slack);
    let Running { address, signals, shutdown } = start(revisions)?;
    // All but the last byte of each head is there before.
    let mut clients = Vec::with_capacity(revisions);
    for number in 0..revisions {
        let mut stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        write!(stream, "GET / HTTP/1.1\r\nhost: {}\r\n\r", host(number))?;
        clients.push(stream);
    }
    // They are taken in meanwhile.
    std::thread::sleep(Duration::from_millis(500));
    let jitter = Jitter::measure();
    let began = Instant::now();
    let mut sent = Vec::with_capacity(revisions);
    for (number, stream) in clients.iter_mut().enumerate() {
        let due = began + WITHIN.mul_f64(number as f64 / revisions as f64);
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        sent.push(Instant::now());
        stream.write_all(b"\n")?;
    }
    let all_sent = began.elapsed();
    let mut left = HashMap::with_capacity(revisions);
    while left.len() < revisions {
        let (revision, at) = signals.recv_timeout(PATIENCE).context("not all of them signal")?;
        left.entry(revision).or_insert(at);
    }
    let late = jitter.finish();
    shutdown.stop();
    let took = |(number, sent): (usize, &Instant)| Some(left.get(&id(number))?.saturating_duration_since(*sent));
    let mut times: Vec<Duration> = sent.iter().enumerate().filter_map(took).collect();
    times.sort_unstable();
    let nearly_all = times[((times.len() as f64 * NEARLY_ALL) as usize).min(times.len() - 1)];
    let (median, worst) = median_and_worst(times);
    report.tell("revisions woken, and within", format!("{revisions} in {}", show(all_sent)));
    report.tell("timers here are late by, 99 % of them", show(late.p99));
    report.time("from the last byte of a head to its signal, median", median, MEDIAN_MAX);
    report.time("99.9 % of them", nearly_all, NEARLY_ALL_MAX);
    report.tell("the longest", show(worst));
    Ok(report)
}

/// An activator, and when it sent which signal.
struct Running {
    address: SocketAddr,
    signals: Receiver<(RevisionId, Instant)>,
    shutdown: Shutdown,
}

fn start(revisions: usize) -> anyhow::Result<Running> {
    let (sink, source) = stats::link();
    let shutdown = Shutdown::new();
    let (told, address) = channel();
    let stop = shutdown.clone();
    std::thread::spawn(move || {
        on_runtime(async move {
            let listener = TcpListener::bind("127.0.0.1:0").await?;
            let address = listener.local_addr()?;
            let (world, seen) = watch::channel(Arc::new(asleep(revisions)));
            let (holding, mut taken_in) = watch::channel(Arc::new(Holding::default()));
            let workers = Workers::only(Worker::here(&stop, Budget::unlimited()));
            let activator = Activator::new(Config::new("activator", Trust::nobody()), sink, holding);
            let sockets = Sockets { serving: vec![listener.into()] };
            let links = Links { world: seen, workers };
            let running = activator::run(activator, sockets, links, stop);
            let tell = async {
                let _ = taken_in.wait_for(|held| held.version == 1).await;
                let _ = told.send(address);
                std::future::pending::<()>().await;
            };
            tokio::select! { () = running => {}, () = tell => {} }
            drop(world);
            Ok(())
        })
    });
    let (tell, signals) = channel();
    std::thread::spawn(move || on_runtime(listen(source, tell)));
    Ok(Running { address: address.recv_timeout(PATIENCE)?, signals, shutdown })
}

fn on_runtime(future: impl Future<Output = anyhow::Result<()>>) -> anyhow::Result<()> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(future)
}

async fn listen(mut stats: StatSource, tell: std::sync::mpsc::Sender<(RevisionId, Instant)>) -> anyhow::Result<()> {
    while let Some(batch) = stats.next().await {
        let now = Instant::now();
        for (revision, _) in batch.stats.into_iter().filter(|_| batch.poke) {
            tell.send((revision, now))?;
        }
    }
    Ok(())
}

/// So many revisions without pods.
fn asleep(revisions: usize) -> Snapshot {
    let view = Arc::new(RevisionView {
        spec: Arc::new(spec(1)),
        pods: Vec::new(),
        path: Path::Activator,
        path_since: EPOCH,
        trouble: None,
        without_room: 0,
        network: Network::default(),
    });
    let hosts = (0..revisions).map(|number| (host(number).into(), id(number))).collect();
    Snapshot {
        version: 1,
        revisions: (0..revisions).map(|number| (id(number), view.clone())).collect(),
        routes: Routes { hosts, fallback: None },
    }
}

fn id(number: usize) -> RevisionId {
    RevisionId::new("default", format!("rev-{number}"))
}

fn host(number: usize) -> String {
    format!("rev-{number}.example")
}
