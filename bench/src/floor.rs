//! The floor: read, parse, write, and nothing else. One thread, epoll,
//! connections to the app kept in a stack. It shows what any proxy with a
//! socket on each side pays on this machine; it is not a proxy to use:
//!
//! - bodies have a `Content-Length`; anything else closes both connections,
//! - no limit, no counting, no timeouts, no pipelining,
//! - hop-by-hop headers go, `X-Forwarded-For`, `-Host` and `-Proto` are added.

use crate::poller::{Poller, Ready};
use crate::slab::Slab;
use crate::stream::{Got, Stream};
use anyhow::Context;
use std::io::Write;
use std::net::{SocketAddr, TcpListener, TcpStream};

/// Bytes that are read at once: 64 KiB answers come in one read.
const BUFFER: usize = 256 << 10;
const HEADERS_MAX: usize = 64;
const LISTENER: usize = usize::MAX - 1;

/// Serves for ever.
pub(crate) fn run(listen: SocketAddr, app: SocketAddr) -> anyhow::Result<()> {
    serve(&TcpListener::bind(listen).with_context(|| format!("listening at {listen}"))?, app)
}

/// The same, on a listener that is there.
pub(crate) fn serve(listener: &TcpListener, app: SocketAddr) -> anyhow::Result<()> {
    listener.set_nonblocking(true)?;
    let mut floor = Floor {
        poller: Poller::new()?,
        connections: Slab::new(),
        idle: Vec::new(),
        app,
        buffer: vec![0; BUFFER],
        head: Vec::with_capacity(4096),
    };
    floor.poller.listener(listener, LISTENER)?;
    let mut ready = Vec::new();
    loop {
        floor.poller.wait_into(&mut ready)?;
        for event in &ready {
            match event.token {
                LISTENER => floor.accept(listener),
                _ => floor.event(*event),
            }
        }
    }
}

struct Floor {
    poller: Poller,
    connections: Slab<Connection>,
    /// Connections to the app without a request, the last used on top.
    idle: Vec<usize>,
    app: SocketAddr,
    buffer: Vec<u8>,
    head: Vec<u8>,
}

struct Connection {
    stream: Stream,
    side: Side,
    state: State,
    /// The other side of the request.
    peer: Option<usize>,
    /// Of a head that is not whole yet.
    partial: Vec<u8>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    /// With the text that `X-Forwarded-For` gets.
    Client(std::net::IpAddr),
    App,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Head,
    /// So many bytes of the body are still to come.
    Body(u64),
    /// Nothing is expected: the answer is under way, or there is no request.
    Done,
}

/// The connection cannot go on.
struct Broken;

impl Floor {
    fn accept(&mut self, listener: &TcpListener) {
        while let Ok((socket, from)) = listener.accept() {
            let _ = self.add(socket, Side::Client(from.ip()), State::Head);
        }
    }

    fn add(&mut self, socket: TcpStream, side: Side, state: State) -> Result<usize, Broken> {
        let stream = Stream::new(socket).map_err(|_| Broken)?;
        let index = self.connections.add(Connection { stream, side, state, peer: None, partial: Vec::new() });
        let stream = self.connections.get(index).ok_or(Broken)?.stream.socket();
        self.poller.add(stream, index).map_err(|_| Broken)?;
        Ok(index)
    }

    fn event(&mut self, ready: Ready) {
        let Some(connection) = self.connections.get(ready.token) else { return };
        let peer = connection.peer;
        let flushed_before = connection.stream.is_flushed();
        let mut outcome = connection.stream.on(ready).map_err(|_| Broken);
        let has_room_again = !flushed_before && connection.stream.is_flushed();
        if outcome.is_ok() && ready.readable {
            outcome = self.turn(ready.token);
        }
        // What the other side could not pass on goes on now.
        if let (true, Some(peer), Ok(())) = (has_room_again, peer, &outcome) {
            outcome = self.turn(peer);
        }
        if outcome.is_err() {
            self.close(ready.token);
        }
    }

    /// Reads and passes on, as long as there is something and room for it.
    fn turn(&mut self, index: usize) -> Result<(), Broken> {
        loop {
            let Some(connection) = self.connections.get(index) else { return Ok(()) };
            let peer = connection.peer;
            if !connection.stream.readable {
                return Ok(());
            }
            if connection.state == State::Done {
                // An idle connection to the app speaks only when it ends; a
                // client is heard again after its answer.
                return if connection.side == Side::App { Err(Broken) } else { Ok(()) };
            }
            if let Some(peer) = peer.and_then(|peer| self.connections.get(peer))
                && !peer.stream.is_flushed()
            {
                return Ok(());
            }
            let Some(connection) = self.connections.get(index) else { return Ok(()) };
            let mut buffer = std::mem::take(&mut self.buffer);
            let outcome = match connection.stream.read(&mut buffer) {
                Got::Bytes(read) => self.take(index, &buffer[..read]),
                Got::Nothing => Ok(()),
                Got::End => Err(Broken),
            };
            self.buffer = buffer;
            outcome?;
        }
    }

    fn take(&mut self, index: usize, bytes: &[u8]) -> Result<(), Broken> {
        let connection = self.connections.get(index).ok_or(Broken)?;
        match (connection.state, connection.side) {
            (State::Body(left), _) => {
                let length = bytes.len() as u64;
                let left = left.checked_sub(length).ok_or(Broken)?;
                connection.state = State::Body(left);
                let peer = connection.peer.ok_or(Broken)?;
                self.connections.get(peer).ok_or(Broken)?.stream.write(&[], bytes).map_err(|_| Broken)?;
                if left == 0 { self.ended(index) } else { Ok(()) }
            }
            (State::Head, side) => {
                let mut partial = std::mem::take(&mut connection.partial);
                if partial.is_empty() {
                    return self.head(index, side, bytes);
                }
                partial.extend_from_slice(bytes);
                self.head(index, side, &partial)
            }
            (State::Done, _) => Err(Broken),
        }
    }

