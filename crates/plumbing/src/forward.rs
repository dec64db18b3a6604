//! Requests out: one request to one address, over connections that are kept.
//!
//! Each worker has its own pool: no lock that another core takes, no hop to
//! another thread. HTTP/1 connections lie on a stack, the one used last on
//! top, so that the rest grow old and are closed.

use crate::body::Body;
use crate::fds::Budget;
use crate::h1::Break;
use crate::reason::Reason;
use crate::wheel::Wheel;
use http::{Request, Response, Version};
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::Instant;

/// Longest wait for a connection to be made.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// An HTTP/1 connection that lay idle longer is closed, not used.
const IDLE_MAX: Duration = Duration::from_secs(90);
/// A request that cannot be sent twice only uses a connection that was in use
/// this recently: apps close idle ones after two seconds and more, and one
/// that closes at the very moment takes the request with it.
const IDLE_MAX_UNREPEATABLE: Duration = Duration::from_secs(1);
/// Idle HTTP/1 connections kept for one address.
const IDLE_CONNECTIONS_MAX: usize = 1000;
/// Streams put on one HTTP/2 connection before another is made: what servers
/// commonly allow at least.
const H2_STREAMS_PER_CONNECTION: usize = 100;
const H2_WINDOW_BYTES: u32 = 1 << 20;

/// Why a request was not answered.
pub enum SendError {
    /// Nothing was sent: it may go elsewhere, whatever it is.
    NotSent {
        /// The request, as it was.
        request: Box<Request<Body>>,
        /// What failed.
        error: String,
    },
    /// It was sent, or may have been.
    Broken {
        /// What failed.
        error: String,
        /// Where.
        at: Break,
    },
}

impl SendError {
    /// The reason that an answer of ours gives for it, and what failed, for
    /// the log.
    pub fn into_reason(self) -> (Reason, String) {
        match self {
            SendError::NotSent { error, .. } => (Reason::ConnectFailed, error),
            SendError::Broken { error, at: Break::RequestBody } => (Reason::Malformed, error),
            SendError::Broken { error, at: Break::BeforeAnswer } => (Reason::ResetBeforeAnswer, error),
            SendError::Broken { error, at: Break::Answer } => (Reason::BadAnswer, error),
        }
    }
}

/// The connections of one worker. Clones share it.
#[derive(Clone)]
pub struct Pool {
    shared: Arc<Shared>,
}

struct Shared {
    wheel: Wheel,
    fds: Budget,
    http1: Mutex<HashMap<SocketAddr, Vec<Idle>>>,
    http2: Mutex<HashMap<SocketAddr, Arc<tokio::sync::Mutex<Vec<Multiplexed>>>>>,
}

struct Idle {
    sender: http1::SendRequest<Body>,
    since: Instant,
}

struct Multiplexed {
    sender: http2::SendRequest<Body>,
    streams: Arc<AtomicUsize>,
}

/// What carries an answer: give it back at its end.
pub struct Checkin(Back);

enum Back {
    Http1 { pool: Pool, address: SocketAddr, sender: http1::SendRequest<Body> },
    Http2 { _stream: StreamCount },
}

struct StreamCount(Arc<AtomicUsize>);

impl Drop for StreamCount {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Checkin {
    /// The answer has been read to its end: the connection can be used again.
    pub fn put_back(self) {
        if let Back::Http1 { pool, address, sender } = self.0 {
            pool.put(address, sender);
        }
    }
}

/// An answer, and what carries it.
pub type Answer = (Response<Incoming>, Checkin);

impl Pool {
    /// Without connections. Those that are made count against `fds`.
    pub fn new(wheel: Wheel, fds: Budget) -> Pool {
        let (http1, http2) = (Mutex::default(), Mutex::default());
        Pool { shared: Arc::new(Shared { wheel, fds, http1, http2 }) }
    }

