//! Apps that are killed, one after another, under a steady load of requests
//! that must not be sent twice.

use super::{Report, show};
use crate::floor::client::{Answer, Ask};
use crate::floor::instance::kill;
use crate::floor::{Instance, TestApp, until};
use anyhow::Context;
use rustix::process::Signal;
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

/// How much is done.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// Pods.
    pub pods: usize,
    /// Requests a second.
    pub rate: u32,
    /// For how long.
    pub time: Duration,
    /// Apps that are killed meanwhile.
    pub kills: u32,
    /// See [`Report`].
    pub slack: u32,
}

/// Requests at one pod at a time, and how long each takes.
const LIMIT: usize = 10;
const WORK_MS: u32 = 20;

/// Sends the load, kills, and judges by what the apps wrote down.
///
/// # Errors
/// When something cannot be tried at all.
pub async fn run(size: Size) -> anyhow::Result<Report> {
    let mut report = Report::new(size.slack);
    let app = TestApp::new(&format!("--work {WORK_MS}"))?;
    let pods = size.pods;
    let flags = format!("--window 6s --container-concurrency {LIMIT} --min-scale {pods} --max-scale {pods}");
    let instance = Instance::start(&flags, &app.command).await?;
    instance.until_status("the pods are ready", |status| status.pods("ready") == pods).await?;

    let began = Instant::now();
    let mut clients = JoinSet::new();
    for n in 0..(f64::from(size.rate) * size.time.as_secs_f64()) as u32 {
        let (address, due) = (instance.address, began + Duration::from_secs(1) * n / size.rate);
        clients.spawn(async move {
            sleep_until(due).await;
            let id = format!("post-{n}");
            (id.clone(), Ask::get(id).body(10).send(address).await.unwrap_or_default())
        });
    }
    for n in 1..=size.kills {
        sleep_until(began + size.time * n / (size.kills + 1)).await;
        // The one that works: a pod that has just been started may have nothing yet.
        until("an app runs", async || !instance.apps().is_empty()).await?;
        kill(instance.apps().first().context("an app runs")?.pid, Signal::KILL)?;
    }
    let answers = clients.join_all().await;
    let took = began.elapsed();

    let seen = app.sightings();
    let mut begins: BTreeMap<&str, usize> = BTreeMap::new();
    seen.of("begin").for_each(|begin| *begins.entry(&begin.id).or_default() += 1);
    let failed: Vec<&(String, Answer)> = answers.iter().filter(|answer| !answer.1.is_good()).collect();
    let told = |answer: &Answer| answer.status == 502 && answer.reason() == Some("reset_before_answer");
    let untold = failed.iter().filter(|answer| !told(&answer.1));
    let texts: Vec<&str> = untold.map(|answer| answer.1.text.lines().next().unwrap_or("no answer")).collect();
    report.holds("failures without their reason", texts.is_empty(), format!("{texts:?}"));
    let in_hands = size.kills as usize * LIMIT;
    report.at_most("requests that failed", failed.len() as u64, in_hands as u64);
    let unseen = failed.iter().filter(|answer| !begins.contains_key(answer.0.as_str()));
    report.tell("of them, in an app's hands and not read by it yet", unseen.count());
    report.count("requests that apps saw twice", begins.values().filter(|times| **times > 1).count(), 0);
    report.count("processes", seen.of("open").count(), pods + size.kills as usize);
    report.tell("requests", answers.len());
    report.tell("all answered after", show(took));
    report.time("later than the load itself", took.saturating_sub(size.time), Duration::from_secs(1));
    Ok(report)
}
