//! The activator with ten thousand revisions, beside itself with ten.

use crate::accounts::CpuTime;
use crate::book::Measure;
use crate::clients::{self, Work};
use crate::load::{Outcome, Pace, Plan};
use crate::peers::{self, AMPLE, Peer, Protocol, Running, Setup};
use crate::session::Session;
use anyhow::ensure;
use std::time::{Duration, Instant};

pub(crate) const GROWTH: Measure = ("CPU with 10,000 revisions by CPU with 10", "");
const FEW_CPU: Measure = ("CPU per request, 10 revisions", "us");
const MANY_CPU: Measure = ("CPU per request, 10,000 revisions", "us");

const FEW: u32 = 10;
const MANY: u32 = 10_000;
const CONNECTIONS: usize = 64;
const PATIENCE: Duration = Duration::from_secs(30);

pub(super) fn run(session: &mut Session) -> anyhow::Result<()> {
    if session.present(&[Peer::Activator]).is_empty() {
        return Ok(());
    }
    let time = Duration::from_millis(if session.options.quick { 700 } else { 2000 });
    let setup = Setup { protocol: Protocol::Http1, limit: AMPLE };
    let folder = session.folder().to_owned();
    let rounds = if session.options.quick { 1 } else { session.options.rounds };
    for round in 0..rounds {
        let mut figures = [None; 2];
        // The same port, so one after the other.
        for index in session.shuffled(2) {
            let (count, measure) = [(FEW, FEW_CPU), (MANY, MANY_CPU)][index];
            let activator = peers::activator(setup, &peers::revisions(count, setup), true, &folder)?;
            // Pods are asked once whose sidecar they have, and get a connection
            // with their first request: that is not what the row is about.
            warm(&activator, count)?;
            let ids = activator.ids();
            let before = CpuTime::of(&ids);
            let outcome = load(&activator, count, time, false);
            let after = CpuTime::of(&ids);
            let Some(outcome) = session.counted("revisions", Peer::Activator, round, outcome) else { continue };
            let Some(spent) = after.since(&before) else { continue };
            let each = spent.total.as_secs_f64() * 1e6 / outcome.completed as f64;
            session.book.add("revisions", measure, Peer::Activator, round, each);
            figures[index] = Some(each);
        }
        if let [Some(few), Some(many)] = figures {
            session.book.add("revisions", GROWTH, Peer::Activator, round, many / few);
        }
    }
    Ok(())
}

fn warm(activator: &Running, revisions: u32) -> anyhow::Result<()> {
    let time = Duration::from_millis(1000 + u64::from(revisions / 5));
    let began = Instant::now();
    loop {
        let outcome = load(activator, revisions, time, true)?;
        if outcome.errors == 0 && outcome.completed > u64::from(revisions) {
            return Ok(());
        }
        ensure!(began.elapsed() < PATIENCE, "{revisions} revisions: {outcome:?}");
    }
}

fn load(activator: &Running, revisions: u32, time: Duration, each_once: bool) -> anyhow::Result<Outcome> {
    let work = Work::get("/1k", 1 << 10, CONNECTIONS);
    let plan = Plan {
        to: activator.address,
        request: work.request,
        connections: CONNECTIONS,
        streams: 1,
        pace: Pace::Closed,
        time,
        hosts: revisions as usize,
        each_once,
    };
    clients::own(Protocol::Http1, &plan)
}
