//! Connections in: HTTP/1 and HTTP/2 by preface on a listener that is given,
//! with limits, and an end that loses nothing.

use crate::body::Body;
use crate::conn::{Activity, Busy, Caller};
use crate::fds::Room;
use crate::h1::{self, Conditions, End, Upgraded};
use crate::incoming::Incoming;
use crate::shutdown::Shutdown;
use crate::socket::Socket;
use crate::tls::Acceptor;
use crate::wheel::Sleep;
use crate::worker::{Worker, Workers};
use http::{Request, Response};
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::Instant;

/// Where connections come in.
pub struct Port {
    listener: TcpListener,
    tls: Option<Acceptor>,
}

impl Port {
    /// All of its connections are under TLS.
    pub fn with_tls(listener: TcpListener, acceptor: Acceptor) -> Port {
        Port { listener, tls: Some(acceptor) }
    }
}

impl From<TcpListener> for Port {
    fn from(listener: TcpListener) -> Port {
        Port { listener, tls: None }
    }
}

/// Limits of a listener's connections.
#[derive(Clone)]
pub struct Settings {
    /// The head of a request must be complete this long after it began.
    pub head_timeout: Duration,
    /// Largest head, in bytes; beyond: 431.
    pub head_bytes_max: usize,
    /// Streams at a time on one HTTP/2 connection.
    pub h2_streams_max: u32,
    /// An HTTP/1 connection goes on after an answer that ended before its
    /// request had come in full; see [`h1::Settings`].
    pub reuse_after_early_answer: bool,
}

