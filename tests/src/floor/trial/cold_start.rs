//! What a start from zero costs beside the app's own start, which is the time
//! from its exec to its open port.
//!
//! The app can tell when its process was made, not when it was exec'd a moment
//! later; the table tells how long both and the loader took together.

use super::{Report, median_and_worst, show};
use crate::floor::client::Ask;
use crate::floor::processes::cpu_time;
use crate::floor::{Instance, TestApp, until};
use anyhow::Context;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::time::{Duration, Instant};

/// Half of the starts cost no more than this on top of the app's own ...
const MEDIAN: Duration = Duration::from_millis(5);
/// ... and of fifty none costs more than this.
const WORST: Duration = Duration::from_millis(25);
/// Of a core, while the app starts.
const CPU_PERCENT: f64 = 5.0;
/// An app that starts faster than this gives no share of a core worth telling.
const LONG_START: Duration = Duration::from_millis(100);

/// How much is done.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// Instances side by side: while one wakes, the others fall asleep.
    pub instances: usize,
    /// Starts of each.
    pub starts: usize,
    /// See [`Report`].
    pub slack: u32,
}

/// One start.
struct Start {
    /// From the request to its first byte, without the app's own time to its
    /// open port: the sum of the next three.
    overhead: Duration,
    /// From the request to the app's process.
    to_process: Duration,
    /// From the open port to the request at the app.
    to_request: Duration,
    /// From the app's answer to its first byte at the client.
    to_client: Duration,
    /// From the app's process to its first instruction: its own time.
    load: Duration,
    /// Processor time of zeroscale and its guard meanwhile.
    cpu: Duration,
    whole: Duration,
}

/// Measures starts of an app that opens its port after so many milliseconds
/// (`0-2` = by a draw).
///
/// # Errors
/// When something cannot be tried at all.
pub async fn run(open_after: &str, size: Size) -> anyhow::Result<Report> {
    let mut instances = Vec::new();
    for _ in 0..size.instances {
        let app = TestApp::new(&format!("--open-after {open_after}"))?;
        instances.push((Instance::start("--window 6s", &app.command).await?, app));
    }
    let (mut starts, mut bare) = (Vec::new(), Vec::new());
    for _ in 0..size.starts {
        for (instance, app) in &instances {
            instance.until_zero().await?;
            starts.push(start(instance, app).await?);
            bare.push(bare_start(open_after).await?);
        }
    }
    Ok(judge(&starts, &bare, size.slack))
}

fn judge(starts: &[Start], bare: &[Start], slack: u32) -> Report {
    let mut report = Report::new(slack);
    report.tell("starts", starts.len());
    let (median, worst) = median_and_worst(starts.iter().map(|start| start.overhead).collect());
    report.time("overhead of a start, median", median, MEDIAN);
    report.time("overhead of a start, worst", worst, WORST);
    let (median, _) = median_and_worst(starts.iter().map(|start| start.overhead + start.load).collect());
    report.tell("the same if the app began with its first instruction, median", show(median));
    tell_phases(&mut report, "", starts);
    let (median, worst) = median_and_worst(bare.iter().map(|start| start.overhead).collect());
    report.tell("bare fork, exec and connect instead, median", show(median));
    report.tell("bare fork, exec and connect instead, worst", show(worst));
    tell_phases(&mut report, "bare: ", bare);
    let (cpu, _) = median_and_worst(starts.iter().map(|start| start.cpu).collect());
    report.tell("processor time of zeroscale and guard for one start, median", show(cpu));
    let whole: Duration = starts.iter().map(|start| start.whole).sum();
    if whole > LONG_START * u32::try_from(starts.len()).unwrap_or(u32::MAX) {
        let spent: Duration = starts.iter().map(|start| start.cpu).sum();
        let percent = 100.0 * spent.as_secs_f64() / whole.as_secs_f64();
        report.percent("of a core while the app starts, mean", percent, CPU_PERCENT);
    }
    report
}

fn tell_phases(report: &mut Report, prefix: &str, starts: &[Start]) {
    type Phase = fn(&Start) -> Duration;
    let phases: [(&str, Phase); 4] = [
        ("request to the app's process", |start| start.to_process),
        ("open port to the request at the app", |start| start.to_request),
        ("answer to its first byte at the client", |start| start.to_client),
        ("the app's own: process to first instruction", |start| start.load),
    ];
    for (what, phase) in phases {
        let (median, worst) = median_and_worst(starts.iter().map(phase).collect());
        report.tell(format!("  {prefix}{what}, median and worst"), format!("{} {}", show(median), show(worst)));
    }
}

async fn start(instance: &Instance, app: &TestApp) -> anyhow::Result<Start> {
    let pids: Vec<i32> = instance.processes().iter().map(|process| process.pid).collect();
    let cpu = || pids.iter().map(|pid| cpu_time(*pid)).sum::<Duration>();
    let before = cpu();
    let (sent, first) = Ask::get("cold").first_byte(instance.address).await?;
    let cpu = cpu().saturating_sub(before);
    Start::of(app, sent, first, cpu)
}

impl Start {
    fn of(app: &TestApp, sent: u64, first: u64, cpu: Duration) -> anyhow::Result<Start> {
        let seen = app.sightings();
        let last = |kind: &str| seen.of(kind).last().map(|sighting| sighting.at).with_context(|| format!("no {kind}"));
        let (exec, open, begin, end) = (last("exec")?, last("open")?, last("begin")?, last("end")?);
        let between = |from: u64, to: u64| Duration::from_nanos(to.saturating_sub(from));
        Ok(Start {
            overhead: between(sent, first).saturating_sub(between(exec, open)),
            to_process: between(sent, exec),
            to_request: between(open, begin),
            to_client: between(end, first),
            load: between(exec, last("main")?),
            cpu,
            whole: between(sent, first),
        })
    }
}

/// The same without us: fork, exec, ask until somebody listens, one request.
async fn bare_start(open_after: &str) -> anyhow::Result<Start> {
    let address = free_address()?;
    let app = TestApp::new(&format!("--open-after {open_after} --port {}", address.port()))?;
    let sent = crate::testapp::monotonic_ns();
    let mut child = Command::new(&app.command[0]).args(&app.command[1..]).spawn()?;
    let began = Instant::now();
    let connected = tokio::task::spawn_blocking(move || {
        while TcpStream::connect(address).is_err() && began.elapsed() < crate::floor::PATIENCE {
            std::thread::sleep(Duration::from_micros(100));
        }
    });
    connected.await?;
    let (_, first) = Ask::get("bare").first_byte(address).await?;
    child.kill()?;
    child.wait()?;
    until("the port is free again", async || TcpListener::bind(address).is_ok()).await?;
    Start::of(&app, sent, first, Duration::ZERO)
}

fn free_address() -> std::io::Result<SocketAddr> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()
}