    /// Sends a request to `address`, in the version it came in: 2 as h2c, all
    /// else as HTTP/1.1. `repeatable`: sending it twice does no harm, and its
    /// body is empty.
    ///
    /// # Errors
    /// See [`SendError`]. A reused connection that turned out to be dead is
    /// not among them where another try is safe.
    pub async fn send(
        &self,
        address: SocketAddr,
        request: Request<Body>,
        repeatable: bool,
    ) -> Result<Answer, SendError> {
        if request.version() == Version::HTTP_2 {
            return self.send_http2(address, request).await;
        }
        self.send_http1(address, request, repeatable).await
    }

    async fn send_http1(
        &self,
        address: SocketAddr,
        mut request: Request<Body>,
        repeatable: bool,
    ) -> Result<Answer, SendError> {
        *request.version_mut() = Version::HTTP_11;
        let idle_max = if repeatable { IDLE_MAX } else { IDLE_MAX_UNREPEATABLE };
        while let Some(mut sender) = self.take(address, idle_max) {
            let copy = if repeatable { Some(copy_of_head(&request)) } else { None };
            match sender.try_send_request(request).await {
                Ok(response) => return Ok((response, self.http1_checkin(address, sender))),
                Err(mut failed) => match failed.take_message().or(copy) {
                    Some(unsent) => request = unsent,
                    None => return Err(broken(failed.error())),
                },
            }
        }
        let mut sender = match self.connect_http1(address).await {
            Ok(sender) => sender,
            Err(error) => return Err(SendError::NotSent { request: Box::new(request), error }),
        };
        match sender.try_send_request(request).await {
            Ok(response) => Ok((response, self.http1_checkin(address, sender))),
            Err(mut failed) => match failed.take_message() {
                Some(request) => {
                    Err(SendError::NotSent { request: Box::new(request), error: failed.error().to_string() })
                }
                None => Err(broken(failed.error())),
            },
        }
    }

    async fn connect_http1(&self, address: SocketAddr) -> Result<http1::SendRequest<Body>, String> {
        let stream = self.connect(address).await?;
        let (sender, driver) =
            http1::Builder::new().handshake(TokioIo::new(stream)).await.map_err(|error| error.to_string())?;
        let (pool, fd) = (self.clone(), self.shared.fds.take(1));
        tokio::spawn(async move {
            let _fd = fd;
            if let Err(error) = driver.with_upgrades().await {
                tracing::debug!(%address, %error, "a connection to a pod or app ended with an error");
            }
            pool.forget_closed(address);
        });
        Ok(sender)
    }

    async fn send_http2(&self, address: SocketAddr, request: Request<Body>) -> Result<Answer, SendError> {
        let (mut sender, stream) = match self.http2_sender(address).await {
            Ok(found) => found,
            Err(error) => return Err(SendError::NotSent { request: Box::new(request), error }),
        };
        match sender.try_send_request(request).await {
            Ok(response) => Ok((response, Checkin(Back::Http2 { _stream: stream }))),
            Err(mut failed) => match failed.take_message() {
                Some(request) => {
                    Err(SendError::NotSent { request: Box::new(request), error: failed.error().to_string() })
                }
                None => Err(broken(failed.error())),
            },
        }
    }

    async fn http2_sender(&self, address: SocketAddr) -> Result<(http2::SendRequest<Body>, StreamCount), String> {
        let entry = self.shared.http2.lock().entry(address).or_default().clone();
        // Held while connecting: requests that come together share the connection.
        let mut connections = entry.lock().await;
        connections.retain(|connection| !connection.sender.is_closed());
        let room = |connection: &&Multiplexed| connection.streams.load(Ordering::Relaxed) < H2_STREAMS_PER_CONNECTION;
        let found = connections.iter().find(room).map(|found| (found.sender.clone(), found.streams.clone()));
        let (sender, streams) = match found {
            Some(found) => found,
            None => {
                let sender = self.connect_http2(address).await?;
                let streams = Arc::new(AtomicUsize::new(0));
                connections.push(Multiplexed { sender: sender.clone(), streams: streams.clone() });
                (sender, streams)
            }
        };
        streams.fetch_add(1, Ordering::Relaxed);
        Ok((sender, StreamCount(streams)))
    }

