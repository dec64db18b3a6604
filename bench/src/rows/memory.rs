//! Resident memory: fresh, with idle clients, under load.

use crate::accounts::resident;
use crate::book::Measure;
use crate::clients::Work;
use crate::crowd;
use crate::load::Pace;
use crate::peers::{AMPLE, Peer, Protocol, Running, Setup};
use crate::session::{Session, works};
use std::thread;
use std::time::Duration;

pub(crate) const FRESH: Measure = ("resident, fresh", "MiB");
pub(crate) const IDLE: Measure = ("resident, 1,000 idle clients", "MiB");
pub(crate) const LOADED: Measure = ("resident, under 256 connections", "MiB");

const PEERS: &[Peer] = &[
    Peer::QueueProxy,
    Peer::Activator,
    Peer::Floor,
    Peer::Nginx,
    Peer::Haproxy,
    Peer::Knative,
    Peer::Hyper,
    Peer::Pingora,
];
const IDLE_CLIENTS: usize = 1000;
const CONNECTIONS: usize = 256;
/// Until what was needed for a moment has been given back.
const SETTLE: Duration = Duration::from_millis(1200);
/// Figures of memory hardly differ between rounds.
const ROUNDS: usize = 3;

pub(super) fn run(session: &mut Session) -> anyhow::Result<()> {
    let setup = Setup { protocol: Protocol::Http1, limit: AMPLE };
    let peers = session.present(if session.options.quick { &PEERS[..1] } else { PEERS });
    let rounds = if session.options.quick { 1 } else { session.options.rounds.min(ROUNDS) };
    for round in 0..rounds {
        for index in session.shuffled(peers.len()) {
            let peer = peers[index];
            if let Err(error) = one(session, peer, setup, round) {
                session.drop_round("memory", peer, round, &format!("{error:#}"));
            }
        }
    }
    Ok(())
}

fn one(session: &mut Session, peer: Peer, setup: Setup, round: usize) -> anyhow::Result<()> {
    let folder = session.folder().to_owned();
    let running = peer.start(setup, &folder)?;
    thread::sleep(SETTLE);
    session.book.add("memory", FRESH, peer, round, mebibytes(&running));
    let kept = crowd::idle_after_a_request(running.address, IDLE_CLIENTS)?;
    thread::sleep(SETTLE);
    session.book.add("memory", IDLE, peer, round, mebibytes(&running));
    drop(kept);
    drop(running);
    let running = peer.start(setup, &folder)?;
    let load = Work::get("/1k", 1 << 10, CONNECTIONS);
    works(&running, &load)?;
    let (address, time) = (running.address, Duration::from_secs(2));
    let most = thread::scope(|scope| {
        let loading = scope.spawn(|| load.own(address, Pace::Closed, time));
        let mut most: f64 = 0.0;
        while !loading.is_finished() {
            most = most.max(mebibytes(&running));
            thread::sleep(Duration::from_millis(50));
        }
        loading.join().map(|outcome| (outcome, most))
    });
    let Ok((outcome, most)) = most else { return Ok(()) };
    if session.counted("memory", peer, round, outcome).is_some() {
        session.book.add("memory", LOADED, peer, round, most);
    }
    Ok(())
}

fn mebibytes(running: &Running) -> f64 {
    resident(&running.ids()) as f64 / f64::from(1 << 20)
}
