//! The autoscaler as a program, asking pods of which most answer well and some
//! do what none should: are those that are well decided on in time, is the
//! memory flat, is each fault counted?

pub mod pods;

use crate::filehost::daemon::Daemon;
use crate::filehost::world::put;
use crate::floor::binaries;
use crate::floor::processes::{cpu_time, resident_bytes};
use crate::floor::trial::Report;
use crate::rig::send;
use anyhow::{Context, Result, ensure};
use pods::{Manner, Pods, hostile, well};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::{Duration, Instant};
use tokio::io::AsyncReadExt;
use tokio::time::{sleep, timeout};

/// Beside well ones: a revision with one pod that answers to nobody.
const MIXED: &str = "mixed";

/// What to run.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Revisions whose pod answers well.
    pub well: usize,
    /// With the others, or without, for comparison.
    pub hostile: bool,
    /// How long memory is watched.
    pub watched: Duration,
    /// How long anything may take.
    pub patience: Duration,
    /// What limits of times are stretched by.
    pub slack: u32,
}

/// A question a second, a decision each two.
const FOLLOWED_MAX: Duration = Duration::from_secs(3);
/// What memory may grow by once all pods have been asked.
const GROWTH_MAX: u64 = 24 << 20;

/// Runs it.
///
/// # Errors
/// When nothing runs, or something does not come in time.
pub async fn run(settings: Settings) -> Result<Report> {
    // As many connections as pods.
    plumbing::fds::raise().context("file descriptors")?;
    let pods = Pods::start();
    let folder = tempfile::tempdir()?;
    let (world, orders) = (folder.path().join("world.yaml"), folder.path().join("orders.yaml"));
    put(&world, &text(settings));
    let port = pods.port.to_string();
    let variables = [
        ("ZEROSCALE_STATS_LISTEN", "127.0.0.1:0"),
        ("ZEROSCALE_ADMIN_LISTEN", "127.0.0.1:0"),
        ("ZEROSCALE_WEBSOCKET_LISTEN", "127.0.0.1:0"),
        ("PROFILING_PORT", "0"),
        ("ZEROSCALE_SCRAPE_PORT", port.as_str()),
    ];
    let (snapshots, ordered) = (world.to_string_lossy(), orders.to_string_lossy());
    let arguments = ["--snapshots", &*snapshots, "--orders", &*ordered];
    let binary = binaries::autoscaler()?;
    let mut autoscaler = Daemon::start(&binary, &arguments, &variables);
    let admin = autoscaler.address("listening for admin");
    let bench = Bench { settings, admin, orders };
    let mut report = Report::new(settings.slack);

    bench.all_are_known().await?;
    let warm = resident_bytes(autoscaler.pid()).unwrap_or_default();
    let (began, before, cpu) = (Instant::now(), pods.asked_well(), cpu_time(autoscaler.pid()));
    for (load, wanted) in [(1.0, 2), (2.0, 3), (3.0, 5)] {
        pods.carry(load);
        let took = bench.all_want(wanted).await?;
        report.time(format!("all follow a change to {load}"), took, FOLLOWED_MAX);
    }
    sleep(settings.watched.saturating_sub(began.elapsed())).await;
    let took = began.elapsed().as_secs_f64();
    let answers = (pods.asked_well() - before) as f64;
    let cpu = cpu_time(autoscaler.pid()).saturating_sub(cpu);
    report.tell("answers of well pods a second", format_args!("{:.0}", answers / took));
    report.tell("processor time an answer", format_args!("{:.1} us", cpu.as_secs_f64() * 1e6 / answers));
    report.tell("pods a core, asked each second", format_args!("{:.0}", answers / cpu.as_secs_f64()));
    let late = resident_bytes(autoscaler.pid()).unwrap_or_default();
    report.tell("memory when all are known, KiB", warm >> 10);
    report.at_most("memory that it grew by, KiB", late.saturating_sub(warm) >> 10, GROWTH_MAX >> 10);
    if settings.hostile {
        let asked = Manner::ALL.map(|(manner, _)| pods.asked(manner));
        let page = bench.page().await?;
        for (why, counted, least) in faults(&page, &asked) {
            report.holds(format!("faults: {why}"), counted >= least, format_args!("{counted} of {least}"));
        }
        let known = desired(&page);
        let misled: Vec<String> =
            Manner::ALL.iter().map(|(manner, _)| manner.name()).filter(|name| known.contains_key(name)).collect();
        report.holds("nothing is decided on nonsense", misled.is_empty(), format_args!("{misled:?}"));
    }
    let (code, lines) = autoscaler.terminate().await;
    ensure!(code == 0, "it ended with {code}: {lines:#?}");
    Ok(report)
}

