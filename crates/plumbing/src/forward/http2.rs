//! Kept HTTP/2 connections, shared by many requests.

use super::connect::Connector;
use super::{Received, SendError, Trip};
use crate::body::Body;
use crate::fds::Taken;
use crate::h1::Break;
use crate::http2::{FAULTY_STREAMS_MAX, Incoming, Pipe, WINDOW_BYTES, Wire, for_server};
use bytes::Bytes;
use h2::client::{Builder, Connection, SendRequest};
use http::{Method, Request, Response, StatusCode};
use http_body::Body as _;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::future::{Future, poll_fn};
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Streams put on one connection before another is made: what servers
/// commonly allow at least. As many are opened before a server has said how
/// many it allows.
const STREAMS_PER_CONNECTION: usize = 100;
/// Largest head of an answer.
const HEAD_BYTES_MAX: u32 = 16 * 1024;
/// What may wait in a stream to be written, in bytes.
const SEND_BUFFER_BYTES_MAX: usize = 1 << 20;
/// How long a server may take to show which version it speaks.
const ASK_MAX: Duration = Duration::from_secs(1);

pub(super) struct Http2 {
    connector: Connector,
    servers: Arc<Servers>,
}

type Servers = Mutex<HashMap<SocketAddr, Server, foldhash::fast::RandomState>>;

#[derive(Default)]
struct Server {
    connections: Vec<Multiplexed>,
    /// Held while connecting: requests that come together share the connection.
    gate: Arc<tokio::sync::Mutex<()>>,
}

#[derive(Clone)]
struct Multiplexed {
    sender: SendRequest<Bytes>,
    state: Arc<State>,
}

/// Of one connection.
#[derive(Default)]
struct State {
    streams: AtomicUsize,
    closed: AtomicBool,
}

/// Counts a stream on its connection.
pub(super) struct Stream(Arc<State>);