    fn head(&mut self, index: usize, side: Side, bytes: &[u8]) -> Result<(), Broken> {
        self.head.clear();
        let parsed = match side {
            Side::Client(from) => request(bytes, from, &mut self.head)?,
            Side::App => response(bytes, &mut self.head)?,
        };
        let Some((head_length, body_length)) = parsed else {
            self.connections.get(index).ok_or(Broken)?.partial = bytes.to_vec();
            return Ok(());
        };
        let body = &bytes[head_length..];
        let left = body_length.checked_sub(body.len() as u64).ok_or(Broken)?;
        let peer = match side {
            Side::Client(_) => self.claim_app(index)?,
            Side::App => self.connections.get(index).and_then(|connection| connection.peer).ok_or(Broken)?,
        };
        let head = std::mem::take(&mut self.head);
        let written = self.connections.get(peer).ok_or(Broken)?.stream.write(&head, body);
        self.head = head;
        written.map_err(|_| Broken)?;
        self.connections.get(index).ok_or(Broken)?.state = State::Body(left);
        if left == 0 { self.ended(index) } else { Ok(()) }
    }

    /// A connection to the app for this client's request.
    fn claim_app(&mut self, client: usize) -> Result<usize, Broken> {
        let app = match self.idle.pop() {
            Some(app) => app,
            None => self.add(TcpStream::connect(self.app).map_err(|_| Broken)?, Side::App, State::Done)?,
        };
        let connection = self.connections.get(app).ok_or(Broken)?;
        connection.peer = Some(client);
        connection.state = State::Head;
        self.connections.get(client).ok_or(Broken)?.peer = Some(app);
        Ok(app)
    }

    /// A message has been read to its end.
    fn ended(&mut self, index: usize) -> Result<(), Broken> {
        let connection = self.connections.get(index).ok_or(Broken)?;
        connection.state = State::Done;
        if connection.side != Side::App {
            return Ok(());
        }
        let client = connection.peer.take().ok_or(Broken)?;
        self.idle.push(index);
        let connection = self.connections.get(client).ok_or(Broken)?;
        connection.peer = None;
        connection.state = State::Head;
        if connection.stream.readable { self.turn(client) } else { Ok(()) }
    }

    fn close(&mut self, index: usize) {
        let Some(connection) = self.connections.remove(index) else { return };
        self.idle.retain(|idle| *idle != index);
        if let Some(peer) = connection.peer {
            self.close(peer);
        }
    }
}

/// Lengths of head and body, when the head is whole; the head to pass on is
/// added to `out`.
fn request(bytes: &[u8], from: std::net::IpAddr, out: &mut Vec<u8>) -> Result<Option<(usize, u64)>, Broken> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut request = httparse::Request::new(&mut headers);
    let httparse::Status::Complete(length) = request.parse(bytes).map_err(|_| Broken)? else { return Ok(None) };
    let (Some(method), Some(path)) = (request.method, request.path) else { return Err(Broken) };
    for part in [method.as_bytes(), b" ", path.as_bytes(), b" HTTP/1.1\r\n"] {
        out.extend_from_slice(part);
    }
    let body = pass_on(request.headers, out)?.unwrap_or(0);
    let host = request.headers.iter().find(|header| header.name.eq_ignore_ascii_case("host"));
    let _ = write!(out, "X-Forwarded-For: {from}\r\n");
    for part in [&b"X-Forwarded-Host: "[..], host.map_or(&b""[..], |host| host.value), b"\r\n"] {
        out.extend_from_slice(part);
    }
    out.extend_from_slice(b"X-Forwarded-Proto: http\r\n\r\n");
    Ok(Some((length, body)))
}

/// The same for an answer.
fn response(bytes: &[u8], out: &mut Vec<u8>) -> Result<Option<(usize, u64)>, Broken> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut response = httparse::Response::new(&mut headers);
    let httparse::Status::Complete(length) = response.parse(bytes).map_err(|_| Broken)? else { return Ok(None) };
    let (Some(code), Some(reason)) = (response.code, response.reason) else { return Err(Broken) };
    let _ = write!(out, "HTTP/1.1 {code} {reason}\r\n");
    let body = pass_on(response.headers, out)?.ok_or(Broken)?;
    out.extend_from_slice(b"\r\n");
    Ok(Some((length, body)))
}

/// Headers that concern both sides; the length of the body.
fn pass_on(headers: &[httparse::Header<'_>], out: &mut Vec<u8>) -> Result<Option<u64>, Broken> {
    let mut body = None;
    for header in headers {
        let is = |name: &str| header.name.eq_ignore_ascii_case(name);
        match header.name.len() {
            14 if is("content-length") => {
                let text = std::str::from_utf8(header.value).map_err(|_| Broken)?;
                body = Some(text.parse().map_err(|_| Broken)?);
            }
            17 if is("transfer-encoding") => return Err(Broken),
            10 if is("connection") || is("keep-alive") => continue,
            2 if is("te") => continue,
            7 if is("trailer") || is("upgrade") => continue,
            18 if is("proxy-authenticate") => continue,
            19 if is("proxy-authorization") => continue,
            _ => {}
        }
        for part in [header.name.as_bytes(), b": ", header.value, b"\r\n"] {
            out.extend_from_slice(part);
        }
    }
    Ok(body)
}
