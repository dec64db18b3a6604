//! Connections in: HTTP/1 and HTTP/2 by preface on a listener that is given,
//! with limits, and an end that loses nothing.

use crate::body::Body;
use crate::conn::{Caller, Link, Socket};
use crate::fds::Room;
use crate::shutdown::Shutdown;
use crate::wheel::Sleep;
use crate::worker::{Worker, Workers};
use http::{Request, Response, Version};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::Instant;

/// Limits of a listener's connections.
#[derive(Clone)]
pub struct Settings {
    /// The head of a request must be complete this long after it began.
    pub head_timeout: Duration,
    /// Largest head, in bytes; beyond: 431.
    pub head_bytes_max: usize,
    /// Streams at a time on one HTTP/2 connection.
    pub h2_streams_max: u32,
}

impl Default for Settings {
    /// The reference's: 60 s, 1 MiB, 250 streams.
    fn default() -> Settings {
        Settings { head_timeout: Duration::from_secs(60), head_bytes_max: 1 << 20, h2_streams_max: 250 }
    }
}

/// Flow-control windows, as the reference announces them.
const H2_WINDOW_BYTES: u32 = 1 << 20;

/// How long to wait when descriptors have run out, before looking again.
const FULL_PAUSE: Duration = Duration::from_millis(20);

/// How long a connection with no request may outlast the close.
const SILENT_MAX: Duration = Duration::from_millis(500);

/// How long one may outlast its last answer.
const LAST_ANSWER_MAX: Duration = Duration::from_secs(5);

/// Serves connections until `shutdown` drains, then closes the listener. Ends
/// there: connections are tracked by `shutdown`, finish what they have begun,
/// and are dropped at its second stage.
pub async fn serve<H, F>(listener: TcpListener, workers: Workers, settings: Settings, shutdown: Shutdown, handler: H)
where
    H: Fn(Arc<Caller>, Request<Incoming>) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Response<Body>> + Send + 'static,
{
    loop {
        if workers.fds().room() == Room::Full {
            tokio::select! {
                () = tokio::time::sleep(FULL_PAUSE) => continue,
                () = shutdown.draining() => return,
            }
        }
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = shutdown.draining() => return,
        };
        match accepted {
            Ok((stream, peer)) => hand_over(stream, peer, &workers, &settings, &shutdown, handler.clone()),
            Err(error) if is_of_one_connection(&error) => {}
            Err(error) => {
                tracing::warn!(%error, "accepting a connection failed");
                tokio::time::sleep(FULL_PAUSE).await;
            }
        }
    }
}

/// Faults of the connection that was to be accepted, not of the listener.
fn is_of_one_connection(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}

fn hand_over<H, F>(
    stream: TcpStream,
    peer: SocketAddr,
    workers: &Workers,
    settings: &Settings,
    shutdown: &Shutdown,
    handler: H,
) where
    H: Fn(Arc<Caller>, Request<Incoming>) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Response<Body>> + Send + 'static,
{
    let worker = workers.least_busy().clone();
    let (settings, shutdown) = (settings.clone(), shutdown.clone());
    let tracked = shutdown.clone();
    if worker.is_here() {
        worker.clone().spawn(tracked.track(connection(stream, peer, worker, settings, shutdown, handler)));
        return;
    }
    // A socket belongs to the thread whose runtime it is registered with.
    let Ok(stream) = stream.into_std() else { return };
    worker.clone().spawn(tracked.track(async move {
        if let Ok(stream) = TcpStream::from_std(stream) {
            connection(stream, peer, worker, settings, shutdown, handler).await;
        }
    }));
}

async fn connection<H, F>(
    stream: TcpStream,
    peer: SocketAddr,
    worker: Worker,
    settings: Settings,
    shutdown: Shutdown,
    handler: H,
) where
    H: Fn(Arc<Caller>, Request<Incoming>) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Response<Body>> + Send + 'static,
{
    let _fd = worker.fds().take(1);
    let _count = worker.count_connection();
    let _ = stream.set_nodelay(true);
    let link = Link::new(stream);
    let fds_scarce = worker.fds().room() != Room::Free;
    let caller = Arc::new(Caller { peer, worker: worker.clone(), fds_scarce, link: link.clone() });
    let service = service_fn(|request: Request<Incoming>| {
        if request.version() == Version::HTTP_2 {
            link.http2.store(true, Ordering::Relaxed);
        }
        let busy = link.begin_request();
        let answer = handler(caller.clone(), request);
        async move { Ok::<_, Infallible>(answer.await.map(|body| body.keeping(busy))) }
    });
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http1().max_buf_size(settings.head_bytes_max).header_read_timeout(None);
    builder
        .http2()
        .max_concurrent_streams(settings.h2_streams_max)
        .initial_stream_window_size(H2_WINDOW_BYTES)
        .initial_connection_window_size(H2_WINDOW_BYTES)
        .max_header_list_size(u32::try_from(settings.head_bytes_max).unwrap_or(u32::MAX));
    let mut served = pin!(builder.serve_connection_with_upgrades(TokioIo::new(Socket(link.clone())), service));
    let mut head_timer: Option<Sleep> = None;
    let mut draining = pin!(shutdown.draining());
    let mut stopping = pin!(shutdown.stopping());
    let mut closing: Option<LastCall> = None;
    std::future::poll_fn(|cx| {
        if stopping.as_mut().poll(cx).is_ready() {
            return Poll::Ready(());
        }
        if closing.is_none() && draining.as_mut().poll(cx).is_ready() {
            closing = Some(LastCall::new(&worker));
            served.as_mut().graceful_shutdown();
        }
        if let Poll::Ready(result) = served.as_mut().poll(cx) {
            if let Err(error) = result {
                tracing::debug!(%peer, error = %error, "a connection ended with an error");
            }
            return Poll::Ready(());
        }
        if let Some(last_call) = &mut closing
            && last_call.poll_over(&link, cx).is_ready()
        {
            return Poll::Ready(());
        }
        let Some(since) = link.head_since() else {
            head_timer = None;
            return Poll::Pending;
        };
        let timer = head_timer.get_or_insert_with(|| worker.wheel().sleep_until(since + settings.head_timeout));
        Pin::new(timer).poll(cx)
    })
    .await;
}

/// After the close has begun: ends a connection on which nothing happens and
/// whose peer does not close it either, such as one with half a head, or one
/// whose other end is no more.
struct LastCall(Sleep);

impl LastCall {
    fn new(worker: &Worker) -> LastCall {
        LastCall(worker.wheel().sleep(SILENT_MAX))
    }

    fn poll_over(&mut self, link: &Link, cx: &mut Context<'_>) -> Poll<()> {
        if link.is_busy() {
            // Its last answer may take a while to get out.
            self.0.reset(Instant::now() + LAST_ANSWER_MAX);
            return Poll::Pending;
        }
        Pin::new(&mut self.0).poll(cx)
    }
}
