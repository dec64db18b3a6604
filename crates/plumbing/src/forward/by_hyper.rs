//! Kept HTTP/1 connections to apps and pods that hyper drives: a stack for each
//! address, as in `http1`, without what that learns of its servers.

use super::connect::Connector;
use super::http1::IDLE_CONNECTIONS_MAX;
use super::{Received, SendError, Trip};
use crate::body::Body;
use crate::h1::Break;
use crate::hyper1::of_server;
use crate::idle::{IDLE_MAX, IdleLimit, Stake};
use http::{Request, Response, StatusCode, Version};
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

/// How often aged connections are looked for while there are some.
const SWEEP: Duration = Duration::from_secs(5);

pub(super) struct ByHyper {
    connector: Connector,
    idle: Mutex<HashMap<SocketAddr, Vec<Idle>>>,
    some_are_idle: Notify,
}

struct Idle {
    sender: SendRequest<Body>,
    since: Instant,
}

/// Where a connection belongs.
pub(super) struct Home {
    pool: Arc<ByHyper>,
    address: SocketAddr,
    sender: SendRequest<Body>,
}

impl Home {
    pub(super) fn put_back(self) {
        self.pool.put(self.address, self.sender);
    }
}

impl ByHyper {
    pub(super) fn new(connector: Connector) -> Arc<ByHyper> {
        Arc::new(ByHyper { connector, idle: Mutex::default(), some_are_idle: Notify::new() })
    }

    pub(super) async fn send(
        self: &Arc<Self>,
        address: SocketAddr,
        mut request: Request<Body>,
        trip: Trip,
    ) -> Result<Response<Received>, SendError> {
        *request.version_mut() = Version::HTTP_11;
        let mut again = !trip.patience.is_zero();
        loop {
            let (mut sender, reused) = match self.take(address, trip.stake()).await {
                Some(sender) => (sender, true),
                None => match self.connect(address, trip.patience).await {
                    Ok(sender) => (sender, false),
                    Err(error) => return Err(SendError::NotSent { error }),
                },
            };
            trip.note_connected();
            let copy = trip.repeatable.then(|| copy_of_head(&request));
            let mut failed = match sender.try_send_request(request).await {
                Ok(response) => return self.answered(address, sender, response).await,
                Err(failed) => failed,
            };
            let error = failed.error();
            let (text, at) = (error.to_string(), place(error));
            match (failed.take_message(), copy) {
                (Some(unsent), _) if reused || again => request = unsent,
                (Some(_), _) => return Err(SendError::NotSent { error: text }),
                (None, Some(copy)) if at == Break::BeforeAnswer && (reused || again) => {
                    if !reused && !self.connector.is_gone(address).await {
                        return Err(SendError::Broken { error: text, at });
                    }
                    request = copy;
                }
                (None, _) => return Err(SendError::Broken { error: text, at }),
            }
            again &= reused;
        }
    }

    async fn answered(
        self: &Arc<Self>,
        address: SocketAddr,
        sender: SendRequest<Body>,
        mut response: Response<hyper::body::Incoming>,
    ) -> Result<Response<Received>, SendError> {
        let mut upgraded = None;
        if response.status() == StatusCode::SWITCHING_PROTOCOLS {
            upgraded = hyper::upgrade::on(&mut response).await.ok().and_then(of_server);
        }
        let home = Home { pool: self.clone(), address, sender };
        Ok(response.map(|body| Received::by_hyper(body, home, upgraded)))
    }

    async fn connect(&self, address: SocketAddr, patience: Duration) -> Result<SendRequest<Body>, String> {
        let made = self.connector.connect(address, patience).await?;
        let (mut sender, driver) =
            http1::handshake(TokioIo::new(made.stream)).await.map_err(|error| error.to_string())?;
        tokio::spawn(async move {
            let _fd = made.fd;
            if let Err(error) = driver.with_upgrades().await {
                tracing::debug!(%address, %error, "a connection to a pod or app ended with an error");
            }
        });
        sender.ready().await.map_err(|error| error.to_string())?;
        Ok(sender)
    }

    async fn take(&self, address: SocketAddr, stake: Stake) -> Option<SendRequest<Body>> {
        loop {
            let mut idle = self.pop(address)?;
            if idle.since.elapsed() > IdleLimit::default().reuse_max(stake) {
                // All below it have lain idle for longer.
                return None;
            }
            if idle.sender.ready().await.is_ok() {
                return Some(idle.sender);
            }
        }
    }

    fn pop(&self, address: SocketAddr) -> Option<Idle> {
        self.idle.lock().get_mut(&address)?.pop()
    }

    fn put(&self, address: SocketAddr, sender: SendRequest<Body>) {
        if sender.is_closed() {
            return;
        }
        let mut all = self.idle.lock();
        let idle = all.entry(address).or_default();
        if idle.len() < IDLE_CONNECTIONS_MAX {
            idle.push(Idle { sender, since: Instant::now() });
        }
        self.some_are_idle.notify_one();
    }

    /// See [`super::Pool::sweep`].
    pub(super) async fn sweep(&self) {
        loop {
            self.some_are_idle.notified().await;
            while self.sweep_once() {
                self.connector.wheel.sleep(SWEEP).await;
            }
        }
    }

    /// True while some are left.
    fn sweep_once(&self) -> bool {
        let mut all = self.idle.lock();
        all.retain(|_, idle| {
            idle.retain(|idle| !idle.sender.is_closed() && idle.since.elapsed() < IDLE_MAX);
            !idle.is_empty()
        });
        !all.is_empty()
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

fn place(error: &hyper::Error) -> Break {
    if error.is_parse() {
        Break::Answer
    } else if error.is_user() {
        Break::RequestBody
    } else {
        Break::BeforeAnswer
    }
}
