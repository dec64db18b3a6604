//! `kill -9` of everything that can be killed, under load; and a long request
//! whose pod is to go.

use super::{Report, show};
use crate::floor::client::{Answer, Ask};
use crate::floor::instance::kill;
use crate::floor::{Instance, TestApp, until};
use anyhow::Context;
use rustix::process::Signal;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::task::JoinSet;

/// From the kill to the last process.
const GONE: Duration = Duration::from_secs(1);

/// The app is killed with requests in its hands, and others held behind it.
///
/// # Errors
/// When something cannot be tried at all.
pub async fn app(in_hands: usize, held: usize, slack: u32) -> anyhow::Result<Report> {
    let mut report = Report::new(slack);
    let app = TestApp::new("--work 400")?;
    let flags = format!("--window 6s --max-scale 1 --container-concurrency {in_hands}");
    let instance = Instance::start(&flags, &app.command).await?;
    let mut clients = JoinSet::new();
    let mut ask = |id: String| {
        let address = instance.address;
        // With a body: one without, whose repetition does no harm, would be asked again.
        clients.spawn(async move { (id.clone(), Ask::get(id).body(10).send(address).await.unwrap_or_default()) });
    };
    (0..in_hands).for_each(|n| ask(format!("in-hands-{n}")));
    until("the app has its hands full", async || app.sightings().of("begin").count() == in_hands).await?;
    (0..held).for_each(|n| ask(format!("held-{n}")));
    instance.until_status("the others are held", |status| status.held() == held).await?;
    kill(instance.apps().first().context("an app runs")?.pid, Signal::KILL)?;
    let answers = clients.join_all().await;
    let of = |prefix: &'static str| {
        answers.iter().filter(move |answer| answer.0.starts_with(prefix)).map(|answer| &answer.1)
    };
    let is_told = |answer: &&Answer| answer.status == 502 && answer.reason() == Some("reset_before_answer");
    report.count(
        "app killed: 502 with a reason for those in its hands",
        of("in-hands").filter(is_told).count(),
        in_hands,
    );
    report.count("app killed: 200 for those held", of("held").filter(|answer| answer.is_good()).count(), held);
    report.count("app killed: starts", app.sightings().of("exec").count(), 2);
    let seen = app.sightings();
    let twice = seen.of("begin").filter(|begin| seen.of("begin").filter(|other| other.id == begin.id).count() > 1);
    report.count("app killed: requests that it saw twice", twice.count(), 0);
    Ok(report)
}

/// `zeroscale` itself is killed under load.
///
/// # Errors
/// When something cannot be tried at all.
pub async fn zeroscale(slack: u32) -> anyhow::Result<Report> {
    let mut report = Report::new(slack);
    // A daemon, and nothing that hears TERM: only KILL gets rid of these.
    let app = TestApp::deaf("--work 20 --daemon")?;
    let flags = "--window 6s --container-concurrency 1 --max-scale 3";
    let mut instance = Instance::start(flags, &app.command).await?;
    let load = Load::on(instance.address, 12);
    let daemons = || app.sightings().of("daemon").count();
    until("three pods are there", async || daemons() >= 3 && app.sightings().of("open").count() >= 3).await?;
    let ports = ports_of(&instance, &app).await?;
    instance.signal(Signal::KILL)?;
    let ended = instance.ended().await?;
    report.holds("zeroscale killed: by the signal", ended.code.is_none(), format!("{:?}", ended.code));
    let gone = instance.until_nothing_is_left().await?;
    report.time("zeroscale killed: no process left after", gone, GONE);
    load.finish().await;
    report.count("zeroscale killed: ports that are not free", taken(&ports), 0);
    let next = Instance::listen(flags, &app.command, &instance.address.to_string()).await?;
    let answer = Ask::get("next").send(next.address).await?;
    report.holds("zeroscale killed: a new start at the same address serves", answer.is_good(), answer.status);
    Ok(report)
}

