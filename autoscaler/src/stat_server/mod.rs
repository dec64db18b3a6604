//! The reference's stat server: websockets on which activators, and other
//! replicas, tell their stats (autoscaler reference, section 10).
//!
//! | job | module |
//! | --- | --- |
//! | what a request is: probe, for somebody else, a websocket | `request` |
//! | one websocket, to its end | `connection` |
//!
//! Beyond the reference everything is bounded: connections, the length of a
//! message, messages a second, and how long a connection may be silent.

mod connection;
mod request;

use crate::forward::Owners;
use crate::ingest::refused;
use connection::Connection;
use http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use metrics::{Counter, Gauge, counter, gauge};
use plumbing::shutdown::Shutdown;
use plumbing::stats::StatSink;
use policy::compat::Compat;
use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// The head of a request must be complete this long after it began (the
/// reference's).
const HEAD_TIMEOUT: Duration = Duration::from_secs(60);
/// Largest head, in bytes.
const HEAD_BYTES_MAX: usize = 16 << 10;
/// How long to wait before accepting again when that failed.
const ACCEPT_PAUSE: Duration = Duration::from_millis(20);

/// Connections that are open, websockets or not yet.
pub(crate) const CONNECTIONS: &str = "zeroscale_autoscaler_websockets";

/// Bounds of what senders may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Connections; further ones are closed at once.
    pub connections: usize,
    /// Bytes of one message; a longer one ends its connection with code 1009.
    /// An activator of the reference tells of all its revisions in one: this
    /// is room for 150,000.
    pub message_bytes: usize,
    /// Bytes of messages that are not whole yet, of all connections together;
    /// whoever goes beyond is closed with code 1013.
    pub bytes: usize,
    /// Messages a second on one connection, and as many at once; beyond, it is
    /// read more slowly.
    pub rate: u32,
    /// A connection on which nothing has come for so long is closed; senders
    /// ping every 3 s.
    pub silence: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            connections: 1000,
            message_bytes: 16 << 20,
            bytes: 256 << 20,
            rate: 5000,
            silence: Duration::from_secs(60),
        }
    }
}

/// What is served, and for whom.
#[derive(Clone)]
pub struct Settings {
    /// The bounds.
    pub limits: Limits,
    /// Strict: a stat from the future is recorded where it says.
    pub compat: Compat,
    /// Who owns which bucket: requests for the bucket of another replica are
    /// not switched.
    pub owners: watch::Receiver<Arc<Owners>>,
}

/// Where stats go.
#[derive(Clone)]
pub struct Sinks {
    /// Of activators, and of other replicas that are not ours.
    pub direct: StatSink,
    /// Of replicas of ours; the same where there are none.
    pub forwarded: StatSink,
}

/// What all connections share.
struct Shared {
    settings: Settings,
    sinks: Sinks,
    shutdown: Shutdown,
    open: AtomicUsize,
    /// See [`Limits::bytes`].
    bytes: AtomicUsize,
    gauge: Gauge,
    messages: Counter,
}

/// A place among the connections; given up when it is dropped.
struct Place(Arc<Shared>);

impl Place {
    fn take(shared: &Arc<Shared>) -> Option<Place> {
        let before = shared.open.fetch_add(1, Ordering::Relaxed);
        shared.gauge.increment(1.0);
        // On refusal the place itself takes the count back.
        let place = Place(shared.clone());
        (before < shared.settings.limits.connections).then_some(place)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::Relaxed);
        self.0.gauge.decrement(1.0);
    }
}

/// Serves until `shutdown` drains, then closes the listener, and tells every
/// client to come back. Connections are tracked by `shutdown`.
pub async fn serve(listener: TcpListener, sinks: Sinks, settings: Settings, shutdown: Shutdown) {
    let messages = counter!(crate::ingest::MESSAGES, "call" => "websocket");
    let shared = Arc::new(Shared {
        settings,
        sinks,
        shutdown: shutdown.clone(),
        open: AtomicUsize::new(0),
        bytes: AtomicUsize::new(0),
        gauge: gauge!(CONNECTIONS),
        messages,
    });
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = shutdown.draining() => return,
        };
        match accepted {
            Ok((stream, _)) => match Place::take(&shared) {
                Some(place) => shutdown.spawn(begin(stream, place)),
                None => refused("connections"),
            },
            Err(error) => {
                tracing::debug!(%error, "accepting a sender's connection failed");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// HTTP, until it is over or has become a websocket.
async fn begin(stream: TcpStream, place: Place) {
    let _ = stream.set_nodelay(true);
    let shared = place.0.clone();
    let place = Arc::new(place);
    let service = service_fn(|mut request: Request<Incoming>| {
        let answer = request::answer(&request, &shared.settings.owners.borrow());
        if let request::Answer::Switch(_) = answer {
            let switched = hyper::upgrade::on(&mut request);
            // Before the switch, so that the end waits for what comes of it.
            let forwarded = request.uri().path() == crate::forward::PATH;
            shared.shutdown.spawn(Connection::carry(switched, forwarded, place.clone()));
        }
        async move { Ok::<_, Infallible>(answer.into_response()) }
    });
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT).max_buf_size(HEAD_BYTES_MAX).half_close(false);
    let mut served = pin!(builder.serve_connection(TokioIo::new(stream), service).with_upgrades());
    tokio::select! {
        _ = &mut served => return,
        () = shared.shutdown.draining() => served.as_mut().graceful_shutdown(),
    }
    tokio::select! {
        _ = served => {}
        () = shared.shutdown.stopping() => {}
    }
}
