//! From the start of the process to the first answer that it has forwarded.

use crate::book::Measure;
use crate::crowd;
use crate::peers::{AMPLE, Peer, Protocol, Setup, start_command};
use crate::process::{PROXY, Process, is_free};
use crate::session::Session;
use anyhow::ensure;
use std::net::TcpStream;
use std::time::{Duration, Instant};

pub(crate) const START: Measure = ("exec to first answer", "ms");

const PEERS: &[Peer] = &[Peer::QueueProxy, Peer::Knative];
const PATIENCE: Duration = Duration::from_secs(10);

pub(super) fn run(session: &mut Session) -> anyhow::Result<()> {
    let peers = session.present(PEERS);
    // Cheap, and each one varies much.
    let rounds = if session.options.quick { 9 } else { session.options.rounds * 3 };
    for peer in &peers {
        // The first one reads the binary from the disk.
        let _ = one(session, *peer);
    }
    for round in 0..rounds {
        for index in session.shuffled(peers.len()) {
            match one(session, peers[index]) {
                Ok(took) => session.book.add("start", START, peers[index], round, took.as_secs_f64() * 1e3),
                Err(error) => session.drop_round("start", peers[index], round, &format!("{error:#}")),
            }
        }
    }
    Ok(())
}

fn one(session: &Session, peer: Peer) -> anyhow::Result<Duration> {
    let (mut command, address) = start_command(peer, Setup { protocol: Protocol::Http1, limit: AMPLE })?;
    is_free(address)?;
    let began = Instant::now();
    let _process = Process::start("start", &mut command, Some(PROXY), session.folder())?;
    let mut stream = loop {
        if let Ok(stream) = TcpStream::connect(address) {
            break stream;
        }
        ensure!(began.elapsed() < PATIENCE, "it does not listen");
        std::thread::sleep(Duration::from_micros(50));
    };
    crowd::ask(&mut stream, "/0")?;
    Ok(began.elapsed())
}
