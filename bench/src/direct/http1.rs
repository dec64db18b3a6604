//! HTTP/1 on epoll.

use super::{Route, WORK};
use crate::poller::{Alarm, Poller};
use crate::slab::Slab;
use crate::stream::{Got, Stream};
use anyhow::Context;
use std::collections::{HashMap, VecDeque};
use std::net::{SocketAddr, TcpListener};
use std::rc::Rc;
use std::time::Instant;

const BUFFER: usize = 64 << 10;
const LISTENER: usize = usize::MAX - 1;
const ALARM: usize = usize::MAX - 2;

/// Serves for ever.
pub(crate) fn run(listen: SocketAddr) -> anyhow::Result<()> {
    let listener = TcpListener::bind(listen).with_context(|| format!("listening at {listen}"))?;
    serve(&listener)
}

/// The same, on a listener that is there.
pub(crate) fn serve(listener: &TcpListener) -> anyhow::Result<()> {
    listener.set_nonblocking(true)?;
    let poller = Poller::new()?;
    let alarm = Alarm::new()?;
    poller.listener(listener, LISTENER)?;
    poller.add(&alarm, ALARM)?;
    let mut server =
        Server { poller, alarm, clients: Slab::new(), late: VecDeque::new(), made: 0, answers: HashMap::new() };
    let mut buffer = vec![0; BUFFER];
    let mut ready = Vec::new();
    loop {
        server.poller.wait_into(&mut ready)?;
        for event in &ready {
            match event.token {
                LISTENER => server.accept(listener),
                ALARM => server.answer_late(&mut buffer)?,
                index => {
                    let Some(client) = server.clients.get(index) else { continue };
                    let fine = client.stream.on(*event).is_ok() && server.turn(index, &mut buffer).is_ok();
                    if !fine {
                        server.clients.remove(index);
                    }
                }
            }
        }
    }
}

struct Server {
    poller: Poller,
    alarm: Alarm,
    clients: Slab<Client>,
    /// Who gets a late answer, by when; all wait equally long.
    late: VecDeque<(Instant, usize, u64)>,
    made: u64,
    answers: HashMap<usize, Rc<[u8]>>,
}

struct Client {
    stream: Stream,
    /// Tells it from an earlier one with its index.
    number: u64,
    partial: Vec<u8>,
    body_left: u64,
    waits: bool,
}

/// The connection cannot go on.
struct Broken;

impl Server {
    fn accept(&mut self, listener: &TcpListener) {
        while let Ok((socket, _)) = listener.accept() {
            let Ok(stream) = Stream::new(socket) else { continue };
            self.made += 1;
            let client = Client { stream, number: self.made, partial: Vec::new(), body_left: 0, waits: false };
            let index = self.clients.add(client);
            let added = self.clients.get(index).is_some_and(|client| {
                let socket = client.stream.socket();
                self.poller.add(socket, index).is_ok()
            });
            if !added {
                self.clients.remove(index);
            }
        }
    }

    fn turn(&mut self, index: usize, buffer: &mut [u8]) -> Result<(), Broken> {
        loop {
            let Some(client) = self.clients.get(index) else { return Ok(()) };
            if !client.stream.readable || !client.stream.is_flushed() || client.waits {
                return Ok(());
            }
            match client.stream.read(buffer) {
                Got::Bytes(read) => self.take(index, &buffer[..read])?,
                Got::Nothing => return Ok(()),
                Got::End => return Err(Broken),
            }
        }
    }

    fn take(&mut self, index: usize, bytes: &[u8]) -> Result<(), Broken> {
        let client = self.clients.get(index).ok_or(Broken)?;
        let mut bytes = bytes;
        if client.body_left > 0 {
            let of_body = bytes.len().min(usize::try_from(client.body_left).unwrap_or(usize::MAX));
            client.body_left -= of_body as u64;
            bytes = &bytes[of_body..];
            if client.body_left > 0 {
                return Ok(());
            }
            self.answer(index, Route::Bytes(0))?;
        }
        if bytes.is_empty() {
            return Ok(());
        }
        let client = self.clients.get(index).ok_or(Broken)?;
        let mut whole = std::mem::take(&mut client.partial);
        if !whole.is_empty() {
            whole.extend_from_slice(bytes);
            bytes = &whole;
        }
        let mut headers = [httparse::EMPTY_HEADER; 64];
        let mut request = httparse::Request::new(&mut headers);
        let httparse::Status::Complete(length) = request.parse(bytes).map_err(|_| Broken)? else {
            client.partial = bytes.to_vec();
            return Ok(());
        };
        let route = Route::of(request.path.ok_or(Broken)?);
        let mut body = 0;
        let mut chunked = false;
        for header in request.headers.iter() {
            if header.name.eq_ignore_ascii_case("content-length") {
                body = std::str::from_utf8(header.value).ok().and_then(|text| text.parse().ok()).ok_or(Broken)?;
            }
            chunked |= header.name.eq_ignore_ascii_case("transfer-encoding");
        }
        let rest = &bytes[length..];
        if chunked {
            // Only ever small ones, which come with their head.
            if !rest.ends_with(b"0\r\n\r\n") {
                client.partial = bytes.to_vec();
                return Ok(());
            }
            return self.answer(index, route);
        }
        // Whoever sends more before the answer is not served here.
        client.body_left = u64::checked_sub(body, rest.len() as u64).ok_or(Broken)?;
        if client.body_left > 0 { Ok(()) } else { self.answer(index, route) }
    }

    fn answer(&mut self, index: usize, route: Route) -> Result<(), Broken> {
        let size = match route {
            Route::Bytes(size) => size,
            Route::Slow(size) => {
                let client = self.clients.get(index).ok_or(Broken)?;
                client.waits = true;
                self.late.push_back((Instant::now() + WORK, index, client.number));
                if self.late.len() == 1 {
                    self.alarm.set(WORK).map_err(|_| Broken)?;
                }
                debug_assert_eq!(size, 1 << 10);
                return Ok(());
            }
            Route::Hold => {
                self.clients.get(index).ok_or(Broken)?.waits = true;
                return Ok(());
            }
            Route::Unary(_) | Route::Stream(..) | Route::Unknown => {
                let none = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n";
                return self.clients.get(index).ok_or(Broken)?.stream.write(none, &[]).map_err(|_| Broken);
            }
        };
        self.send(index, size)
    }

    fn send(&mut self, index: usize, size: usize) -> Result<(), Broken> {
        let answer = self.answers.entry(size).or_insert_with(|| {
            let head = format!("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {size}\r\n\r\n");
            let mut answer = head.into_bytes();
            answer.resize(answer.len() + size, b'x');
            answer.into()
        });
        let answer = answer.clone();
        self.clients.get(index).ok_or(Broken)?.stream.write(&answer, &[]).map_err(|_| Broken)
    }

    fn answer_late(&mut self, buffer: &mut [u8]) -> anyhow::Result<()> {
        let now = Instant::now();
        while let Some((due, index, number)) = self.late.front().copied() {
            if due > now {
                self.alarm.set(due - now)?;
                break;
            }
            self.late.pop_front();
            let Some(client) = self.clients.get(index).filter(|client| client.number == number) else { continue };
            client.waits = false;
            if self.send(index, 1 << 10).and_then(|()| self.turn(index, buffer)).is_err() {
                self.clients.remove(index);
            }
        }
        Ok(())
    }
}