impl Default for Settings {
    /// The reference's: 60 s, 1 MiB, 250 streams.
    fn default() -> Settings {
        let h1::Settings { head_timeout, head_bytes_max, reuse_after_early_answer } = h1::Settings::default();
        Settings { head_timeout, head_bytes_max, h2_streams_max: 250, reuse_after_early_answer }
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
pub async fn serve<H, F>(port: impl Into<Port>, workers: Workers, settings: Settings, shutdown: Shutdown, handler: H)
where
    H: Fn(Arc<Caller>, Request<Incoming>) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Response<Body>> + Send + 'static,
{
    let Port { listener, tls } = port.into();
    let served = Arc::new(Served { tls, settings, shutdown, handler });
    let shutdown = &served.shutdown;
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
            Ok((stream, peer)) => {
                hand_over(stream, peer, &workers, &served);
            }
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

/// What the connections of a port have in common.
struct Served<H> {
    tls: Option<Acceptor>,
    settings: Settings,
    shutdown: Shutdown,
    handler: H,
}

fn hand_over<H, F>(stream: TcpStream, peer: SocketAddr, workers: &Workers, served: &Arc<Served<H>>)
where
    H: Fn(Arc<Caller>, Request<Incoming>) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Response<Body>> + Send + 'static,
{
    let worker = workers.least_busy();
    let Ok(stream) = worker.adopt(stream) else { return };
    let _ = stream.set_nodelay(true);
    let fds_scarce = worker.fds().room() != Room::Free;
    let (local, tls) = (stream.local_addr().ok(), served.tls.is_some());
    let caller = Arc::new(Caller { peer, worker: worker.clone(), fds_scarce, tls, local });
    worker.spawn(served.shutdown.track(connection(stream, caller, served.clone())));
}

/// Serves one connection. Not an `async` function: that has room for what it
/// is given twice, and there are many connections.
fn connection<H, F>(stream: TcpStream, caller: Arc<Caller>, port: Arc<Served<H>>) -> impl Future<Output = ()> + Send
where
    H: Fn(Arc<Caller>, Request<Incoming>) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Response<Body>> + Send + 'static,
{
    let fd = caller.worker.fds().take(1);
    async move {
        let _fd = fd;
        let (worker, peer) = (&caller.worker, caller.peer);
        let _count = worker.count_connection();
        let Served { tls, settings, shutdown, handler } = &*port;
        let activity = Activity::default();
        let answer = |request: Request<Incoming>| Answering {
            answer: Box::pin(handler(caller.clone(), request)),
            busy: Some(activity.begin()),
        };
        // Looked for below, each time before what is served is polled.
        let drained = AtomicBool::new(false);
        let drain = std::future::poll_fn(|_| match drained.load(Ordering::Relaxed) {
            true => Poll::Ready(()),
            false => Poll::Pending,
        });
        let served = async {
            let socket = match tls {
                None => Socket::Plain(stream),
                Some(acceptor) => match Box::pin(acceptor.accept(stream, worker.wheel())).await {
                    Ok(stream) => Socket::Tls(Box::new(stream)),
                    Err(error) => return tracing::debug!(%peer, %error, "a TLS handshake failed"),
                },
            };
            let conditions = Conditions {
                settings: h1::Settings {
                    head_timeout: settings.head_timeout,
                    head_bytes_max: settings.head_bytes_max,
                    reuse_after_early_answer: settings.reuse_after_early_answer,
                },
                wheel: worker.wheel().clone(),
                gone: |doubt| caller.guess(doubt),
            };
            let http1 = |request: Request<h1::Incoming>| answer(request.map(Incoming::Http1));
            if let End::Http2(socket) = h1::serve(socket, conditions, drain, http1).await {
                Box::pin(serve_http2(socket, settings, shutdown, peer, answer)).await;
            }
        };
        let mut served = pin!(served);
        // The second stage never comes before the first.
        let mut stages = pin!(async {
            shutdown.draining().await;
            drained.store(true, Ordering::Relaxed);
            shutdown.stopping().await;
        });
        let mut closing: Option<LastCall> = None;
        std::future::poll_fn(|cx| {
            if stages.as_mut().poll(cx).is_ready() {
                return Poll::Ready(());
            }
            if closing.is_none() && drained.load(Ordering::Relaxed) {
                closing = Some(LastCall::new(worker));
            }
            if served.as_mut().poll(cx).is_ready() {
                return Poll::Ready(());
            }
            match &mut closing {
                Some(last_call) => last_call.poll_over(&activity, cx),
                None => Poll::Pending,
            }
        })
        .await;
    }
}

/// A handler at work. In a box: what serves a request is moved about, and a
/// wrapper in the form of an `async` block would take its room twice.
struct Answering<F> {
    answer: Pin<Box<F>>,
    busy: Option<Busy>,
}

impl<F: Future<Output = Response<Body>>> Future for Answering<F> {
    type Output = Response<Body>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Response<Body>> {
        let response = std::task::ready!(self.answer.as_mut().poll(cx));
        Poll::Ready(match self.busy.take() {
            Some(busy) => response.map(|body| body.keeping(busy)),
            None => response,
        })
    }
}

/// The same, as a service that cannot fail.
struct AnsweringHttp2<F>(Answering<F>);

impl<F: Future<Output = Response<Body>>> Future for AnsweringHttp2<F> {
    type Output = Result<Response<Body>, Infallible>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(cx).map(Ok)
    }
}

async fn serve_http2<A, F>(socket: Upgraded, settings: &Settings, shutdown: &Shutdown, peer: SocketAddr, answer: A)
where
    A: Fn(Request<Incoming>) -> Answering<F>,
    F: Future<Output = Response<Body>> + Send + 'static,
{
    let service = service_fn(|request: Request<hyper::body::Incoming>| {
        let answer = answer(request.map(Incoming::Http2));
        AnsweringHttp2(answer)
    });
    let mut builder = http2::Builder::new(TokioExecutor::new());
    builder
        .max_concurrent_streams(settings.h2_streams_max)
        .initial_stream_window_size(H2_WINDOW_BYTES)
        .initial_connection_window_size(H2_WINDOW_BYTES)
        .max_header_list_size(u32::try_from(settings.head_bytes_max).unwrap_or(u32::MAX));
    let mut served = pin!(builder.serve_connection(TokioIo::new(socket), service));
    let ended = tokio::select! {
        ended = &mut served => ended,
        () = shutdown.draining() => {
            served.as_mut().graceful_shutdown();
            served.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%peer, %error, "a connection ended with an error");
    }
}

/// After the close has begun: ends a connection on which nothing happens and
/// whose peer does not close it either, such as one with half a head, or one
/// whose other end is no more.
struct LastCall(Sleep);

impl LastCall {
    fn new(worker: &Worker) -> LastCall {
        LastCall(worker.wheel().sleep(SILENT_MAX))
    }

    fn poll_over(&mut self, activity: &Activity, cx: &mut Context<'_>) -> Poll<()> {
        if activity.is_busy() {
            // Its last answer may take a while to get out.
            self.0.reset(Instant::now() + LAST_ANSWER_MAX);
            return Poll::Pending;
        }
        Pin::new(&mut self.0).poll(cx)
    }
}
