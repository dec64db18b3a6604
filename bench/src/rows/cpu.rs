//! CPU time for each request: with as many requests as the proxy takes, and at
//! a rate that is the same for all, half of what the slowest takes.

use crate::accounts::CpuTime;
use crate::book::{CPU_OFFERED, CPU_SATURATED, Measure, P99_OFFERED, RATE, USER_SATURATED};
use crate::clients::Work;
use crate::load::{Outcome, Pace, Request};
use crate::peers::{AMPLE, Peer, Protocol, Running, Setup};
use crate::session::Session;
use std::time::Duration;

const HTTP1: &[Peer] = &[
    Peer::Floor,
    Peer::QueueProxy,
    Peer::Nginx,
    Peer::Haproxy,
    Peer::Knative,
    Peer::Hyper,
    Peer::Pingora,
    Peer::Activator,
    Peer::Both,
];
const HTTP2: &[Peer] = &[
    Peer::QueueProxy,
    Peer::Nginx,
    Peer::Haproxy,
    Peer::Knative,
    Peer::Hyper,
    Peer::Pingora,
    Peer::Activator,
    Peer::Both,
];
/// Those that goals speak of.
const QUICK: &[Peer] = &[Peer::Floor, Peer::QueueProxy, Peer::Nginx, Peer::Haproxy, Peer::Knative];

/// Connections and pools fill before anything counts.
const WARM_UP: Duration = Duration::from_millis(200);

/// How long a round is for each peer.
fn time(session: &Session) -> Duration {
    Duration::from_millis(if session.options.quick { 300 } else { 1000 })
}

pub(super) fn get_0(session: &mut Session) -> anyhow::Result<()> {
    row(session, "get-0", &Work::get("/0", 0, 64))
}

pub(super) fn get_1k(session: &mut Session) -> anyhow::Result<()> {
    row(session, "get-1k", &Work::get("/1k", 1 << 10, 64))
}