/// Reason, how often it was counted, and how often it should have been at
/// least.
fn faults(page: &str, asked: &[usize]) -> Vec<(&'static str, u64, u64)> {
    let mut least: BTreeMap<&'static str, u64> = BTreeMap::new();
    for ((_, why), asked) in Manner::ALL.iter().zip(asked) {
        // Questions may be open still, at one or two addresses.
        *least.entry(why).or_default() += (*asked as u64).saturating_sub(2).max(1);
    }
    let counted = |why: &str| {
        let line = format!("zeroscale_autoscaler_scrape_faults_total{{why=\"{why}\"}} ");
        page.lines().find_map(|found| found.strip_prefix(&line)?.parse().ok()).unwrap_or(0)
    };
    least.into_iter().map(|(why, least)| (why, counted(why), least)).collect()
}

struct Bench {
    settings: Settings,
    admin: SocketAddr,
    orders: PathBuf,
}

impl Bench {
    /// Waits until so many pods are wanted at least, of every revision with
    /// pods that answer well.
    async fn all_want(&self, wanted: u32) -> Result<Duration> {
        let began = Instant::now();
        loop {
            let ordered = ordered(&std::fs::read_to_string(&self.orders).unwrap_or_default());
            let missing = |name: &String| ordered.get(name).is_none_or(|ordered| *ordered < wanted);
            let missing: Vec<_> = self.names().into_iter().filter(missing).collect();
            if missing.is_empty() {
                return Ok(began.elapsed());
            }
            let late = missing.len();
            let in_time = began.elapsed() < self.settings.patience;
            ensure!(in_time, "{late} do not want {wanted}: {:?}", &missing[..late.min(5)]);
            sleep(Duration::from_millis(20)).await;
        }
    }

    /// Waits until something has been decided on what they said.
    async fn all_are_known(&self) -> Result<()> {
        let began = Instant::now();
        loop {
            let desired = desired(&self.page().await?);
            if self.names().iter().all(|name| desired.contains_key(name)) {
                return Ok(());
            }
            ensure!(began.elapsed() < self.settings.patience, "nothing is known of some");
            sleep(Duration::from_millis(100)).await;
        }
    }

    fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = (0..self.settings.well).map(|n| format!("well-{n}")).collect();
        if self.settings.hostile {
            names.push(MIXED.to_owned());
        }
        names
    }

    async fn page(&self) -> Result<String> {
        let request = "GET /metrics HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";
        let mut page = Vec::new();
        let mut stream = send(self.admin, request).await;
        timeout(self.settings.patience, stream.read_to_end(&mut page)).await.context("the metrics")??;
        Ok(String::from_utf8_lossy(&page).into_owned())
    }
}

/// Pods wished for, by revision; nothing where nothing has been decided.
fn desired(page: &str) -> BTreeMap<String, i32> {
    let lines = page.lines().filter_map(|line| line.strip_prefix("kn_revision_pods_desired{"));
    let parsed = lines.filter_map(|line| {
        let name = line.split_once("kn_revision_name=\"")?.1.split_once('"')?.0;
        Some((name.to_owned(), line.rsplit_once(' ')?.1.parse().ok()?))
    });
    parsed.collect()
}

/// Pods that are ordered, by revision.
fn ordered(file: &str) -> BTreeMap<String, u32> {
    let orders = file.split("- revision: \"default/").skip(1);
    let parsed = orders.filter_map(|order| {
        let (name, rest) = order.split_once('"')?;
        Some((name.to_owned(), rest.split_once("wanted: ")?.1.lines().next()?.parse().ok()?))
    });
    parsed.collect()
}

fn text(settings: Settings) -> String {
    let mut text = "revisions:".to_owned();
    let mut revision = |name: &str, pods: &[(String, Ipv4Addr)]| {
        let _ = write!(text, "\n- name: default/{name}\n  containerConcurrency: 1\n  path: direct");
        let _ = write!(text, "\n  scale: {{window: 6s, min: 1, max: 20}}\n  pods:");
        for (name, address) in pods {
            let _ = write!(text, "\n  - {{name: {name}, address: '{address}:8012'}}");
        }
    };
    for number in 0..settings.well {
        let name = format!("well-{number}");
        revision(&name, &[(name.clone(), well(number))]);
    }
    if settings.hostile {
        for (manner, _) in Manner::ALL {
            revision(&manner.name(), &[(manner.name(), hostile(manner, 0))]);
        }
        let apart = settings.well;
        let pod = |number: usize| (format!("well-{number}"), well(number));
        revision(MIXED, &[pod(apart), pod(apart + 1), ("dripping".to_owned(), hostile(Manner::Drip, 1))]);
    }
    text + "\n...\n"
}
