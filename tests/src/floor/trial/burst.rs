//! Many requests at once at zero, an app that can do one at a time.

use super::{Report, show};
use crate::floor::client::{Answer, Ask};
use crate::floor::jitter::Jitter;
use crate::floor::{Instance, TestApp};
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

/// All pods that a burst needs are made within this: nobody waits for the next
/// report of a second.
const ORDERED_WITHIN: Duration = Duration::from_millis(50);

/// How much is done.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// Requests, all at once.
    pub requests: usize,
    /// Pods at most.
    pub pods: usize,
    /// How long the app takes for each.
    pub work: Duration,
    /// See [`Report`].
    pub slack: u32,
}

/// Sends the burst and judges by what the app wrote down.
///
/// # Errors
/// When something cannot be tried at all.
pub async fn run(size: Size) -> anyhow::Result<Report> {
    let mut report = Report::new(size.slack);
    let app = TestApp::new(&format!("--work {}", size.work.as_millis()))?;
    let flags = format!("--window 6s --container-concurrency 1 --max-scale {}", size.pods);
    let instance = Instance::start(&flags, &app.command).await?;
    let jitter = Jitter::measure();
    let began = Instant::now();
    let answers = at_once(&instance, size.requests).await;
    let took = began.elapsed();
    let late = jitter.finish();
    report.count("answers 200", answers.iter().filter(|answer| answer.is_good()).count(), size.requests);
    let seen = app.sightings();
    report.count("requests that the app saw", seen.of("begin").count(), size.requests);
    report.count("pods", seen.of("open").count(), size.pods);
    let made = || seen.of("exec").map(|exec| exec.at);
    let spread = made().max().unwrap_or(0).saturating_sub(made().min().unwrap_or(0));
    report.time("from the first process to the last", Duration::from_nanos(spread), ORDERED_WITHIN);
    report.count("most at once in one pod", seen.most_at_once(), 1);
    report.time("longest gap in a pod while a client waited", seen.longest_gap(), late.at_once());
    report.tell("longest time from a pod's open port to its first request", show(seen.longest_first_wait()));
    report.tell("lateness of timers meanwhile, of a hundred all but one", show(late.p99));
    report.tell("lateness of timers meanwhile, worst", show(late.worst));
    report.tell("all answered after", show(took));
    let requests = u32::try_from(size.requests).unwrap_or(u32::MAX);
    report.tell("as fast as all pods from the start could", show(size.work * requests / size.pods as u32));
    Ok(report)
}

async fn at_once(instance: &Instance, requests: usize) -> Vec<Answer> {
    let mut clients = JoinSet::new();
    for id in 0..requests {
        let address = instance.address;
        clients.spawn(async move { Ask::get(id).send(address).await.unwrap_or_default() });
    }
    clients.join_all().await
}
