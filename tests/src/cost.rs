//! What the sidecar costs a pod: size, memory, wake-ups, time to start.
//!
//! `cargo test` takes these figures of the binary that it has built for tests,
//! with limits to match; `campaign cost` of the one that is shipped.

use crate::floor::binaries;
use crate::floor::processes::{resident_bytes, voluntary_switches};
use crate::floor::trial::{Report, median_and_worst, show};
use crate::program::Program;
use crate::rig::{self, GET, OK, read_head, read_until, send};
use anyhow::{Context, ensure};
use std::fs;
use std::net::SocketAddr;
use std::process::Command;
use std::time::{Duration, Instant};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::sleep;

/// Figures that may not be exceeded.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Bytes of the stripped binary.
    pub size: u64,
    /// Resident bytes at the start, and without what connections take.
    pub resident: u64,
    /// Resident bytes of a connection that is idle after a request.
    pub connection: u64,
    /// Voluntary context switches of all threads in a minute.
    pub switches_a_minute: u64,
    /// From the start of the process to the first answer.
    pub start: Duration,
}

/// Of the binary that is shipped, on an idle machine.
pub const SHIPPED: Limits = Limits {
    size: 6 << 20,
    resident: 6 << 20,
    connection: 20 << 10,
    switches_a_minute: 75,
    start: Duration::from_millis(10),
};

/// Metrics are on, at a port that the system chooses.
const METRICS_ON: (&str, &str) =
    ("OBSERVABILITY_CONFIG", r#"{"requestMetrics":{"protocol":"prometheus","endpoint":"127.0.0.1:0"}}"#);
/// Clients that connect at the same time.
const AT_ONCE: usize = 50;
/// Until what a burst of connections needed for a moment has been given back.
const SETTLE: Duration = Duration::from_secs(2);

/// The binary's size, without symbols.
///
/// # Errors
/// When it cannot be stripped.
pub fn size(limits: Limits) -> anyhow::Result<Report> {
    let mut report = Report::new(1);
    let folder = tempfile::tempdir()?;
    let stripped = folder.path().join("queue-proxy");
    let status = Command::new("strip").arg("-o").arg(&stripped).arg(binaries::queue_proxy()?).status();
    ensure!(status.context("`strip` (binutils)")?.success(), "strip failed");
    report.at_most("bytes of the stripped binary", fs::metadata(&stripped)?.len(), limits.size);
    Ok(report)
}

/// Memory at the start, and with idle connections after a request each.
///
/// # Errors
/// When it cannot be measured.
pub async fn memory(limits: Limits, connections: usize) -> anyhow::Result<Report> {
    let mut report = Report::new(1);
    plumbing::fds::raise()?;
    let program = Program::start(quick_app().await, &[METRICS_ON]);
    sleep(SETTLE).await;
    let at_start = resident(&program)?;
    report.at_most("resident bytes at the start", at_start, limits.resident);
    let kept = keep(program.main, connections).await?;
    sleep(SETTLE).await;
    let then = resident(&program)?;
    let number = u64::try_from(connections)?;
    report.at_most(
        format!("resident bytes with {connections} idle connections"),
        then,
        limits.resident + number * limits.connection,
    );
    report.tell("bytes for each of them", then.saturating_sub(at_start) / number.max(1));
    drop(kept);
    sleep(SETTLE).await;
    report.tell("resident bytes when they have gone", resident(&program)?);
    Ok(report)
}

/// Wake-ups with nothing to do but a hundred kept connections.
///
/// # Errors
/// When it cannot be measured.
pub async fn wake_ups(limits: Limits, over: Duration) -> anyhow::Result<Report> {
    const KEPT: usize = 100;
    let mut report = Report::new(1);
    let program = Program::start(quick_app().await, &[METRICS_ON]);
    let kept = keep(program.main, KEPT).await?;
    sleep(SETTLE).await;
    let before = voluntary_switches(program.pid());
    sleep(over).await;
    let switches = voluntary_switches(program.pid()) - before;
    // Rounded up, since a window may begin just before a tick.
    let limit =
        (limits.switches_a_minute * over.as_secs()).div_ceil(60) + u64::from(!over.as_secs().is_multiple_of(60));
    report.at_most(format!("voluntary switches in {} s with {KEPT} idle connections", over.as_secs()), switches, limit);
    drop(kept);
    Ok(report)
}

/// From the start of the process to the answer to a request.
///
/// # Errors
/// When it cannot be measured.
pub async fn start(limits: Limits, starts: usize) -> anyhow::Result<Report> {
    let mut report = Report::new(1);
    let app = quick_app().await;
    // The first one may have to build the binary, or read it from the disk.
    drop(Program::start(app, &[]));
    let mut took = Vec::new();
    for _ in 0..starts {
        let began = Instant::now();
        let program = Program::start(app, &[]);
        let answer = read_until(&mut send(program.main, GET).await, "ok").await;
        took.push(began.elapsed());
        ensure!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
    let (median, worst) = median_and_worst(took);
    report.time(format!("start to first answer, median of {starts}"), median, limits.start);
    report.tell("the slowest of them", show(worst));
    Ok(report)
}

/// Answers at once, whatever is asked.
async fn quick_app() -> SocketAddr {
    rig::app(|mut stream| async move {
        while !read_head(&mut stream).await.is_empty() {
            if stream.write_all(OK).await.is_err() {
                return;
            }
        }
    })
    .await
}

/// Connections on which a request was answered, kept open.
async fn keep(address: SocketAddr, connections: usize) -> anyhow::Result<Vec<TcpStream>> {
    let mut kept = Vec::new();
    while kept.len() < connections {
        let mut asking = JoinSet::new();
        for _ in 0..AT_ONCE.min(connections - kept.len()) {
            asking.spawn(async move {
                let mut stream = send(address, GET).await;
                let answer = read_until(&mut stream, "ok").await;
                (stream, answer)
            });
        }
        for (stream, answer) in asking.join_all().await {
            ensure!(answer.starts_with("HTTP/1.1 200"), "{answer}");
            kept.push(stream);
        }
    }
    Ok(kept)
}

fn resident(program: &Program) -> anyhow::Result<u64> {
    resident_bytes(program.pid()).context("it runs")
}
