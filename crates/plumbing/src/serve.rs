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
                let arrived = Arrived { stream, peer, tls: tls.clone() };
                hand_over(arrived, &workers, &settings, &shutdown, service.clone());
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

/// A connection that was accepted.
struct Arrived {
    stream: TcpStream,
    peer: SocketAddr,
    tls: Option<Acceptor>,
}

fn hand_over<S: Service>(arrived: Arrived, workers: &Workers, settings: &Settings, shutdown: &Shutdown, service: S) {
    let worker = workers.least_busy().clone();
    let (settings, shutdown) = (settings.clone(), shutdown.clone());
    let tracked = shutdown.clone();
    if worker.is_here() {
        worker.clone().spawn(tracked.track(connection(arrived, worker, settings, shutdown, service)));
        return;
    }
    // A socket belongs to the thread whose runtime it is registered with.
    let Arrived { stream, peer, tls } = arrived;
    let Ok(stream) = stream.into_std() else { return };
    worker.clone().spawn(tracked.track(async move {
        if let Ok(stream) = TcpStream::from_std(stream) {
            connection(Arrived { stream, peer, tls }, worker, settings, shutdown, service).await;
        }
    }));
}

async fn connection<S: Service>(arrived: Arrived, worker: Worker, settings: Settings, shutdown: Shutdown, service: S) {
    let Arrived { stream, peer, tls } = arrived;
    let _fd = worker.fds().take(1);
    let _count = worker.count_connection();
    let _ = stream.set_nodelay(true);
    let activity = Activity::default();
    let fds_scarce = worker.fds().room() != Room::Free;
    let local = stream.local_addr().ok();
    let caller = Arc::new(Caller { peer, worker: worker.clone(), fds_scarce, tls: tls.is_some(), local });
    let plain = service.rules(&caller);
    let requests = Requests { service: &service, caller: &caller, activity: &activity };
    let answer = |request| requests.answer(request);
    let served = async {
        let drain = pin!(shutdown.draining());
        let drain = shutdown.draining_seldom(drain);
        let socket = match &tls {
            None => Socket::Plain(stream),
            Some(acceptor) => match Box::pin(acceptor.accept(stream, worker.wheel())).await {
                Ok(stream) => Socket::Tls(Box::new(stream)),
                Err(error) => return tracing::debug!(%peer, %error, "a TLS handshake failed"),
            },
        };
        #[cfg(feature = "hyper-http1")]
        if worker.http1() == crate::http1::Http1::Hyper {
            let http1 = by_hyper::serve(socket, &settings, worker.wheel(), &shutdown, peer, &answer);
            if let Some(socket) = Box::pin(http1).await {
                Box::pin(serve_http2(socket, &settings, &shutdown, peer, &answer)).await;
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
            plain,
        };
        if let End::Http2(socket) = h1::serve(socket, conditions, drain, &requests).await {
            Box::pin(serve_http2(socket, &settings, &shutdown, peer, &answer)).await;
        }
    };
    let mut served = pin!(served);
    let draining = pin!(shutdown.draining());
    let mut draining = shutdown.draining_seldom(draining);
    let mut stopping = pin!(shutdown.stopping());
    let mut closing: Option<LastCall> = None;
    std::future::poll_fn(|cx| {
        if closing.is_none() && Pin::new(&mut draining).poll(cx).is_ready() {
            closing = Some(LastCall::new(&worker));
        }
        // The second stage does not come before the first.
        if closing.is_some() && stopping.as_mut().poll(cx).is_ready() {
            return Poll::Ready(());
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