    async fn connect_http2(&self, address: SocketAddr) -> Result<http2::SendRequest<Body>, String> {
        let stream = self.connect(address).await?;
        let (sender, driver) = http2::Builder::new(TokioExecutor::new())
            .initial_stream_window_size(H2_WINDOW_BYTES)
            .initial_connection_window_size(H2_WINDOW_BYTES)
            .handshake(TokioIo::new(stream))
            .await
            .map_err(|error| error.to_string())?;
        let (pool, fd) = (self.clone(), self.shared.fds.take(1));
        tokio::spawn(async move {
            let _fd = fd;
            if let Err(error) = driver.await {
                tracing::debug!(%address, %error, "a connection to a pod or app ended with an error");
            }
            pool.forget_closed(address);
        });
        Ok(sender)
    }

    async fn connect(&self, address: SocketAddr) -> Result<TcpStream, String> {
        let stream = tokio::select! {
            stream = TcpStream::connect(address) => stream.map_err(|error| error.to_string())?,
            () = self.shared.wheel.sleep(CONNECT_TIMEOUT) => return Err("connecting took too long".to_owned()),
        };
        let _ = stream.set_nodelay(true);
        Ok(stream)
    }

    fn http1_checkin(&self, address: SocketAddr, sender: http1::SendRequest<Body>) -> Checkin {
        Checkin(Back::Http1 { pool: self.clone(), address, sender })
    }

    fn take(&self, address: SocketAddr, idle_max: Duration) -> Option<http1::SendRequest<Body>> {
        let mut connections = self.shared.http1.lock();
        let stack = connections.get_mut(&address)?;
        let now = Instant::now();
        while let Some(idle) = stack.pop() {
            if now.saturating_duration_since(idle.since) > idle_max {
                // All below it have lain idle for longer; old ones go.
                if idle_max == IDLE_MAX {
                    stack.clear();
                } else {
                    stack.push(idle);
                }
                return None;
            }
            if !idle.sender.is_closed() {
                return Some(idle.sender);
            }
        }
        None
    }

    fn put(&self, address: SocketAddr, sender: http1::SendRequest<Body>) {
        if sender.is_closed() {
            return;
        }
        let mut connections = self.shared.http1.lock();
        let stack = connections.entry(address).or_default();
        if stack.len() < IDLE_CONNECTIONS_MAX {
            stack.push(Idle { sender, since: Instant::now() });
        }
    }

    /// Forgets connections that the other side has closed, and addresses that
    /// none are left for: pods come and go, the tables must not grow.
    fn forget_closed(&self, address: SocketAddr) {
        let mut http1 = self.shared.http1.lock();
        if let Some(stack) = http1.get_mut(&address) {
            stack.retain(|idle| !idle.sender.is_closed());
            if stack.is_empty() {
                http1.remove(&address);
            }
        }
        drop(http1);
        let mut http2 = self.shared.http2.lock();
        if let Some(entry) = http2.get(&address) {
            let unused = entry.try_lock().is_ok_and(|mut connections| {
                connections.retain(|connection| !connection.sender.is_closed());
                connections.is_empty()
            });
            if unused {
                http2.remove(&address);
            }
        }
    }
}

fn copy_of_head(request: &Request<Body>) -> Request<Body> {
    let mut copy = Request::new(Body::empty());
    *copy.method_mut() = request.method().clone();
    *copy.uri_mut() = request.uri().clone();
    *copy.version_mut() = request.version();
    *copy.headers_mut() = request.headers().clone();
    copy
}

fn broken(error: &hyper::Error) -> SendError {
    let at = if error.is_parse() {
        Break::Answer
    } else if error.is_user() {
        Break::RequestBody
    } else {
        Break::BeforeAnswer
    };
    SendError::Broken { error: error.to_string(), at }
}