/// The guard is killed under load; `zeroscale` lives on.
///
/// # Errors
/// When something cannot be tried at all.
pub async fn guard(slack: u32) -> anyhow::Result<Report> {
    let mut report = Report::new(slack);
    let app = TestApp::deaf("--work 20 --daemon")?;
    let flags = "--window 6s --stop-timeout 300ms --container-concurrency 1 --max-scale 3";
    let instance = Instance::start(flags, &app.command).await?;
    let load = Load::on(instance.address, 12);
    let daemons = || app.sightings().of("daemon").count();
    until("three pods are there", async || daemons() >= 3 && app.sightings().of("open").count() >= 3).await?;
    let guard = instance.guard().context("a guard runs")?;
    let before: Vec<i32> = instance.apps().iter().map(|process| process.pid).collect();
    kill(guard, Signal::KILL)?;
    let left = || instance.processes().into_iter().filter(|process| before.contains(&process.pid)).count();
    let gone = until("what it guarded is gone", async || left() == 0).await?;
    report.time("guard killed: no process of before left after", gone, GONE);
    let back = until("another guard is there", async || instance.guard().is_some_and(|pid| pid != guard)).await?;
    report.tell("guard killed: another one after", show(back));
    let answer = Ask::get("next").send(instance.address).await?;
    report.holds("guard killed: the next request is served", answer.is_good(), answer.status);
    let answers = load.finish().await;
    let told = |answer: &Answer| answer.status == 502 && answer.reason().is_some();
    let lost = |answer: &&Answer| !(answer.is_good() || told(answer));
    report.count(
        "guard killed: answers that are neither 200 nor 502 with a reason",
        answers.iter().filter(lost).count(),
        0,
    );
    instance.until_zero().await?;
    Ok(report)
}

/// Requests go on while their pods are to be scaled down: one that is silent
/// until its end, and one that streams.
///
/// # Errors
/// When something cannot be tried at all.
pub async fn long_requests(time: Duration, slack: u32) -> anyhow::Result<Report> {
    let mut report = Report::new(slack);
    let (silent, streaming) = tokio::try_join!(long_request("work", time, slack), long_request("stream", time, slack))?;
    report.rows.extend(silent.rows.into_iter().chain(streaming.rows));
    Ok(report)
}

async fn long_request(kind: &str, time: Duration, slack: u32) -> anyhow::Result<Report> {
    let mut report = Report::new(slack);
    let app = TestApp::new("")?;
    // One request in a minute is no load by this metric: the pod is not wanted.
    let instance = Instance::start("--window 6s --metric rps --target 1", &app.command).await?;
    let ask = Ask::get(kind).path(format!("/{kind}/{}", time.as_millis()));
    let address = instance.address;
    let request = tokio::spawn(async move { ask.send(address).await });
    instance.until_status("its pod is to go", |status| status.pods("terminating") == 1).await?;
    report.holds(format!("/{kind}: its pod is to go before it ends"), !request.is_finished(), show(time));
    let answer = request.await??;
    report.holds(format!("/{kind}: it ends whole, with 200"), answer.is_good(), answer.status);
    report.tell(format!("/{kind}: at zero after its end"), show(instance.until_zero().await?));
    Ok(report)
}

/// Clients that ask again and again, each on its own.
struct Load {
    stop: Arc<AtomicBool>,
    clients: JoinSet<Vec<Answer>>,
}

impl Load {
    fn on(address: SocketAddr, clients: usize) -> Load {
        let stop = Arc::new(AtomicBool::new(false));
        let mut set = JoinSet::new();
        for client in 0..clients {
            let stop = stop.clone();
            set.spawn(async move {
                let mut answers = Vec::new();
                while !stop.load(Ordering::Relaxed) {
                    match Ask::get(format!("load-{client}")).send(address).await {
                        Ok(answer) => answers.push(answer),
                        // Nobody listens any more.
                        Err(_) => tokio::time::sleep(Duration::from_millis(5)).await,
                    }
                }
                answers
            });
        }
        Load { stop, clients: set }
    }

    async fn finish(self) -> Vec<Answer> {
        self.stop.store(true, Ordering::Relaxed);
        self.clients.join_all().await.into_iter().flatten().collect()
    }
}

/// The ports that the instance, its sidecars and its apps listen on.
async fn ports_of(instance: &Instance, app: &TestApp) -> anyhow::Result<Vec<SocketAddr>> {
    let status = instance.status().await?;
    let pods = status.revisions.iter().flat_map(|revision| &revision.pods);
    let sidecars = pods.filter(|pod| pod.phase == "ready").filter_map(|pod| pod.address.parse().ok());
    let seen = app.sightings();
    let apps = seen.of("open").filter_map(|open| Some((Ipv4Addr::LOCALHOST, open.id.parse().ok()?).into()));
    Ok(sidecars.chain(apps).chain([instance.address]).collect())
}

/// Those that cannot be listened on now.
fn taken(ports: &[SocketAddr]) -> usize {
    ports.iter().filter(|port| TcpListener::bind(port).is_err()).count()
}
