//! Stats over gRPC: `zeroscale.v1.Stats`, from activators (`Report`, a stream)
//! and sidecars (`Push`, one by one). tonic does the messages, the
//! connections are ours, since they are bounded.
//!
//! | job | module |
//! | --- | --- |
//! | the two calls | `calls` |
//! | from bytes to stats | `codec` |
//! | what a stream reports again and again | `rows` |
//! | names, kept once | `names` |
//! | where stats go | [`Intake`] |

mod calls;
mod codec;
mod intake;
pub(crate) mod names;
pub(crate) mod rows;

use crate::rate::Rate;
use calls::Caller;
pub use intake::Intake;

use http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use metrics::{Counter, Gauge, counter, gauge};
use names::Names;
use plumbing::shutdown::Shutdown;
use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};

/// Calls at a time on one connection.
const CALLS_MAX: u32 = 64;
/// Largest head of a call, in bytes.
const HEAD_BYTES_MAX: u32 = 16 << 10;
/// How often a silent connection is asked for a sign of life, and how long
/// that may take.
const KEEP_ALIVE: Duration = Duration::from_secs(10);
/// How long a connection may take to begin with HTTP/2, and to end after the
/// close has begun.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long to wait before accepting again when that failed.
const ACCEPT_PAUSE: Duration = Duration::from_millis(20);

/// Messages that were taken, by call.
pub(crate) const MESSAGES: &str = "zeroscale_autoscaler_stat_messages_total";
/// Messages and connections that were not, by bound.
pub(crate) const REFUSED: &str = "zeroscale_autoscaler_stat_refusals_total";
/// Connections of reporters.
pub(crate) const CONNECTIONS: &str = "zeroscale_autoscaler_stat_connections";
/// `Report` streams.
pub(crate) const STREAMS: &str = "zeroscale_autoscaler_stat_streams";

/// Bounds of what reporters may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Connections; further ones are closed at once.
    pub connections: usize,
    /// `Report` streams of all connections; further ones are refused.
    pub streams: usize,
    /// Bytes of one message.
    pub message_bytes: usize,
    /// Messages a second on one connection, and as many at once.
    pub rate: u32,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { connections: 1000, streams: 200, message_bytes: 1 << 20, rate: 5000 }
    }
}

/// What all connections share.
struct Shared {
    intake: Intake,
    limits: Limits,
    connections: AtomicUsize,
    streams: AtomicUsize,
    gauges: Gauges,
    names: Names,
}

struct Gauges {
    pushed: Counter,
    reported: Counter,
    connections: Gauge,
    streams: Gauge,
}

/// Counts a refusal.
pub(crate) fn refused(bound: &'static str) {
    counter!(REFUSED, "bound" => bound).increment(1);
}

/// Takes stats until `shutdown` drains, then closes the listener and says
/// goodbye to who is connected. Connections are tracked by `shutdown`, and
/// dropped at its second stage.
pub async fn serve(listener: TcpListener, into: impl Into<Intake>, limits: Limits, shutdown: Shutdown) {
    let gauges = Gauges {
        pushed: counter!(MESSAGES, "call" => "push"),
        reported: counter!(MESSAGES, "call" => "report"),
        connections: gauge!(CONNECTIONS),
        streams: gauge!(STREAMS),
    };
    let (connections, streams) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let shared =
        Arc::new(Shared { intake: into.into(), limits, connections, streams, gauges, names: Names::default() });
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = shutdown.draining() => return,
        };
        match accepted {
            Ok((stream, _)) => match Place::take(&shared, Kind::Connection) {
                Some(place) => shutdown.spawn(connection(stream, place, shutdown.clone())),
                None => refused("connections"),
            },
            Err(error) => {
                tracing::debug!(%error, "accepting a reporter's connection failed");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

async fn connection(stream: TcpStream, place: Place, shutdown: Shutdown) {
    let _ = stream.set_nodelay(true);
    let shared = place.shared.clone();
    let rate = Arc::new(Rate::new(shared.limits.rate));
    let service = service_fn(|request: Request<Incoming>| {
        let caller = Caller { shared: shared.clone(), rate: rate.clone(), shutdown: shutdown.clone() };
        async move { Ok::<_, Infallible>(caller.answer(request).await) }
    });
    let mut builder = http2::Builder::new(TokioExecutor::new());
    builder
        .timer(TokioTimer::new())
        .keep_alive_interval(KEEP_ALIVE)
        .keep_alive_timeout(PATIENCE)
        .max_concurrent_streams(CALLS_MAX)
        .max_header_list_size(HEAD_BYTES_MAX);
    let mut served = pin!(builder.serve_connection(TokioIo::new(stream), service));
    let ended = tokio::select! {
        ended = &mut served => ended,
        () = shutdown.draining() => {
            served.as_mut().graceful_shutdown();
            tokio::select! {
                ended = tokio::time::timeout(PATIENCE, served) => ended.unwrap_or(Ok(())),
                () = shutdown.stopping() => Ok(()),
            }
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a reporter's connection ended with an error");
    }
}

/// What is counted against a bound.
#[derive(Clone, Copy)]
enum Kind {
    Connection,
    Stream,
}

/// A place among so many; given up when it is dropped.
struct Place {
    shared: Arc<Shared>,
    kind: Kind,
}

impl Place {
    fn take(shared: &Arc<Shared>, kind: Kind) -> Option<Place> {
        let (count, most, gauge) = kind.of(shared);
        let before = count.fetch_add(1, Ordering::Relaxed);
        gauge.increment(1.0);
        // On refusal the place itself takes the count back.
        let place = Place { shared: shared.clone(), kind };
        (before < most).then_some(place)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let (count, _, gauge) = self.kind.of(&self.shared);
        count.fetch_sub(1, Ordering::Relaxed);
        gauge.decrement(1.0);
    }
}

impl Kind {
    fn of(self, shared: &Shared) -> (&AtomicUsize, usize, &Gauge) {
        match self {
            Kind::Connection => (&shared.connections, shared.limits.connections, &shared.gauges.connections),
            Kind::Stream => (&shared.streams, shared.limits.streams, &shared.gauges.streams),
        }
    }
}