pub(super) fn get_12_headers(session: &mut Session) -> anyhow::Result<()> {
    let mut work = Work::get("/1k", 1 << 10, 64);
    let headers = [
        ("User-Agent", "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"),
        ("Accept", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"),
        ("Accept-Language", "en-GB,en;q=0.7,de;q=0.3"),
        ("Accept-Encoding", "gzip, deflate, br"),
        ("Referer", "https://shop.example/catalogue/items?page=3"),
        ("Cookie", "session=9f0c2b7a41de4c0d8f6b5a3e2d1c0b9a; theme=dark; region=eu-central; consent=all"),
        ("Authorization", "Bearer eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.c2lnbmF0dXJlLW9mLWEtdG9rZW4"),
        ("Cache-Control", "no-cache"),
        ("X-Request-Id", "3f1c9a52-7be0-4ac1-9c3e-1f2d3c4b5a69"),
        ("Traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"),
        ("If-None-Match", "\"5e4c-62f0b6c2a1d40\""),
    ];
    work.request.headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
    row(session, "get-12-headers", &work)
}

pub(super) fn post_10k(session: &mut Session) -> anyhow::Result<()> {
    let mut work = Work::get("/sink", 0, 64);
    work.request.body = Some(10 << 10);
    row(session, "post-10k", &work)
}

pub(super) fn get_64k(session: &mut Session) -> anyhow::Result<()> {
    row(session, "get-64k", &Work::get("/64k", 64 << 10, 16))
}

pub(super) fn get_1m(session: &mut Session) -> anyhow::Result<()> {
    row(session, "get-1m", &Work::get("/1m", 1 << 20, 8))
}

pub(super) fn h2c_unary(session: &mut Session) -> anyhow::Result<()> {
    row(session, "h2c-unary", &http2("/1k", Some(128), 1 << 10, 16))
}

pub(super) fn h2c_64k(session: &mut Session) -> anyhow::Result<()> {
    row(session, "h2c-64k", &http2("/64k", None, 64 << 10, 4))
}

pub(super) fn grpc_unary(session: &mut Session) -> anyhow::Result<()> {
    row(session, "grpc-unary", &grpc("/bench/Unary", 5 + (1 << 10), 16))
}

pub(super) fn grpc_stream(session: &mut Session) -> anyhow::Result<()> {
    row(session, "grpc-stream", &grpc("/bench/Stream", 100 * (5 + 128), 4))
}

fn http2(path: &str, body: Option<usize>, expected: usize, streams: usize) -> Work {
    let request = Request { path: path.into(), headers: Vec::new(), body, expected, grpc: false };
    Work { protocol: Protocol::Http2, request, connections: 4, streams }
}

fn grpc(path: &str, expected: usize, streams: usize) -> Work {
    let mut work = http2(path, Some(128), expected, streams);
    work.request.grpc = true;
    let headers = [("content-type", "application/grpc"), ("te", "trailers")];
    work.request.headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
    work
}

fn row(session: &mut Session, name: &'static str, work: &Work) -> anyhow::Result<()> {
    let peers = match (session.options.quick && session.options.peers.is_empty(), work.protocol) {
        (true, Protocol::Http1) => QUICK,
        (true, Protocol::Http2) => &QUICK[1..],
        (false, Protocol::Http1) => HTTP1,
        (false, Protocol::Http2) => HTTP2,
    };
    let setup = Setup { protocol: work.protocol, limit: AMPLE };
    saturate_and_offer(session, name, peers, setup, work)
}

/// Both kinds of rounds, for any set of peers.
pub(super) fn saturate_and_offer(
    session: &mut Session,
    name: &'static str,
    peers: &[Peer],
    setup: Setup,
    work: &Work,
) -> anyhow::Result<()> {
    let running = session.start(name, peers, setup, work);
    for peer in &running {
        // What goes wrong here goes wrong in the rounds, and is told there.
        let _ = work.own(peer.address, Pace::Closed, WARM_UP);
    }
    let time = time(session);
    let folder = session.folder().to_owned();
    for round in 0..session.options.rounds {
        for index in session.shuffled(running.len()) {
            let peer = &running[index];
            let run = || work.saturate(peer.address, time, &folder);
            if let Some(outcome) = measured(session, name, peer, round, [CPU_SATURATED, USER_SATURATED], run) {
                session.book.add(name, RATE, peer.peer, round, outcome.rate());
            }
        }
    }
    let rates = running.iter().filter_map(|peer| session.book.summary(name, RATE.0, peer.peer));
    let slowest = rates.map(|rate| rate.median).fold(f64::INFINITY, f64::min);
    if !slowest.is_finite() {
        return Ok(());
    }
    let rate = slowest / 2.0;
    session.book.notes.push(format!("{name}: the equal rate was {rate:.0} requests a second"));
    for round in 0..session.options.rounds {
        for index in session.shuffled(running.len()) {
            let peer = &running[index];
            let run = || work.own(peer.address, Pace::Open { rate, seed: round as u64 }, time);
            if let Some(outcome) = measured(session, name, peer, round, [CPU_OFFERED, USER_OFFERED], run) {
                session.book.add(name, P99_OFFERED, peer.peer, round, outcome.p99);
            }
        }
    }
    Ok(())
}

const USER_OFFERED: Measure = ("user CPU per request, equal rate", "us");

/// One peer's part of a round: CPU time of its processes for each request that
/// was answered.
fn measured(
    session: &mut Session,
    name: &'static str,
    peer: &Running,
    round: usize,
    [cpu, user]: [Measure; 2],
    run: impl FnOnce() -> anyhow::Result<Outcome>,
) -> Option<Outcome> {
    let ids = peer.ids();
    let before = CpuTime::of(&ids);
    let outcome = run();
    let after = CpuTime::of(&ids);
    let outcome = session.counted(name, peer.peer, round, outcome)?;
    let Some(spent) = after.since(&before) else {
        session.drop_round(name, peer.peer, round, "a thread ended");
        return None;
    };
    let each = spent.total.as_secs_f64() * 1e6 / outcome.completed as f64;
    session.book.add(name, cpu, peer.peer, round, each);
    session.book.add(name, user, peer.peer, round, each * spent.user_share);
    Some(outcome)
}
