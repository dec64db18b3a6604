//! What a proxy adds to the latency of one connection: with a processor of its
//! own, and with a tenth of one.

use crate::book::Measure;
use crate::clients::Work;
use crate::load::{Outcome, Pace};
use crate::peers::{AMPLE, Peer, Protocol, Running, Setup};
use crate::quota::Quota;
use crate::session::Session;
use std::time::Duration;

pub(crate) const ADDED_P50: Measure = ("added p50", "us");
pub(crate) const ADDED_P99: Measure = ("added p99", "us");

const PEERS: &[Peer] = &[
    Peer::Direct,
    Peer::QueueProxy,
    Peer::Knative,
    Peer::Floor,
    Peer::Nginx,
    Peer::Haproxy,
    Peer::Hyper,
    Peer::Pingora,
    Peer::Both,
];
/// Those that goals speak of.
const NEEDED: usize = 3;
/// Requests a second under a quota, and of which part of a processor.
const RATE: f64 = 200.0;
const TENTH: f64 = 0.1;

pub(super) fn plain(session: &mut Session) -> anyhow::Result<()> {
    let peers = if session.options.quick { &PEERS[..NEEDED] } else { PEERS };
    let running = start(session, "latency", peers);
    let time = Duration::from_millis(if session.options.quick { 500 } else { 1000 });
    rounds(session, "latency", &running, time, |_| Pace::Closed);
    Ok(())
}

pub(super) fn under_quota(session: &mut Session) -> anyhow::Result<()> {
    // A wide spread asks for all rounds, also of few peers.
    let peers = if session.options.quick { &PEERS[..NEEDED] } else { &PEERS[..6] };
    let running = start(session, "quota", peers);
    let mut quotas = Vec::new();
    for peer in running.iter().filter(|peer| peer.peer != Peer::Direct) {
        quotas.push(Quota::of(&format!("compare-{}", peer.peer.word()), TENTH, &peer.ids())?);
    }
    let time = Duration::from_millis(if session.options.quick { 1200 } else { 5000 });
    rounds(session, "quota", &running, time, |round| Pace::Open { rate: RATE, seed: round as u64 });
    drop(running);
    drop(quotas);
    Ok(())
}

fn start(session: &mut Session, row: &'static str, peers: &[Peer]) -> Vec<Running> {
    let setup = Setup { protocol: Protocol::Http1, limit: AMPLE };
    session.start(row, peers, setup, &work())
}

fn work() -> Work {
    Work::get("/1k", 1 << 10, 1)
}

/// In each round: everybody, and what is beyond the direct way.
fn rounds(session: &mut Session, row: &'static str, running: &[Running], time: Duration, pace: impl Fn(usize) -> Pace) {
    for round in 0..session.options.rounds {
        let mut outcomes: Vec<(Peer, Outcome)> = Vec::new();
        for index in session.shuffled(running.len()) {
            let peer = &running[index];
            let outcome = work().own(peer.address, pace(round), time);
            if let Some(outcome) = session.counted(row, peer.peer, round, outcome) {
                outcomes.push((peer.peer, outcome));
            }
        }
        let direct = outcomes.iter().find(|(peer, _)| *peer == Peer::Direct).map(|(_, outcome)| outcome.clone());
        let Some(direct) = direct else { continue };
        for (peer, outcome) in outcomes.into_iter().filter(|(peer, _)| *peer != Peer::Direct) {
            session.book.add(row, ADDED_P50, peer, round, outcome.p50 - direct.p50);
            session.book.add(row, ADDED_P99, peer, round, outcome.p99 - direct.p99);
        }
    }
}
