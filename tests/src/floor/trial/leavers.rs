//! Crowds that give up at zero, before the app is there.

use super::{Report, median_and_worst, show};
use crate::floor::client::Ask;
use crate::floor::processes::resident_bytes;
use crate::floor::{Instance, TestApp};
use anyhow::Context;
use std::time::Duration;
use tokio::task::JoinSet;

/// From the last one's leaving to the moment at which nobody is held for them.
const NOTICED: Duration = Duration::from_millis(100);
/// How much more memory the later rounds may take.
const GROWTH_PERCENT: f64 = 10.0;

/// How much is done.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// Clients that leave, in each round.
    pub clients: usize,
    /// So many bytes each of them has to send; `None` = a GET.
    pub body_bytes: Option<usize>,
    /// Crowds, one after the other, each at zero.
    pub rounds: usize,
    /// How long they wait.
    pub patience: Duration,
    /// How late the app opens its port.
    pub open_after: Duration,
    /// See [`Report`].
    pub slack: u32,
}

/// Sends crowd after crowd. In each round but the first a patient client is
/// among them.
///
/// # Errors
/// When something cannot be tried at all.
pub async fn run(size: Size) -> anyhow::Result<Report> {
    let mut report = Report::new(size.slack);
    let app = TestApp::new(&format!("--open-after {}", size.open_after.as_millis()))?;
    let instance = Instance::start("--window 6s", &app.command).await?;
    let (mut noticed, mut memory, mut served) = (Vec::new(), Vec::new(), 0);
    let (mut most_held, mut asked) = (usize::MAX, 0);
    for round in 1..=size.rounds {
        instance.until_zero().await?;
        let patient = round > 1;
        let address = instance.address;
        let waiting = patient.then(|| tokio::spawn(async move { Ask::get("patient").send(address).await }));
        let crowd = crowd(&instance, &size).await?;
        most_held = most_held.min(crowd.most_held);
        asked += crowd.asked;
        let took =
            instance.until_status("nobody is held for those who left", |status| status.held() == usize::from(patient));
        noticed.push(took.await?);
        if let Some(waiting) = waiting {
            served += usize::from(waiting.await?.is_ok_and(|answer| answer.is_good()));
        }
        instance.until_status("nobody is held", |status| status.held() == 0 && status.in_flight() == 0).await?;
        memory.push(resident_bytes(instance.pid()).context("it is gone")?);
    }
    let seen = app.sightings();
    let (median, worst) = median_and_worst(noticed);
    report.tell("clients that left, and rounds", format!("{} x {}", size.clients, size.rounds));
    report.tell("bytes each had to send", size.body_bytes.map_or("no body".to_owned(), |bytes| bytes.to_string()));
    report.count("requests of theirs that went out", asked, size.clients * size.rounds);
    report.holds("most held at once, at least half in each round", most_held >= size.clients / 2, most_held);
    report.tell("all noticed after the last had left, median", show(median));
    report.time("all noticed after the last had left, worst", worst, NOTICED);
    report.count("patient clients served", served, size.rounds - 1);
    let others = seen.of("begin").filter(|begin| begin.id != "patient").count();
    report.count("requests of the others that the app saw", others, 0);
    judge_memory(&mut report, &memory);
    Ok(report)
}

/// Memory after the last round beside that after the one in the middle.
fn judge_memory(report: &mut Report, memory: &[u64]) {
    let middle = memory[(memory.len() - 1) / 2] as f64;
    let last = memory[memory.len() - 1] as f64;
    let mebibytes: Vec<String> = memory.iter().map(|bytes| format!("{:.1}", *bytes as f64 / 1048576.0)).collect();
    report.tell("resident memory after each round, MiB", mebibytes.join(" "));
    let growth = 100.0 * (last / middle - 1.0);
    report.percent("growth from the middle round to the last", growth, GROWTH_PERCENT);
}

/// What a crowd did.
struct Crowd {
    /// Clients whose requests went out.
    asked: usize,
    /// The most that were held at once.
    most_held: usize,
}

/// All come at once, and each leaves when its patience ends.
async fn crowd(instance: &Instance, size: &Size) -> anyhow::Result<Crowd> {
    let Size { clients, body_bytes, patience, .. } = *size;
    let mut left = JoinSet::new();
    for id in 0..clients {
        let ask = Ask { body_bytes, ..Ask::get(id) };
        let address = instance.address;
        left.spawn(async move { ask.leave_after(address, patience).await });
    }
    let mut crowd = Crowd { asked: 0, most_held: 0 };
    while !left.is_empty() {
        tokio::select! {
            Some(asked) = left.join_next() => crowd.asked += usize::from(asked?),
            () = tokio::time::sleep(Duration::from_millis(10)) => {
                crowd.most_held = crowd.most_held.max(instance.status().await?.held());
            }
        }
    }
    Ok(crowd)
}