impl Drop for Stream {
    fn drop(&mut self) {
        self.0.streams.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Server {
    /// A connection with room for one more stream.
    fn room(&self) -> Option<(SendRequest<Bytes>, Stream)> {
        let room = |connection: &&Multiplexed| {
            !connection.state.closed.load(Ordering::Relaxed)
                && connection.state.streams.load(Ordering::Relaxed) < STREAMS_PER_CONNECTION
        };
        self.connections.iter().find(room).map(Multiplexed::stream)
    }

    fn forget_closed(&mut self) {
        self.connections.retain(|connection| !connection.state.closed.load(Ordering::Relaxed));
    }
}

impl Multiplexed {
    fn stream(&self) -> (SendRequest<Bytes>, Stream) {
        self.state.streams.fetch_add(1, Ordering::Relaxed);
        (self.sender.clone(), Stream(self.state.clone()))
    }
}

impl Http2 {
    pub(super) fn new(connector: Connector) -> Http2 {
        Http2 { connector, servers: Arc::default() }
    }

    pub(super) async fn send(
        &self,
        address: SocketAddr,
        request: Request<Body>,
        trip: &Trip,
    ) -> Result<Response<Received>, SendError> {
        let mut again = !trip.patience.is_zero();
        let (mut parts, mut body) = request.into_parts();
        for_server(&parts.method, &mut parts.headers, &body);
        let connect = parts.method == Method::CONNECT;
        loop {
            let (mut sender, stream) = match self.sender(address, trip.patience).await {
                Ok(found) => found,
                Err(error) => return Err(SendError::NotSent { error }),
            };
            trip.note_connected();
            if let Err(error) = poll_fn(|cx| sender.poll_ready(cx)).await {
                // It has ended, or lets in no more: no stream of it was used.
                stream.0.closed.store(true, Ordering::Relaxed);
                if !std::mem::replace(&mut again, false) {
                    return Err(SendError::NotSent { error: error.to_string() });
                }
                continue;
            }
            let copy = (again && trip.repeatable).then(|| copy_of_head(&parts));
            let ended = body.is_end_stream();
            let head = Request::from_parts(parts, ());
            let error = match sender.send_request(head, ended) {
                Ok((response, body_stream)) => {
                    let pipe = (!ended).then(|| Pipe::new(body_stream, body));
                    match answer(response, pipe).await {
                        Ok(response) => return Ok(received(response, stream, connect)),
                        Err(error) => error,
                    }
                }
                Err(error) => error,
            };
            match copy {
                // It has ended with its server.
                Some(copy) if self.connector.is_gone(address).await => {
                    stream.0.closed.store(true, Ordering::Relaxed);
                    (parts, body) = (copy, Body::empty());
                    again = false;
                }
                _ => return Err(SendError::Broken { error: error.to_string(), at: Break::BeforeAnswer }),
            }
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

    async fn sender(&self, address: SocketAddr, patience: Duration) -> Result<(SendRequest<Bytes>, Stream), String> {
        let gate = {
            let mut servers = self.servers.lock();
            let server = servers.entry(address).or_default();
            match server.room() {
                Some(found) => return Ok(found),
                None => server.gate.clone(),
            }
        };
        let _connecting = gate.lock().await;
        // Whoever held the gate may have made one.
        let made = self.servers.lock().get(&address).and_then(Server::room);
        if let Some(found) = made {
            return Ok(found);
        }
        let connection = self.connect(address, patience).await?;
        let found = connection.stream();
        let mut servers = self.servers.lock();
        let server = servers.entry(address).or_default();
        server.forget_closed();
        server.connections.push(connection);
        Ok(found)
    }

    async fn connect(&self, address: SocketAddr, patience: Duration) -> Result<Multiplexed, String> {
        let made = self.connector.connect(address, patience).await?;
        let wire = Wire::of_server(made.stream);
        let mut builder = Builder::new();
        builder
            .initial_max_send_streams(STREAMS_PER_CONNECTION)
            .initial_window_size(WINDOW_BYTES)
            .initial_connection_window_size(WINDOW_BYTES)
            .max_header_list_size(HEAD_BYTES_MAX)
            .max_send_buffer_size(SEND_BUFFER_BYTES_MAX)
            .max_local_error_reset_streams(Some(FAULTY_STREAMS_MAX))
            .enable_push(false);
        let mut handshake = pin!(builder.handshake(wire.clone()));
        let (sender, connection) =
            poll_fn(|cx| wire.turn(cx, |cx| handshake.as_mut().poll(cx))).await.map_err(|error| error.to_string())?;
        let state = Arc::new(State::default());
        tokio::spawn(drive(connection, wire, state.clone(), self.servers.clone(), address, made.fd));
        Ok(Multiplexed { sender, state })
    }
}

/// Runs a connection until it ends.
async fn drive(
    mut connection: Connection<Wire, Bytes>,
    wire: Wire,
    state: Arc<State>,
    servers: Arc<Servers>,
    address: SocketAddr,
    _fd: Taken,
) {
    if let Err(error) = poll_fn(|cx| wire.turn(cx, |cx| Pin::new(&mut connection).poll(cx))).await {
        tracing::debug!(%address, %error, "a connection to a pod or app ended with an error");
    }
    state.closed.store(true, Ordering::Relaxed);
    forget_closed(&servers, address);
}

/// Waits for the answer; the request's body goes out meanwhile, and further
/// if it takes longer.
async fn answer(
    mut response: h2::client::ResponseFuture,
    mut pipe: Option<Pipe>,
) -> Result<Response<h2::RecvStream>, h2::Error> {
    let answered = poll_fn(|cx| {
        if let Some(going) = &mut pipe
            && Pin::new(going).poll(cx).is_ready()
        {
            pipe = None;
        }
        Pin::new(&mut response).poll(cx)
    })
    .await;
    if let (Some(pipe), Ok(_)) = (pipe, &answered) {
        tokio::spawn(pipe);
    }
    answered
}

fn received(response: Response<h2::RecvStream>, stream: Stream, connect: bool) -> Response<Received> {
    let (parts, body) = response.into_parts();
    let body = match connect && parts.status == StatusCode::OK {
        true => Incoming::shut(body),
        false => Incoming::new(body, &parts.headers),
    };
    Response::from_parts(parts, Received::http2(body, stream))
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
    if let Some(server) = servers.get_mut(&address) {
        server.forget_closed();
        if server.connections.is_empty() && server.gate.try_lock().is_ok() {
            servers.remove(&address);
        }
    }
}

fn copy_of_head(parts: &http::request::Parts) -> http::request::Parts {
    let mut copy = Request::new(()).into_parts().0;
    copy.method = parts.method.clone();
    copy.uri = parts.uri.clone();
    copy.version = parts.version;
    copy.headers = parts.headers.clone();
    copy
}
