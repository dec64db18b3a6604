//! A rig for tests over real sockets: apps that misbehave on purpose, sidecars,
//! and clients that speak raw bytes.

use observe::Observer;
use plumbing::fds::Budget;
use plumbing::http1::Http1;
use plumbing::shutdown::Shutdown;
use plumbing::stats::{self, StatSource};
use plumbing::trust::Trust;
use plumbing::worker::Worker;
use policy::revision::{RevisionId, Timeouts};
use queue_proxy::{Config, Links, Sockets};
use std::future::Future;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::time::{Instant, timeout};

/// How long anything may take before a test gives up on it.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// The simplest request.
pub const GET: &str = "GET / HTTP/1.1\r\nhost: shop.example\r\n\r\n";

/// The simplest answer.
pub const OK: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

/// An app: each accepted connection is given to `serve`.
pub async fn app<F, S>(serve: S) -> SocketAddr
where
    S: Fn(TcpStream) -> F + Send + 'static,
    F: Future<Output = ()> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream));
        }
    });
    address
}

/// What a [`gated_app`] has seen.
#[derive(Clone, Default)]
pub struct Gate {
    /// Lets one request go on.
    pub open: Arc<Notify>,
    /// Requests inside.
    pub inside: Arc<AtomicUsize>,
    /// The most that were inside at once.
    pub most: Arc<AtomicUsize>,
    /// All that ever came.
    pub seen: Arc<AtomicUsize>,
}

impl Gate {
    /// Requests inside now.
    pub fn inside(&self) -> usize {
        self.inside.load(Ordering::SeqCst)
    }

    /// The most that were inside at once.
    pub fn most(&self) -> usize {
        self.most.load(Ordering::SeqCst)
    }

    /// All that ever came.
    pub fn seen(&self) -> usize {
        self.seen.load(Ordering::SeqCst)
    }
}

/// An app that answers `ok` to each request, once its gate lets it.
pub async fn gated_app(gate: &Gate) -> SocketAddr {
    let gate = gate.clone();
    app(move |mut stream| {
        let gate = gate.clone();
        async move {
            while !read_head(&mut stream).await.is_empty() {
                gate.seen.fetch_add(1, Ordering::SeqCst);
                let now = gate.inside.fetch_add(1, Ordering::SeqCst) + 1;
                gate.most.fetch_max(now, Ordering::SeqCst);
                gate.open.notified().await;
                gate.inside.fetch_sub(1, Ordering::SeqCst);
                if stream.write_all(OK).await.is_err() {
                    return;
                }
            }
        }
    })
    .await
}

/// A sidecar that runs in the test.
pub struct Running {
    /// Where it listens.
    pub address: SocketAddr,
    /// Stops it.
    pub shutdown: Shutdown,
    /// Its stats.
    pub stats: StatSource,
    /// Resolves when it has ended.
    pub ended: tokio::task::JoinHandle<()>,
}

/// Settings of a sidecar in front of `app`, with long limits.
pub fn sidecar_config(app: SocketAddr, limit: u32) -> Config {
    let mut config = Config::new("pod-1", RevisionId::new("default", "rev"), app, Trust::loopback());
    config.limit_to(limit);
    config.timeouts = long_timeouts();
    config
}

/// Limits that no test reaches by accident.
pub fn long_timeouts() -> Timeouts {
    Timeouts { total: Duration::from_secs(30), response_start: None, idle: None, upgrade: None }
}

/// Starts a sidecar on a free port.
pub async fn sidecar(config: Config) -> Running {
    sidecar_by(config, Http1::Own).await
}

/// The same, with the HTTP/1 that it speaks.
pub async fn sidecar_by(config: Config, http1: Http1) -> Running {
    let serving = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = serving.local_addr().expect("an address");
    let shutdown = Shutdown::new();
    let (sink, stats) = stats::link();
    let worker = Worker::with(&shutdown, Budget::unlimited(), http1);
    let links = Links { stats: Some(sink), observer: Observer::off(), worker };
    let ended = tokio::spawn(queue_proxy::run(config, Sockets::serving(serving), links, shutdown.clone()));
    Running { address, shutdown, stats, ended }
}

/// Connects and sends bytes.
pub async fn send(address: SocketAddr, request: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.expect("a connection");
    stream.write_all(request.as_bytes()).await.expect("the request is sent");
    stream
}

/// Reads until `end` has come, or the connection has ended; what came.
pub async fn read_until(stream: &mut TcpStream, end: &str) -> String {
    read_while(stream, |seen| !seen.contains(end)).await.0
}

/// Reads until the connection ends; what came, and whether it ended.
pub async fn read_to_end(stream: &mut TcpStream) -> (String, bool) {
    read_while(stream, |_| true).await
}

async fn read_while(stream: &mut TcpStream, more: impl Fn(&str) -> bool) -> (String, bool) {
    let mut seen = Vec::new();
    let reading = async {
        let mut chunk = [0; 4096];
        while more(&text(&seen)) {
            match stream.read(&mut chunk).await {
                Ok(0) | Err(_) => return,
                Ok(n) => seen.extend_from_slice(&chunk[..n]),
            }
        }
    };
    let ended = timeout(PATIENCE, reading).await.is_ok();
    (text(&seen), ended)
}

/// With field names in small letters: case says nothing in them.
fn text(seen: &[u8]) -> String {
    let seen = String::from_utf8_lossy(seen);
    let small = |line: &str| match line.split_once(": ") {
        Some((name, value)) if !name.contains(' ') => format!("{}: {value}", name.to_ascii_lowercase()),
        _ => line.to_owned(),
    };
    seen.split_inclusive('\n').map(small).collect()
}

/// Reads a head, byte by byte, and nothing beyond it.
pub async fn read_head(stream: &mut TcpStream) -> String {
    let mut seen = Vec::new();
    let mut byte = [0; 1];
    while !seen.ends_with(b"\r\n\r\n") {
        if stream.read(&mut byte).await.unwrap_or(0) == 0 {
            break;
        }
        seen.push(byte[0]);
    }
    text(&seen)
}

/// How late this machine's timers have been at worst since this was first
/// asked: what no program can be blamed for.
pub fn lateness() -> Duration {
    static WORST_US: LazyLock<Arc<AtomicU64>> = LazyLock::new(|| {
        let worst = Arc::new(AtomicU64::new(0));
        let seen = worst.clone();
        std::thread::spawn(move || {
            const STEP: Duration = Duration::from_millis(2);
            loop {
                let began = std::time::Instant::now();
                std::thread::sleep(STEP);
                let late = began.elapsed().saturating_sub(STEP).as_micros();
                seen.fetch_max(u64::try_from(late).unwrap_or(u64::MAX), Ordering::Relaxed);
            }
        });
        worst
    });
    Duration::from_micros(WORST_US.load(Ordering::Relaxed))
}

/// Waits until a condition holds.
pub async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < PATIENCE, "{what}");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}
