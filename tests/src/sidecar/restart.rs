//! The app is killed under load and comes back: who comes meanwhile is held,
//! and of those whom it took along only the ones that can be sent again are.

use super::h1::Conn;
use super::mortal::Mortal;
use crate::floor::trial::{Report, median_and_worst, show};
use crate::program::Program;
use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until};

/// A request each.
const PACE: Duration = Duration::from_millis(20);
/// How long the app works on one.
const WORK: Duration = Duration::from_millis(100);
/// When it is killed, when it comes back, and when the load ends.
const KILLED: Duration = Duration::from_millis(1000);
const BACK: Duration = Duration::from_millis(3000);
const ENDS: Duration = Duration::from_millis(4000);

/// What a request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Can be sent again.
    Get,
    /// Cannot.
    Post,
    /// Its answer begins at once, and takes its time.
    Drip,
}

/// What the app had of a request.
#[derive(Clone, Copy, Debug, Default)]
struct Had {
    begun: usize,
    ended: usize,
}

type Log = Arc<Mutex<HashMap<String, Had>>>;

/// How a request ended.
struct End {
    kind: Kind,
    sent: Instant,
    took: Duration,
    outcome: Outcome,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Outcome {
    Whole,
    Cut,
    Refused(u16, String),
    NoAnswer(String),
}

/// Kills and revives the app behind a sidecar with that limit (0 = none).
///
/// # Errors
/// When something cannot be tried at all.
pub async fn run(limit: u32) -> anyhow::Result<Report> {
    let mut report = Report::new(1);
    let log = Log::default();
    let into = log.clone();
    let mut app = Mortal::new(move |conn| serve(conn, into.clone())).await;
    let program = Program::start(app.address, &[("CONTAINER_CONCURRENCY", &limit.to_string())]);
    let began = Instant::now();
    let load = tokio::spawn(load(program.main, began));
    sleep_until(began + KILLED).await;
    let first_killed = Instant::now();
    app.kill().await;
    let killed = Instant::now();
    let taken_along = log.lock().unwrap_or_else(PoisonError::into_inner).clone();
    sleep_until(began + BACK).await;
    let back = Instant::now();
    app.revive().await;
    let ends = load.await??;

    let title = format!("limit {limit}");
    // By what became of them: how many, and how they ended.
    let mut groups: BTreeMap<&'static str, BTreeMap<Outcome, usize>> = BTreeMap::new();
    let mut held = Vec::new();
    for (number, end) in ends.iter().enumerate() {
        let had = taken_along.get(&number.to_string()).copied().unwrap_or_default();
        let group = match end.kind {
            _ if (killed..back).contains(&end.sent) => "came while it was down",
            Kind::Get if had.begun > had.ended => "GET, no byte of the answer yet",
            Kind::Post if had.begun > had.ended => "POST, taken along",
            Kind::Drip if had.begun > had.ended => "the answer had begun",
            // Sent, and not read by the app: nobody can know.
            Kind::Post if had.begun == 0 && end.sent < killed && end.sent + end.took > first_killed => {
                "POST, in between"
            }
            _ => "all others",
        };
        if group == "came while it was down" {
            held.push(end.took);
        }
        *groups.entry(group).or_default().entry(end.outcome.clone()).or_default() += 1;
    }
    for (group, outcomes) in &groups {
        let total: usize = outcomes.values().sum();
        let good = outcomes.iter().filter(|(outcome, _)| fits(group, outcome)).map(|(_, count)| count).sum();
        report.count(format!("{title}: {group}: ended as they should"), good, total);
        let seen: Vec<String> = outcomes.iter().map(|(outcome, count)| format!("{count} {outcome:?}")).collect();
        report.tell(format!("{title}: {group}"), seen.join(", "));
    }
    let count = |group: &str| groups.get(group).map_or(0, |outcomes| outcomes.values().sum());
    report.holds(format!("{title}: enough came while it was down"), held.len() >= 50, held.len());
    for group in ["GET, no byte of the answer yet", "POST, taken along", "the answer had begun"] {
        report.holds(format!("{title}: {group}: some"), count(group) > 0, count(group));
    }
    let (median, worst) = median_and_worst(held);
    report.tell(format!("{title}: held, median and worst"), format!("{} {}", show(median), show(worst)));
    Ok(report)
}

/// True when that is how a request of the group may end.
fn fits(group: &str, outcome: &Outcome) -> bool {
    let broken = |reason: &str| ["reset_before_answer", "connect_failed"].contains(&reason);
    match (group, outcome) {
        ("POST, taken along", Outcome::Refused(502, reason)) => reason == "reset_before_answer",
        ("POST, in between", Outcome::Refused(502, reason)) => broken(reason),
        ("POST, in between", Outcome::Whole) => true,
        ("the answer had begun", Outcome::Cut) => true,
        ("POST, taken along" | "the answer had begun", _) => false,
        (_, outcome) => *outcome == Outcome::Whole,
    }
}

async fn load(sidecar: SocketAddr, began: Instant) -> anyhow::Result<Vec<End>> {
    let mut all = JoinSet::new();
    for number in 0.. {
        let at = began + PACE * number;
        if at >= began + ENDS {
            break;
        }
        sleep_until(at).await;
        let kind = [Kind::Get, Kind::Post, Kind::Drip][number as usize % 3];
        all.spawn(async move { (number, one(sidecar, number, kind).await) });
    }
    let mut ends = all.join_all().await;
    ends.sort_by_key(|(number, _)| *number);
    Ok(ends.into_iter().map(|(_, end)| end).collect())
}

async fn one(sidecar: SocketAddr, number: u32, kind: Kind) -> End {
    let fields = format!("host: shop.example\r\nx-number: {number}\r\n");
    let request = match kind {
        Kind::Get => format!("GET /work HTTP/1.1\r\n{fields}\r\n"),
        Kind::Post => format!("POST /work HTTP/1.1\r\n{fields}content-length: 5\r\n\r\nhello"),
        Kind::Drip => format!("GET /drip HTTP/1.1\r\n{fields}\r\n"),
    };
    let mut sent = Instant::now();
    let asked = async {
        let mut conn = Conn::open(sidecar).await?;
        sent = Instant::now();
        conn.send(request.as_bytes()).await?;
        conn.answer().await
    };
    let outcome = match asked.await {
        Ok(answer) if answer.status == 200 && answer.whole => Outcome::Whole,
        Ok(answer) if answer.status == 200 => Outcome::Cut,
        Ok(answer) => Outcome::Refused(answer.status, answer.field("x-zeroscale-reason").to_owned()),
        Err(error) => Outcome::NoAnswer(error.to_string()),
    };
    End { kind, sent, took: sent.elapsed(), outcome }
}

async fn serve(mut conn: Conn, log: Log) {
    let note = |number: &str, change: fn(&mut Had)| {
        change(log.lock().unwrap_or_else(PoisonError::into_inner).entry(number.to_owned()).or_default());
    };
    while let Some((head, _)) = conn.request().await {
        let number = head.get("x-number").unwrap_or_default().to_owned();
        note(&number, |had| had.begun += 1);
        let sent = if head.start.starts_with("GET /drip") {
            drip(&mut conn).await
        } else {
            sleep(WORK).await;
            conn.send(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").await
        };
        if sent.is_err() {
            return;
        }
        note(&number, |had| had.ended += 1);
    }
}

async fn drip(conn: &mut Conn) -> std::io::Result<()> {
    conn.send(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\ndrop\r\n").await?;
    for _ in 0..4 {
        sleep(WORK / 4).await;
        conn.send(b"4\r\ndrop\r\n").await?;
    }
    conn.send(b"0\r\n\r\n").await
}
