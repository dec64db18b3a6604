//! What a request costs the activator while it waits for a pod.

use crate::accounts::resident;
use crate::book::Measure;
use crate::crowd;
use crate::peers::{self, AMPLE, Peer, Protocol, Setup};
use crate::session::Session;
use anyhow::{Context, ensure};
use bytes::Bytes;
use std::fmt::Write as _;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

pub(crate) const HTTP1: Measure = ("held, HTTP/1", "bytes");
pub(crate) const HTTP2: Measure = ("held, HTTP/2 stream", "bytes");

/// Streams of a connection.
const STREAMS: usize = 250;
/// Memory is compared between so many held requests and more.
const LOW: usize = 1000;
const ROUNDS: usize = 3;
const LOOK: Duration = Duration::from_millis(50);
const PATIENCE: Duration = Duration::from_secs(60);
/// One revision without a pod.
const NOBODY: &str = "revisions:\n- {name: default/rev, fallback: true, containerConcurrency: 10, pods: []}\n...\n";

pub(super) fn run(session: &mut Session) -> anyhow::Result<()> {
    if session.present(&[Peer::Activator]).is_empty() {
        return Ok(());
    }
    let quick = session.options.quick;
    let rounds = if quick { 1 } else { session.options.rounds.min(ROUNDS) };
    let (http1, http2) = if quick { (4000, 8000) } else { (9000, 20_000) };
    for round in 0..rounds {
        for (measure, top) in [(HTTP1, http1), (HTTP2, http2)] {
            let folder = session.folder().to_owned();
            let setup = Setup { protocol: Protocol::Http1, limit: AMPLE };
            let activator = peers::activator(setup, NOBODY, false, &folder)?;
            until_it_holds(activator.address)?;
            let mut crowd = Crowd::new(activator.address, measure == HTTP2)?;
            let mut at = |count: usize| -> anyhow::Result<u64> {
                crowd.grow_to(count)?;
                crowd.until_held(peers::metrics_of(activator.address), count)?;
                Ok(resident(&activator.ids()))
            };
            let low = at(LOW)?;
            let each = at(top)?.saturating_sub(low) as f64 / (top - LOW) as f64;
            session.book.add("held", measure, Peer::Activator, round, each);
        }
    }
    Ok(())
}

/// Until it has read its snapshot it knows no revision, and answers so at once.
fn until_it_holds(activator: SocketAddr) -> anyhow::Result<()> {
    let began = Instant::now();
    loop {
        let mut stream = crowd::connected(activator, 0)?;
        stream.set_read_timeout(Some(LOOK))?;
        stream.write_all(b"GET / HTTP/1.1\r\nHost: bench.example\r\n\r\n")?;
        match stream.read(&mut [0; 64]) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
            _ => ensure!(began.elapsed() < PATIENCE, "it answers instead of holding"),
        }
    }
}

/// Headers that make a head of about 300 bytes.
fn headers() -> [(&'static str, String); 4] {
    [
        ("user-agent", "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0".to_owned()),
        ("accept", "text/html,application/xhtml+xml,*/*;q=0.8".to_owned()),
        ("accept-encoding", "gzip, deflate, br".to_owned()),
        ("cookie", "session=9f0c2b7a41de4c0d8f6b5a3e2d1c0b9a".to_owned()),
    ]
}

/// Clients that ask and wait.
struct Crowd {
    to: SocketAddr,
    http2: Option<tokio::runtime::Runtime>,
    connections: Vec<TcpStream>,
    clients: Vec<h2::client::SendRequest<Bytes>>,
    streams: Vec<h2::client::ResponseFuture>,
}

impl Crowd {
    fn new(to: SocketAddr, http2: bool) -> anyhow::Result<Crowd> {
        let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build();
        let http2 = http2.then(runtime).transpose()?;
        Ok(Crowd { to, http2, connections: Vec::new(), clients: Vec::new(), streams: Vec::new() })
    }

    fn grow_to(&mut self, count: usize) -> anyhow::Result<()> {
        let Some(runtime) = &self.http2 else {
            let mut head = format!("GET / HTTP/1.1\r\nHost: {}\r\n", self.to);
            for (name, value) in headers() {
                let _ = write!(head, "{name}: {value}\r\n");
            }
            head.push_str("\r\n");
            for number in self.connections.len()..count {
                let mut stream = crowd::connected(self.to, number)?;
                stream.write_all(head.as_bytes())?;
                self.connections.push(stream);
            }
            return Ok(());
        };
        let (to, clients, streams) = (self.to, &mut self.clients, &mut self.streams);
        runtime.block_on(async {
            while streams.len() < count {
                if streams.len() >= clients.len() * STREAMS {
                    let socket = tokio::net::TcpStream::connect(to).await?;
                    let (sender, connection) = h2::client::handshake(socket).await?;
                    tokio::spawn(connection);
                    // The bound on streams comes with the peer's settings.
                    tokio::time::sleep(Duration::from_millis(2)).await;
                    clients.push(sender);
                }
                let client = clients.last().context("a connection")?.clone();
                let mut request = http::Request::builder().uri(format!("http://{to}/"));
                for (name, value) in headers() {
                    request = request.header(name, value);
                }
                let (answer, _) = client.ready().await?.send_request(request.body(())?, true)?;
                streams.push(answer);
            }
            Ok(())
        })
    }

    /// Waits until all have come to the activator.
    fn until_held(&self, metrics: SocketAddr, count: usize) -> anyhow::Result<()> {
        let began = Instant::now();
        loop {
            match &self.http2 {
                // What is on its way leaves: connections stand still outside of this.
                Some(runtime) => runtime.block_on(async { tokio::time::sleep(LOOK).await }),
                None => std::thread::sleep(LOOK),
            }
            let page = crowd::page(metrics, "/metrics")?;
            let held = page.lines().filter(|line| line.starts_with("zeroscale_activator_held_requests"));
            let held: f64 = held.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum();
            if held >= count as f64 {
                return Ok(());
            }
            ensure!(began.elapsed() < PATIENCE, "{held} are held, not {count}");
        }
    }
}
