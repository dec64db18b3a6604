//! A crowd that is held at zero: what each of it costs in memory, and how
//! fast it is answered after the wake. At any size: `cargo test` shows a
//! tenth, the campaign `held` all of it.
//!
//! The activator is a process of its own; clients and pods share this one.

mod crowd;

pub use crowd::Speaks;

use crate::floor::processes::resident_bytes;
use crate::floor::trial::{Report, show};
use crate::front::Front;
use crate::sidecar::dual::{self, Call, Reply};
use anyhow::Context;
use crowd::Crowd;
use plumbing::fds;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Pods that are there after the wake.
const PODS: u32 = 5;
/// Requests at one of them at a time.
const LIMIT: u32 = 20;
/// How long an answer takes there.
const TAKES: Duration = Duration::from_millis(100);
/// How much longer than the pods' own pace all answers may take.
const BEHIND_PERCENT: f64 = 10.0;

/// How much is done.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// By which protocol.
    pub speaks: Speaks,
    /// Memory is compared between so many held requests,
    pub low: usize,
    /// and so many.
    pub top: usize,
    /// Bytes that one may cost.
    pub bytes_max: u64,
    /// Judge how fast they are answered: only where nothing else runs.
    pub judge_pace: bool,
}

/// Holds the crowd, wakes the pods, and reads the answers.
///
/// # Errors
/// When something cannot be tried at all.
pub async fn run(size: Size) -> anyhow::Result<Report> {
    let Size { speaks, low, top, .. } = size;
    fds::raise()?;
    let mut report = Report::new(1);
    let first = Arc::new(Mutex::new(None));
    let mut pods = Vec::new();
    for _ in 0..PODS {
        pods.push(pod(first.clone()).await);
    }
    let mut front = Front::start(&format!("--limit {LIMIT} --held-max {} --wait-limit 3600000", 2 * top))?;
    let mut crowd = Crowd::new(speaks, front.address);
    crowd.grow_to(low).await?;
    front.until("some are held", |load| load.held == low).await?;
    let before = resident_bytes(front.pid()).context("it runs")?;
    crowd.grow_to(top).await?;
    front.until("all are held", |load| load.held == top).await?;
    let after = resident_bytes(front.pid()).context("it runs")?;
    let each = after.saturating_sub(before) / (top - low) as u64;
    report.tell(format!("{speaks:?}: resident memory at {low} and {top}, KiB"), kib(before) + " " + &kib(after));
    report.at_most(format!("{speaks:?}: bytes of memory for each held request"), each, size.bytes_max);
    front.pods(&pods)?;
    let answered = crowd.answers().await;
    let last = Instant::now();
    report.count(format!("{speaks:?}: answered after the wake"), answered, top);
    let began = first.lock().unwrap_or_else(PoisonError::into_inner).context("no pod was asked")?;
    let took = last - began;
    let own = TAKES.mul_f64(top as f64 / f64::from(PODS * LIMIT));
    report.tell(format!("{speaks:?}: the pods' own pace for all of them"), show(own));
    report.tell(format!("{speaks:?}: from the first slot to the last answer"), show(took));
    let behind = 100.0 * (took.as_secs_f64() / own.as_secs_f64() - 1.0);
    match size.judge_pace {
        true => report.percent(format!("{speaks:?}: slower than that by"), behind, BEHIND_PERCENT),
        false => report.tell(format!("{speaks:?}: slower than that by"), format!("{behind:.2} %")),
    }
    let end = front.load()?;
    report.count(format!("{speaks:?}: left behind"), end.held + end.in_flight, 0);
    Ok(report)
}

fn kib(bytes: u64) -> String {
    (bytes / 1024).to_string()
}

/// A pod; notes when the first of all requests has come.
async fn pod(first: Arc<Mutex<Option<Instant>>>) -> SocketAddr {
    dual::app(move |_: Call| {
        first.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_with(Instant::now);
        async move {
            tokio::time::sleep(TAKES).await;
            Reply::ok("ok")
        }
    })
    .await
}
