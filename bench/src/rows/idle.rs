//! Wake-ups with nothing to do but a hundred kept connections.

use crate::accounts::voluntary_switches;
use crate::book::Measure;
use crate::clients::Work;
use crate::crowd;
use crate::peers::{AMPLE, Peer, Protocol, Setup};
use crate::session::Session;
use std::thread;
use std::time::Duration;

pub(crate) const SWITCHES: Measure = ("voluntary switches in 60 s", "");

const PEERS: &[Peer] = &[Peer::QueueProxy, Peer::Activator, Peer::Nginx, Peer::Haproxy, Peer::Knative];
const KEPT: usize = 100;
const SETTLE: Duration = Duration::from_secs(2);

pub(super) fn run(session: &mut Session) -> anyhow::Result<()> {
    let setup = Setup { protocol: Protocol::Http1, limit: AMPLE };
    let running = session.start("idle", PEERS, setup, &Work::get("/0", 0, 1));
    let mut kept = Vec::new();
    for peer in &running {
        kept.push(crowd::idle_after_a_request(peer.address, KEPT)?);
    }
    thread::sleep(SETTLE);
    // All at the same time: they do not disturb each other.
    let over = Duration::from_secs(if session.options.quick { 8 } else { 60 });
    let before: Vec<u64> = running.iter().map(|peer| voluntary_switches(&peer.ids())).collect();
    thread::sleep(over);
    for (peer, before) in running.iter().zip(before) {
        let switches = voluntary_switches(&peer.ids()).saturating_sub(before);
        let in_a_minute = switches as f64 * 60.0 / over.as_secs_f64();
        session.book.add("idle", SWITCHES, peer.peer, 0, in_a_minute);
    }
    Ok(())
}
