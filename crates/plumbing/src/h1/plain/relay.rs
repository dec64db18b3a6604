//! A plain answer on its way from an app to a client.

use super::super::buffers;
use super::super::client::Connection;
use super::super::exchange::Sent;
use super::super::inbox::Inbox;
use super::super::limits::FLAT_BYTES_MAX;
use super::super::link::Link;
use super::answer::Head;
use crate::body::{Body, Guard};
use crate::conn::Busy;
use crate::deadline::Limits;
use crate::forward::Home;
use crate::meter::{Ended, Metered};
use bytes::{Buf, BytesMut};
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::AsyncWrite;

/// A plain answer whose head has come, on its connection.
pub struct Source {
    connection: Connection<Body>,
    head: Head,
}

impl Source {
    pub(super) fn new(connection: Connection<Body>, head: Head) -> Source {
        Source { connection, head }
    }

    /// Its status.
    pub fn status(&self) -> http::StatusCode {
        self.head.status
    }

    /// What the app says of how long it keeps the connection.
    pub fn kept_for(&self) -> Option<&[u8]> {
        self.head.kept_for.as_deref()
    }
}

/// What lasts until an answer's last byte has come.
pub struct Held {
    /// Where its connection belongs.
    pub home: Home,
    /// The request's limits.
    pub limits: Limits,
    /// Slot and count.
    pub guard: Guard,
}

/// A plain answer that is passed on. Dropped, it ends the exchange.
pub struct Relay {
    source: Source,
    held: Held,
    meter: Metered,
    busy: Option<Busy>,
}

impl Relay {
    /// Of an answer; `meter` is told of its body.
    pub fn new(source: Source, held: Held, meter: Option<Box<dyn crate::meter::Meter>>) -> Relay {
        Relay { source, held, meter: meter.map_or_else(Metered::default, Metered::by), busy: None }
    }

    pub(crate) fn keeping(mut self, busy: Busy) -> Relay {
        self.busy = Some(busy);
        self
    }

    /// Begins to pass it on; `keep_alive`: of the client's connection.
    pub(super) fn begin(self, keep_alive: bool) -> Relaying {
        let Source { connection, head } = self.source;
        let (left, keep) = (head.length, head.keep_alive);
        let from = From { connection, keep, held: self.held };
        let mut relaying = Relaying {
            from: Some(from),
            left,
            head: head.finish(keep_alive),
            written: 0,
            body: [BytesMut::new(), BytesMut::new()],
            cut: false,
            meter: self.meter,
            _busy: self.busy,
        };
        relaying.draw();
        relaying
    }
}

struct From {
    connection: Connection<Body>,
    /// The connection can be used again.
    keep: bool,
    held: Held,
}

impl From {
    fn inbox(&mut self) -> &mut Inbox {
        &mut self.connection.0.inbox
    }
}

/// An answer that is being written.
pub(super) struct Relaying {
    /// `None` once all of it has come, or will not.
    from: Option<From>,
    /// Bytes of the body that have not come.
    left: u64,
    /// The head, and a small body behind it.
    head: Vec<u8>,
    /// Bytes of that which the kernel has accepted.
    written: usize,
    /// What has come of the body and is not written, in order.
    body: [BytesMut; 2],
    cut: bool,
    meter: Metered,
    _busy: Option<Busy>,
}

