//! A limit of 10 and 64 clients: who waits, and how long the unlucky wait.

use crate::book::Measure;
use crate::clients::Work;
use crate::load::Pace;
use crate::peers::{Peer, Protocol, Setup};
use crate::session::Session;
use std::time::Duration;

const LIMIT: u32 = 10;
const CLIENTS: usize = 64;
const PEERS: &[Peer] = &[Peer::QueueProxy, Peer::Both, Peer::Haproxy, Peer::Knative];

pub(crate) const SPREAD_1K: Measure = ("p99 by p50, 1 KiB", "");
pub(crate) const SPREAD_5MS: Measure = ("p99 by p50, 5 ms app", "");
const P50_1K: Measure = ("p50, 1 KiB", "us");
const P50_5MS: Measure = ("p50, 5 ms app", "us");

pub(super) fn run(session: &mut Session) -> anyhow::Result<()> {
    let setup = Setup { protocol: Protocol::Http1, limit: LIMIT };
    let peers = if session.options.quick { &PEERS[..1] } else { PEERS };
    let time = Duration::from_millis(if session.options.quick { 700 } else { 2000 });
    let works = [
        (Work::get("/1k", 1 << 10, CLIENTS), SPREAD_1K, P50_1K),
        (Work::get("/5ms", 1 << 10, CLIENTS), SPREAD_5MS, P50_5MS),
    ];
    let running = session.start("limit", peers, setup, &works[0].0);
    for round in 0..session.options.rounds {
        for index in session.shuffled(running.len()) {
            let peer = &running[index];
            for (work, spread, p50) in &works {
                let outcome = work.own(peer.address, Pace::Closed, time);
                let Some(outcome) = session.counted("limit", peer.peer, round, outcome) else { continue };
                session.book.add("limit", *spread, peer.peer, round, outcome.p99 / outcome.p50);
                session.book.add("limit", *p50, peer.peer, round, outcome.p50);
            }
        }
    }
    Ok(())
}

/// CPU time of activator and sidecar together under that limit.
pub(super) fn both(session: &mut Session) -> anyhow::Result<()> {
    let setup = Setup { protocol: Protocol::Http1, limit: LIMIT };
    let peers = [Peer::Both, Peer::QueueProxy, Peer::Haproxy, Peer::Knative];
    let peers = if session.options.quick { &[Peer::Both, Peer::Knative] } else { &peers[..] };
    super::cpu::saturate_and_offer(session, "both", peers, setup, &Work::get("/1k", 1 << 10, CLIENTS))
}
