//! Kept HTTP/2 connections, shared by many requests.

use super::connect::Connector;
use super::{Received, SendError, Trip};
use crate::body::Body;
use crate::h1::Break;
use http::{Request, Response};
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Streams put on one connection before another is made: what servers
/// commonly allow at least.
const STREAMS_PER_CONNECTION: usize = 100;
const WINDOW_BYTES: u32 = 1 << 20;
/// How long a server may take to show which version it speaks.
const ASK_MAX: Duration = Duration::from_secs(1);

pub(super) struct Http2 {
    connector: Connector,
    servers: Arc<Servers>,
}

type Servers = Mutex<HashMap<SocketAddr, Arc<tokio::sync::Mutex<Vec<Multiplexed>>>>>;

struct Multiplexed {
    sender: http2::SendRequest<Body>,
    streams: Arc<AtomicUsize>,
}

/// Counts a stream on its connection.
pub(super) struct Stream(Arc<AtomicUsize>);

impl Drop for Stream {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Http2 {
    pub(super) fn new(connector: Connector) -> Http2 {
        Http2 { connector, servers: Arc::default() }
    }

    pub(super) async fn send(
        &self,
        address: SocketAddr,
        mut request: Request<Body>,
        trip: &Trip,
    ) -> Result<Response<Received>, SendError> {
        let mut again = !trip.patience.is_zero();
        loop {
            let (mut sender, stream) = match self.sender(address, trip.patience).await {
                Ok(found) => found,
                Err(error) => return Err(SendError::NotSent { error }),
            };
            trip.note_connected();
            let copy = (again && trip.repeatable).then(|| copy_of_head(&request));
            let mut failed = match sender.try_send_request(request).await {
                Ok(response) => return Ok(response.map(|body| Received::http2(body, stream))),
                Err(failed) => failed,
            };
            let error = failed.error();
            let (text, at) = (error.to_string(), place(error));
            match (failed.take_message(), copy) {
                (Some(unsent), _) if again => request = unsent,
                (Some(_), _) => return Err(SendError::NotSent { error: text }),
                (None, Some(copy)) if at == Break::BeforeAnswer => {
                    if !self.connector.is_gone(address).await {
                        return Err(SendError::Broken { error: text, at });
                    }
                    request = copy;
                }
                (None, _) => return Err(SendError::Broken { error: text, at }),
            }
            again = false;
        }
    }

    pub(super) async fn is_spoken(&self, address: SocketAddr) -> bool {
        let asked = async {
            let made = self.connector.connect(address, Duration::ZERO).await.ok()?;
            first_bytes(made.stream).await.ok()
        };
        tokio::select! {
            first = asked => first.is_none_or(|first| !first.starts_with(b"HTTP/") && !first.is_empty()),
            () = self.connector.wheel.sleep(ASK_MAX) => true,
        }
    }

    async fn sender(
        &self,
        address: SocketAddr,
        patience: Duration,
    ) -> Result<(http2::SendRequest<Body>, Stream), String> {
        let entry = self.servers.lock().entry(address).or_default().clone();
        // Held while connecting: requests that come together share the connection.
        let mut connections = entry.lock().await;
        connections.retain(|connection| !connection.sender.is_closed());
        let room = |connection: &&Multiplexed| connection.streams.load(Ordering::Relaxed) < STREAMS_PER_CONNECTION;
        let found = connections.iter().find(room).map(|found| (found.sender.clone(), found.streams.clone()));
        let (sender, streams) = match found {
            Some(found) => found,
            None => {
                let sender = self.connect(address, patience).await?;
                let streams = Arc::new(AtomicUsize::new(0));
                connections.push(Multiplexed { sender: sender.clone(), streams: streams.clone() });
                (sender, streams)
            }
        };
        streams.fetch_add(1, Ordering::Relaxed);
        Ok((sender, Stream(streams)))
    }

    async fn connect(&self, address: SocketAddr, patience: Duration) -> Result<http2::SendRequest<Body>, String> {
        let made = self.connector.connect(address, patience).await?;
        let (sender, driver) = http2::Builder::new(TokioExecutor::new())
            .initial_stream_window_size(WINDOW_BYTES)
            .initial_connection_window_size(WINDOW_BYTES)
            .handshake(TokioIo::new(made.stream))
            .await
            .map_err(|error| error.to_string())?;
        let servers = self.servers.clone();
        tokio::spawn(async move {
            let _fd = made.fd;
            if let Err(error) = driver.await {
                tracing::debug!(%address, %error, "a connection to a pod or app ended with an error");
            }
            forget_closed(&servers, address);
        });
        Ok(sender)
    }
}

/// How a server begins that is greeted in HTTP/2: with its settings, or with
/// an answer in HTTP/1; with nothing if it closes.
async fn first_bytes(mut stream: TcpStream) -> std::io::Result<Vec<u8>> {
    const GREETING: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
    stream.write_all(GREETING).await?;
    let mut first = vec![0; 5];
    let count = stream.read(&mut first).await?;
    first.truncate(count);
    Ok(first)
}

/// Forgets connections that have ended, and addresses that none are left for:
/// pods come and go, the table must not grow.
fn forget_closed(servers: &Servers, address: SocketAddr) {
    let mut servers = servers.lock();
    if let Some(entry) = servers.get(&address) {
        let unused = entry.try_lock().is_ok_and(|mut connections| {
            connections.retain(|connection| !connection.sender.is_closed());
            connections.is_empty()
        });
        if unused {
            servers.remove(&address);
        }
    }
}

pub(super) fn copy_of_head(request: &Request<Body>) -> Request<Body> {
    let mut copy = Request::new(Body::empty());
    *copy.method_mut() = request.method().clone();
    *copy.uri_mut() = request.uri().clone();
    *copy.version_mut() = request.version();
    *copy.headers_mut() = request.headers().clone();
    copy
}

pub(super) fn place(error: &hyper::Error) -> Break {
    if error.is_parse() {
        Break::Answer
    } else if error.is_user() {
        Break::RequestBody
    } else {
        Break::BeforeAnswer
    }
}
