//! Connections in: HTTP/1 and HTTP/2 by preface on a listener that is given,
//! with limits, and an end that loses nothing.

#[cfg(feature = "hyper-http1")]
mod by_hyper;

use crate::body::Body;
use crate::conn::{Activity, Busy, Caller};
use crate::fds::Room;
use crate::h1::{self, Answered, Conditions, End, Plain, Rules, Upgraded};
use crate::http2;
use crate::incoming::Incoming;
use crate::shutdown::Shutdown;
use crate::socket::Socket;
use crate::tls::Acceptor;
use crate::wheel::Sleep;
use crate::worker::{Worker, Workers};
use http::{Request, Response};
use std::future::Future;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker};
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

/// How long to wait when descriptors have run out, before looking again.
const FULL_PAUSE: Duration = Duration::from_millis(20);

/// How long a connection with no request may outlast the close.
const SILENT_MAX: Duration = Duration::from_millis(500);

/// How long one may outlast its last answer.
const LAST_ANSWER_MAX: Duration = Duration::from_secs(5);

/// Whoever answers requests.
pub trait Service: Clone + Send + Sync + 'static {
    /// Answers a request.
    fn whole(
        &self,
        caller: Arc<Caller>,
        request: Request<Incoming>,
    ) -> impl Future<Output = Response<Body>> + Send + 'static + use<Self>;

    /// What plain requests of a caller are made ready by; `None`: they go the
    /// whole way like all others.
    fn rules(&self, caller: &Caller) -> Option<Rules> {
        let _ = caller;
        None
    }

    /// Answers a plain one; `None` where there are no rules for them.
    fn plain(
        &self,
        caller: Arc<Caller>,
        request: Plain,
    ) -> impl Future<Output = Option<Answered<Body>>> + Send + 'static + use<Self> {
        let _ = (caller, request);
        std::future::ready(None)
    }
}

impl<H, F> Service for H
where
    H: Fn(Arc<Caller>, Request<Incoming>) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Response<Body>> + Send + 'static,
{
    fn whole(
        &self,
        caller: Arc<Caller>,
        request: Request<Incoming>,
    ) -> impl Future<Output = Response<Body>> + Send + 'static + use<H, F> {
        self(caller, request)
    }
}

/// Serves connections until `shutdown` drains, then closes the listener. Ends
/// there: connections are tracked by `shutdown`, finish what they have begun,
/// and are dropped at its second stage.
pub async fn serve<S: Service>(
    port: impl Into<Port>,
    workers: Workers,
    settings: Settings,
    shutdown: Shutdown,
    service: S,
) {
    let Port { listener, tls } = port.into();
    let served = Arc::new(Served { tls, settings, shutdown, service });
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
struct Served<S> {
    tls: Option<Acceptor>,
    settings: Settings,
    shutdown: Shutdown,
    service: S,
}

fn hand_over<S: Service>(stream: TcpStream, peer: SocketAddr, workers: &Workers, served: &Arc<Served<S>>) {
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
fn connection<S: Service>(
    stream: TcpStream,
    caller: Arc<Caller>,
    port: Arc<Served<S>>,
) -> impl Future<Output = ()> + Send {
    let fd = caller.worker.fds().take(1);
    async move {
        let _fd = fd;
        let (worker, peer) = (&caller.worker, caller.peer);
        let _count = worker.count_connection();
        let Served { tls, settings, shutdown, service } = &*port;
        let activity = Activity::default();
        let requests = Requests { service, caller: &caller, activity: &activity };
        let answer = |request| requests.answer(request);
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
            #[cfg(feature = "hyper-http1")]
            if worker.http1() == crate::http1::Http1::Hyper {
                let http1 = by_hyper::serve(socket, settings, worker.wheel(), shutdown, peer, &answer);
                if let Some(socket) = Box::pin(http1).await {
                    Box::pin(serve_http2(socket, settings, shutdown, peer, &answer)).await;
                }
                return;
            }
            let conditions = Conditions {
                settings: h1::Settings {
                    head_timeout: settings.head_timeout,
                    head_bytes_max: settings.head_bytes_max,
                    reuse_after_early_answer: settings.reuse_after_early_answer,
                },
                wheel: worker.wheel().clone(),
                gone: |doubt| caller.guess(doubt),
                plain: service.rules(&caller),
            };
            if let End::Http2(socket) = h1::serve(socket, conditions, drain, &requests).await {
                Box::pin(serve_http2(socket, settings, shutdown, peer, &answer)).await;
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
        // Whoever waits for a stage stands in a list with a lock: it is touched
        // again only when there is news, or another waker.
        let mut asked_by: Option<Waker> = None;
        std::future::poll_fn(|cx| {
            let asked = asked_by.as_ref().is_some_and(|waker| waker.will_wake(cx.waker()));
            if !asked || shutdown.is_draining() {
                asked_by = Some(cx.waker().clone());
                if stages.as_mut().poll(cx).is_ready() {
                    return Poll::Ready(());
                }
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

/// The requests of one connection.
struct Requests<'c, S> {
    service: &'c S,
    caller: &'c Arc<Caller>,
    activity: &'c Activity,
}

impl<S: Service> Requests<'_, S> {
    fn answer(
        &self,
        request: Request<Incoming>,
    ) -> Answering<impl Future<Output = Response<Body>> + Send + 'static + use<S>> {
        let answer = Box::pin(self.service.whole(self.caller.clone(), request));
        Answering { answer, busy: Some(self.activity.begin()) }
    }
}

impl<S: Service> h1::Handler<Body> for &Requests<'_, S> {
    fn whole(&self, request: Request<h1::Incoming>) -> impl Future<Output = Response<Body>> {
        self.answer(request.map(Incoming::Http1))
    }

    async fn plain(&self, request: Plain) -> Option<Answered<Body>> {
        let busy = self.activity.begin();
        Some(match self.service.plain(self.caller.clone(), request).await? {
            Answered::Relay(mut relay) => {
                relay.keep(busy);
                Answered::Relay(relay)
            }
            Answered::Whole(response) => Answered::Whole(response.map(|body| body.keeping(busy))),
        })
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

/// The same, as a service of hyper's that cannot fail.
#[cfg(feature = "hyper-http1")]
struct AnsweringHyper<F>(Answering<F>);

#[cfg(feature = "hyper-http1")]
impl<F: Future<Output = Response<Body>>> Future for AnsweringHyper<F> {
    type Output = Result<Response<Body>, std::convert::Infallible>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(cx).map(Ok)
    }
}

async fn serve_http2<A, F>(socket: Upgraded, settings: &Settings, shutdown: &Shutdown, peer: SocketAddr, answer: A)
where
    A: Fn(Request<Incoming>) -> Answering<F>,
    F: Future<Output = Response<Body>> + Send + 'static,
{
    let limits = http2::Limits { streams_max: settings.h2_streams_max, head_bytes_max: settings.head_bytes_max };
    let http2 = |request: Request<http2::Incoming>| answer(request.map(Incoming::Http2));
    if let Err(error) = http2::serve(socket, limits, shutdown.draining(), http2).await {
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
