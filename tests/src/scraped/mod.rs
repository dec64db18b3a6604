//! The autoscaler as a program, asking pods of which most answer well and some
//! do what none should: are those that are well decided on in time, is the
//! memory flat, is each fault counted?

pub mod pods;

use crate::filehost::daemon::Daemon;
use crate::filehost::world::put;
use crate::floor::binaries;
use crate::floor::processes::resident_bytes;
use crate::rig::send;
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
}

/// What came of it.
#[derive(Debug)]
pub struct Seen {
    /// From a change of the load until all well revisions had been decided on.
    pub followed: Vec<Duration>,
    /// Memory of the autoscaler when it was warm, and in the end.
    pub memory: (u64, u64),
    /// Reason, how often it was counted, and how often it should have been at
    /// least.
    pub faults: Vec<(&'static str, u64, u64)>,
    /// Hostile revisions about which something was decided from what they said.
    pub misled: Vec<String>,
    /// Answers of well pods a second.
    pub answers: f64,
}

/// Runs it.
///
/// # Panics
/// When nothing runs, or something does not come in time.
pub async fn run(settings: Settings) -> Seen {
    // As many connections as pods.
    let _ = plumbing::fds::raise();
    let pods = Pods::start();
    let folder = tempfile::tempdir().expect("a folder");
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
    let arguments = ["--snapshots", world.to_str().expect("a path"), "--orders", orders.to_str().expect("a path")];
    let mut autoscaler = Daemon::start(&binaries::autoscaler().expect("the binary"), &arguments, &variables);
    let admin = autoscaler.address("listening for admin");
    let bench = Bench { settings, admin, orders };

    bench.all_are_known().await;
    let warm = resident_bytes(autoscaler.pid()).unwrap_or_default();
    let (began, before) = (Instant::now(), pods.asked_well());
    let mut followed = Vec::new();
    for (load, wanted) in [(1.0, 2), (2.0, 3), (3.0, 5)] {
        pods.carry(load);
        followed.push(bench.all_want(wanted).await);
    }
    sleep(settings.watched.saturating_sub(began.elapsed())).await;
    let answers = (pods.asked_well() - before) as f64 / began.elapsed().as_secs_f64();
    let asked: Vec<usize> = Manner::ALL.map(|(manner, _)| pods.asked(manner)).into();
    let memory = (warm, resident_bytes(autoscaler.pid()).unwrap_or_default());
    let page = bench.page().await;
    let faults = if settings.hostile { bench.faults(&page, &asked) } else { Vec::new() };
    let misled = Manner::ALL.iter().map(|(manner, _)| manner.name());
    let misled = misled.filter(|name| desired(&page).contains_key(name)).collect();
    let (code, lines) = autoscaler.terminate().await;
    assert_eq!(code, 0, "{lines:#?}");
    Seen { followed, memory, faults, misled, answers }
}

struct Bench {
    settings: Settings,
    admin: SocketAddr,
    orders: PathBuf,
}

impl Bench {
    /// Waits until so many pods are wanted at least, of every revision with
    /// pods that answer well.
    async fn all_want(&self, wanted: u32) -> Duration {
        let began = Instant::now();
        loop {
            let ordered = ordered(&std::fs::read_to_string(&self.orders).unwrap_or_default());
            let missing = |name: &String| ordered.get(name).is_none_or(|ordered| *ordered < wanted);
            let missing: Vec<_> = self.names().into_iter().filter(missing).collect();
            if missing.is_empty() {
                return began.elapsed();
            }
            let late = missing.len();
            assert!(
                began.elapsed() < self.settings.patience,
                "{late} do not want {wanted}: {:?}",
                &missing[..late.min(5)]
            );
            sleep(Duration::from_millis(20)).await;
        }
    }

    /// Waits until something has been decided on what they said.
    async fn all_are_known(&self) {
        let began = Instant::now();
        while !self.names().iter().all({
            let desired = desired(&self.page().await);
            move |name| desired.contains_key(name)
        }) {
            assert!(began.elapsed() < self.settings.patience, "nothing is known of some");
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

    async fn page(&self) -> String {
        let request = "GET /metrics HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";
        let mut page = Vec::new();
        let mut stream = send(self.admin, request).await;
        let read = timeout(self.settings.patience, stream.read_to_end(&mut page)).await;
        read.expect("in time").expect("a page");
        String::from_utf8_lossy(&page).into_owned()
    }

    fn faults(&self, page: &str, asked: &[usize]) -> Vec<(&'static str, u64, u64)> {
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
