//! An app that closes idle connections after 200 ms, and requests that come
//! just then: none is lost, none is sent twice, and where requests come faster
//! than that connections are used again.

use super::h1::Conn;
use crate::floor::trial::Report;
use crate::program::Program;
use crate::rig;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout};

/// When the app closes a connection on which nothing comes.
const IDLE_LIMIT: Duration = Duration::from_millis(200);
/// Requests that come about then.
const CLOSE_CALL: std::ops::RangeInclusive<u64> = 195..=205;
/// Requests that come well before.
const BRISK: Duration = Duration::from_millis(100);
/// A busy machine made it later than that: no wonder that it was not reused.
const BRISK_AT_MOST: Duration = Duration::from_millis(140);
/// Of those that could reuse a connection, so many must, in percent.
const REUSED_PERCENT: usize = 95;

/// How much is done.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// Requests of each method that come about when the app closes.
    pub close_calls: usize,
    /// Requests of each method that come well before.
    pub brisk: usize,
    /// So many at a time, each with an app and a sidecar of its own.
    pub chains: usize,
}

/// Sends them.
///
/// # Errors
/// When something cannot be tried at all.
pub async fn run(size: Size) -> anyhow::Result<Report> {
    let mut report = Report::new(1);
    for method in ["GET", "POST"] {
        let mut close_calls = JoinSet::new();
        for chain in 0..size.chains {
            close_calls.spawn(Chain::run(method, size.close_calls / size.chains, move |n| {
                let span = CLOSE_CALL.end() - CLOSE_CALL.start() + 1;
                Duration::from_millis(CLOSE_CALL.start() + (n * 7 + chain) as u64 % span)
            }));
        }
        let mut brisk = JoinSet::new();
        for _ in 0..size.chains {
            brisk.spawn(Chain::run(method, size.brisk / size.chains, |_| BRISK));
        }
        let chains = close_calls.join_all().await.into_iter().collect::<anyhow::Result<Vec<_>>>()?;
        judge_loss(&mut report, &format!("{method}, as the app closes"), &chains);
        let chains = brisk.join_all().await.into_iter().collect::<anyhow::Result<Vec<_>>>()?;
        judge_loss(&mut report, &format!("{method}, well before"), &chains);
        judge_reuse(&mut report, &format!("{method}, well before"), &chains);
    }
    Ok(report)
}

fn judge_loss(report: &mut Report, title: &str, chains: &[Chain]) {
    let sent: usize = chains.iter().map(|chain| chain.ends.len()).sum();
    let faults: Vec<&String> =
        chains.iter().flat_map(|chain| &chain.ends).filter_map(|end| end.fault.as_ref()).collect();
    report.count(format!("{title}: answered with 200"), sent - faults.len(), sent);
    if let Some(first) = faults.first() {
        report.tell(format!("{title}: first fault"), first);
    }
    let once = chains.iter().flat_map(|chain| chain.counts.values()).filter(|count| **count == 1).count();
    report.count(format!("{title}: counted once by the app"), once, sent);
    let twice = chains.iter().flat_map(|chain| chain.counts.values()).filter(|count| **count > 1).count();
    report.count(format!("{title}: counted more than once"), twice, 0);
    let reused = chains.iter().flat_map(|chain| &chain.ends).filter(|end| end.reused).count();
    report.tell(format!("{title}: on a connection used before"), reused);
}

fn judge_reuse(report: &mut Report, title: &str, chains: &[Chain]) {
    let ends = chains.iter().flat_map(|chain| chain.ends.iter().skip(1));
    let could: Vec<_> = ends.filter(|end| end.gap <= BRISK_AT_MOST).collect();
    let did = could.iter().filter(|end| end.reused).count();
    let seen = format!("{did} of {}", could.len());
    report.holds(format!("{title}: 95 % reuse a connection"), did * 100 >= could.len() * REUSED_PERCENT, seen);
}

/// One request after another, over one client connection.
struct Chain {
    ends: Vec<End>,
    /// By number of the request, how often the app had it.
    counts: HashMap<String, usize>,
}

/// How one request ended.
struct End {
    /// Since the answer before.
    gap: Duration,
    /// The app had a request on that connection before.
    reused: bool,
    fault: Option<String>,
}

impl Chain {
    async fn run(method: &str, requests: usize, gap: impl Fn(usize) -> Duration) -> anyhow::Result<Chain> {
        let counts = Arc::new(Mutex::new(HashMap::new()));
        let program = Program::start(app(counts.clone()).await, &[]);
        let mut client = Conn::open(program.main).await?;
        let (mut ends, mut answered) = (Vec::new(), Instant::now());
        for number in 0..requests {
            sleep_until(answered + gap(number)).await;
            let request = request(method, number);
            let gap = answered.elapsed();
            client.send(request.as_bytes()).await?;
            let answer = client.answer().await?;
            answered = Instant::now();
            let good = answer.status == 200 && answer.whole;
            let fault = (!good).then(|| format!("request {number} after {gap:?}: {}", answer.summary()));
            ends.push(End { gap, reused: answer.field("x-nth") > "1", fault });
            if answer.field("connection").eq_ignore_ascii_case("close") {
                client = Conn::open(program.main).await?;
            }
        }
        let counts = std::mem::take(&mut *counts.lock().unwrap_or_else(PoisonError::into_inner));
        Ok(Chain { ends, counts })
    }
}

fn request(method: &str, number: usize) -> String {
    let body = if method == "POST" { "content-length: 5\r\n\r\nhello" } else { "\r\n" };
    format!("{method} /{number} HTTP/1.1\r\nhost: shop.example\r\n{body}")
}

/// Counts what it is asked, and closes a connection when its time has come.
async fn app(counts: Arc<Mutex<HashMap<String, usize>>>) -> SocketAddr {
    rig::app(move |stream| {
        let counts = counts.clone();
        async move {
            let mut conn = Conn::over(stream);
            let mut idle_limit = Duration::from_secs(60);
            for nth in 1.. {
                // From the first byte on it is not idle any more.
                let Ok(Ok(1..)) = timeout(idle_limit, conn.more()).await else { return };
                let Some((head, _)) = conn.request().await else { return };
                *counts.lock().unwrap_or_else(PoisonError::into_inner).entry(head.start).or_default() += 1;
                let answer = format!("HTTP/1.1 200 OK\r\nx-nth: {}\r\ncontent-length: 2\r\n\r\nok", nth.min(9));
                if conn.send(answer.as_bytes()).await.is_err() {
                    return;
                }
                idle_limit = IDLE_LIMIT;
            }
        }
    })
    .await
}