impl Relaying {
    /// Reads and writes, until all is written or it broke off.
    pub(super) fn poll(&mut self, link: &Link, cx: &mut Context<'_>) -> Poll<Sent> {
        loop {
            let idle = self.is_written();
            if idle || self.may_gather() {
                match self.poll_read(cx) {
                    Poll::Ready(Some(Ok(()))) => continue,
                    // What came before a fault is the client's all the same.
                    Poll::Ready(Some(Err(how))) => self.fail(how),
                    Poll::Pending if idle => return self.poll_limits(cx),
                    Poll::Ready(None) | Poll::Pending => {}
                }
            }
            match self.poll_write(link, cx) {
                Poll::Ready(Ok(())) if self.cut => return Poll::Ready(Sent::Cut),
                Poll::Ready(Ok(())) if self.from.is_none() => return Poll::Ready(Sent::Whole),
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(_)) => return Poll::Ready(Sent::ClientGone),
                Poll::Pending => return self.poll_limits(cx),
            }
        }
    }

    /// A read that filled its buffer: what may follow is read before writing.
    fn may_gather(&mut self) -> bool {
        self.body[1].is_empty() && self.from.as_mut().is_some_and(|from| from.inbox().was_filled())
    }

    /// `None`: there is nothing more to come.
    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<(), Ended>>> {
        let Some(from) = &mut self.from else { return Poll::Ready(None) };
        let wire = &mut *from.connection.0;
        match ready!(wire.inbox.poll_fill(&mut wire.socket, cx)) {
            Ok(1..) => self.draw(),
            Ok(0) | Err(_) => return Poll::Ready(Some(Err(Ended::Broken))),
        }
        Poll::Ready(Some(Ok(())))
    }

    /// Takes what was read. With the last byte the app's part is over, whatever
    /// the client still has to take.
    fn draw(&mut self) {
        let Some(from) = &mut self.from else { return };
        let bytes = &mut from.connection.0.inbox.bytes;
        if bytes.len() as u64 > self.left {
            // Whoever said more than it was asked for may say anything next.
            from.keep = false;
            bytes.truncate(usize::try_from(self.left).unwrap_or(usize::MAX));
        }
        self.left -= bytes.len() as u64;
        if !bytes.is_empty() {
            self.meter.passed(bytes.len());
            from.held.limits.wrote();
        }
        let first = self.body[0].is_empty() && self.body[1].is_empty();
        if first && self.written == 0 && bytes.len() <= FLAT_BYTES_MAX {
            self.head.extend_from_slice(bytes);
            bytes.clear();
        } else {
            self.body[usize::from(!first)] = std::mem::take(bytes);
        }
        if self.left == 0
            && let Some(From { connection, keep, held }) = self.from.take()
        {
            if keep && !connection.0.inbox.ended && connection.0.is_sent() {
                held.home.put_back(connection.rest());
            }
            self.meter.end(Ended::Whole);
        }
    }

    /// Nothing more comes; slot, count and connection are let go of.
    fn fail(&mut self, how: Ended) {
        tracing::debug!(?how, "an answer was cut");
        (self.from, self.cut) = (None, true);
        self.meter.end(how);
    }

    fn poll_limits(&mut self, cx: &mut Context<'_>) -> Poll<Sent> {
        let Some(from) = &mut self.from else { return Poll::Pending };
        let reason = ready!(from.held.limits.poll_passed(cx));
        self.fail(Ended::Limit(reason));
        Poll::Ready(Sent::Cut)
    }

    fn is_written(&self) -> bool {
        self.written == self.head.len() && self.body.iter().all(BytesMut::is_empty)
    }

    fn poll_write(&mut self, link: &Link, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut state = link.state();
        ready!(state.poll_flush_interim(cx))?;
        let Some(socket) = &mut state.socket else { return Poll::Ready(Err(io::ErrorKind::NotConnected.into())) };
        while !self.is_written() {
            let socket = Pin::new(&mut *socket);
            let pieces = [&self.head[self.written..], &self.body[0], &self.body[1]];
            let written = match pieces {
                [one, [], []] | [[], one, []] => socket.poll_write(cx, one),
                _ => socket.poll_write_vectored(cx, &pieces.map(IoSlice::new)),
            };
            match ready!(written)? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                count => self.advance(count),
            }
        }
        Pin::new(socket).poll_flush(cx)
    }

    fn advance(&mut self, mut count: usize) {
        let of_head = count.min(self.head.len() - self.written);
        self.written += of_head;
        count -= of_head;
        for piece in &mut self.body {
            let taken = count.min(piece.len());
            piece.advance(taken);
            count -= taken;
            if taken > 0 && piece.is_empty() {
                buffers::give(std::mem::take(piece));
            }
        }
    }
}

impl Drop for Relaying {
    fn drop(&mut self) {
        self.body.iter_mut().for_each(|piece| buffers::give(std::mem::take(piece)));
        if !self.cut {
            // Unless it was told of the end before.
            self.meter.end(Ended::Left);
        }
    }
}
