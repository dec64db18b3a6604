//! The sidecar for a long time at half of what it can do, while connections
//! come and go, clients give up, and the app is killed and started again.
//!
//! | job | module |
//! | --- | --- |
//! | an app that is restarted, and when it was not there | `app` |
//! | one client, and what it saw | `client` |
//! | memory over time | `memory` |

mod app;
mod client;
pub(crate) mod memory;

use crate::floor::trial::Report;
use crate::program::Program;
use anyhow::ensure;
use app::App;
use client::{Client, Kind, Seen};
use memory::Memory;
use std::collections::BTreeMap;
use std::fs;
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;
use tokio::time::{sleep, sleep_until};

/// Clients, each with a connection at a time.
const CLIENTS: usize = 64;
/// Requests at the app at a time: some wait, but none finds the queue full.
const LIMIT: (&str, &str) = ("CONTAINER_CONCURRENCY", "24");
/// How long capacity is measured.
const MEASURED: Duration = Duration::from_secs(4);
/// From one restart of the app to the next, and how long it is gone.
const RESTART_EVERY: Duration = Duration::from_secs(10);
const GONE: Duration = Duration::from_millis(300);
/// What a client makes up for.
const CATCH_UP: Duration = Duration::from_secs(1);
/// Memory is compared with what it was after this.
const WARM: Duration = Duration::from_secs(120);
/// Growth that is none, whichever is more: bytes, and a share in percent.
const GROWTH: (u64, u64) = (1 << 20, 5);
/// Until counts must be 0 when nobody asks any more.
const QUIET: Duration = Duration::from_secs(10);

/// How the load is sized.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// How long it lasts.
    pub time: Duration,
    /// Of the draw.
    pub seed: u64,
}

/// Runs it.
///
/// # Errors
/// When it cannot be tried at all.
pub async fn run(size: Size) -> anyhow::Result<Report> {
    let mut report = Report::new(1);
    let app = App::start()?;
    let program = Program::start(app.address, &[LIMIT]);
    let files = open_files(program.pid());
    let capacity = capacity(program.main).await?;
    report.tell("capacity, requests a second", capacity);
    let every = Duration::from_secs_f64(2.0 * CLIENTS as f64 / capacity as f64);
    report.tell("load, one request each", format!("{:.1} ms", every.as_secs_f64() * 1e3 / CLIENTS as f64));

    let (began, until) = (Instant::now(), Instant::now() + size.time);
    let mut clients = JoinSet::new();
    for number in 0..CLIENTS as u64 {
        let address = program.main;
        clients.spawn(async move { drive(Client::new(address, size.seed + number), every, until).await });
    }
    let mut memory = Memory::new(WARM.min(size.time / 4), size.time);
    let mut next_restart = began + RESTART_EVERY;
    while Instant::now() < until {
        sleep(Duration::from_millis(500)).await;
        memory.look(began.elapsed(), program.pid());
        // Not in the last seconds: what is held then has to be served.
        if Instant::now() > next_restart && Instant::now() + 2 * RESTART_EVERY / 3 < until {
            app.restart(GONE).await?;
            next_restart = Instant::now() + RESTART_EVERY;
        }
    }
    let (good, others): (Vec<usize>, Vec<Vec<Seen>>) = clients.join_all().await.into_iter().unzip();
    memory.last(program.pid());
    let good: usize = good.iter().sum();
    report.tell("answers 200 whole", good);
    let rate = good as u64 / size.time.as_secs().max(1);
    report.tell("of them a second, and of the capacity", format!("{rate}, {} %", 100 * rate / capacity));
    judge_answers(&mut report, &others.concat(), &app);
    let (early, late) = (memory.early(), memory.late());
    let most = early + GROWTH.0.max(early * GROWTH.1 / 100);
    report.tell("resident bytes once it was warm, median", early);
    report.at_most("resident bytes at the end, median", late, most);
    report.tell("resident bytes, the most ever", memory.most());
    judge_end(&mut report, &program, files).await?;
    Ok(report)
}

/// How many simple requests all clients together get answered in a second.
async fn capacity(address: SocketAddr) -> anyhow::Result<u64> {
    let until = Instant::now() + MEASURED;
    let mut clients = JoinSet::new();
    for number in 0..CLIENTS as u64 {
        clients.spawn(async move {
            let (mut client, mut answered) = (Client::new(address, number), 0);
            while Instant::now() < until {
                answered += u64::from(client.ask(Kind::Get).await.status == 200);
            }
            answered
        });
    }
    let answered: u64 = clients.join_all().await.into_iter().sum();
    ensure!(answered > 0, "nothing was answered");
    Ok((answered / MEASURED.as_secs()).max(1))
}

/// A client at its pace: how many answers were 200 and whole, and all others.
async fn drive(mut client: Client, every: Duration, until: Instant) -> (usize, Vec<Seen>) {
    let (mut good, mut others) = (0, Vec::new());
    let mut next = Instant::now();
    while next < until {
        sleep_until(next.into()).await;
        let seen = client.step().await;
        if seen.is_good() {
            good += 1;
        } else {
            others.push(seen);
        }
        // Who was held up makes up for it, but not for all of a restart.
        next = (next + every).max(Instant::now() - CATCH_UP);
    }
    (good, others)
}

fn judge_answers(report: &mut Report, seen: &[Seen], app: &App) {
    let mut by_status: BTreeMap<(u16, &str), usize> = BTreeMap::new();
    for one in seen {
        *by_status.entry((one.status, one.what())).or_default() += 1;
    }
    for ((status, what), count) in by_status {
        report.tell(format!("answers {status} {what}"), count);
    }
    let restarts = app.absences();
    report.tell("restarts of the app", restarts.len());
    let hit = |one: &&Seen| restarts.iter().any(|gone| one.began < gone.1 && one.ended > gone.0);
    let bad = |one: &&Seen| !one.left;
    let unexplained: Vec<&Seen> = seen.iter().filter(bad).filter(|one| !hit(one)).collect();
    report.count("answers that are not whole and 200 while the app was there", unexplained.len(), 0);
    let told = |one: &&Seen| one.status == 502 && one.reason.is_some() || one.status == 200 && !one.whole;
    let untold = seen.iter().filter(bad).filter(hit).filter(|one| !told(one)).count();
    report.count("of those hit by a restart: neither 502 with a reason nor visibly cut", untold, 0);
    for one in unexplained.iter().take(5) {
        report.tell("one of them", format!("{:?}: {} {}", one.kind, one.status, one.what()));
    }
}

async fn judge_end(report: &mut Report, program: &Program, files: usize) -> anyhow::Result<()> {
    let began = Instant::now();
    let mut quiet = false;
    while !quiet && began.elapsed() < QUIET {
        sleep(Duration::from_millis(200)).await;
        let stat = program.stat().await;
        quiet = stat.average_concurrent_requests == 0.0 && stat.request_count == 0.0;
    }
    report.holds("in flight at the end: 0", quiet, if quiet { "0" } else { "not 0" });
    // Connections to the app are kept; to clients there is none left.
    let kept = open_files(program.pid()).saturating_sub(files);
    report.at_most("descriptors more than at the start", kept as u64, CLIENTS as u64);
    Ok(())
}

fn open_files(pid: i32) -> usize {
    fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().count()
}
