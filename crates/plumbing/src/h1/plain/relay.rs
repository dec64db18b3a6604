//! A plain answer on its way from an app to a client.

use super::super::buffers;
use super::super::client::Connection;
use super::super::exchange::Sent;
use super::super::inbox::Inbox;
use super::super::limits::FLAT_BYTES_MAX;
use super::super::link::Link;
use super::answer::Head;
use super::heads;
use crate::body::Body;
use crate::conn::Busy;
use crate::deadline::Limits;
use crate::forward::Home;
use crate::meter::{Ended, Meter, Metered};
use bytes::{Buf, BytesMut};
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::AsyncWrite;
use tokio::time::Instant;

/// A plain answer whose head has come, on its connection.
pub struct Source {
    connection: Connection<Body>,
    head: Head,
}

impl Source {
    pub(super) fn new(connection: Connection<Body>, head: Head) -> Source {
        Source { connection, head }
    }

    /// When its head had come.
    pub fn came_at(&self) -> Instant {
        self.head.at
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

/// A plain answer on its way to the client. Dropped, it ends the exchange.
pub struct Relay {
    /// `None` once all of it has come, or will not.
    from: Option<From>,
    /// Bytes of the body that have not come.
    left: u64,
    head: Head,
    /// Bytes of the head, and of a small body behind it, that were written.
    written: usize,
    /// What has come of the body and is not written, in order.
    body: [BytesMut; 2],
    cut: bool,
    meter: Metered,
    busy: Option<Busy>,
}

struct From {
    connection: Connection<Body>,
    home: Home,
    limits: Limits,
}

impl From {
    fn inbox(&mut self) -> &mut Inbox {
        &mut self.connection.0.inbox
    }
}

impl Relay {
    /// Of an answer on a connection with this home, within these limits.
    /// `meter` is told of its body, and when all of it has come: slot and count
    /// of its request are let go of then, whatever the client still has to take.
    pub fn new(source: Source, home: Home, limits: Limits, meter: Box<dyn Meter>) -> Relay {
        let Source { connection, head } = source;
        Relay {
            from: Some(From { connection, home, limits }),
            left: head.length,
            head,
            written: 0,
            body: [BytesMut::new(), BytesMut::new()],
            cut: false,
            meter: Metered::by(meter),
            busy: None,
        }
    }

    /// Until it is over.
    pub(crate) fn keep(&mut self, busy: Busy) {
        self.busy = Some(busy);
    }

    /// Begins to pass it on; `keep_alive`: of the client's connection.
    pub(super) fn begin(&mut self, keep_alive: bool) {
        let at = self.head.at;
        self.head.finish(keep_alive);
        self.draw(at);
    }

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
            Ok(1..) => self.draw(Instant::now()),
            Ok(0) | Err(_) => return Poll::Ready(Some(Err(Ended::Broken))),
        }
        Poll::Ready(Some(Ok(())))
    }

    /// Takes what was read, then. With the last byte the app's part is over.
    fn draw(&mut self, at: Instant) {
        let Some(from) = &mut self.from else { return };
        let bytes = &mut from.connection.0.inbox.bytes;
        if bytes.len() as u64 > self.left {
            // Whoever said more than it was asked for may say anything next.
            self.head.keep_alive = false;
            bytes.truncate(usize::try_from(self.left).unwrap_or(usize::MAX));
        }
        self.left -= bytes.len() as u64;
        if !bytes.is_empty() {
            self.meter.passed(bytes.len());
            from.limits.answered_at(at);
        }
        let first = self.body[0].is_empty() && self.body[1].is_empty();
        if first && self.written == 0 && bytes.len() <= FLAT_BYTES_MAX {
            self.head.out.extend_from_slice(bytes);
            bytes.clear();
        } else {
            self.body[usize::from(!first)] = std::mem::take(bytes);
        }
        if self.left == 0
            && let Some(From { connection, home, .. }) = self.from.take()
        {
            if self.head.keep_alive && !connection.0.inbox.ended && connection.0.is_sent() {
                home.put_back(connection.rest(), at);
            }
            self.meter.end_at(Ended::Whole, at);
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
        let reason = ready!(from.limits.poll_passed(cx));
        self.fail(Ended::Limit(reason));
        Poll::Ready(Sent::Cut)
    }

    fn is_written(&self) -> bool {
        self.written == self.head.out.len() && self.body.iter().all(BytesMut::is_empty)
    }

    fn poll_write(&mut self, link: &Link, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut state = link.state();
        ready!(state.poll_flush_interim(cx))?;
        let Some(socket) = &mut state.socket else { return Poll::Ready(Err(io::ErrorKind::NotConnected.into())) };
        while !self.is_written() {
            let socket = Pin::new(&mut *socket);
            let pieces = [&self.head.out[self.written..], &self.body[0], &self.body[1]];
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
        let of_head = count.min(self.head.out.len() - self.written);
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

impl Drop for Relay {
    fn drop(&mut self) {
        heads::give(std::mem::take(&mut self.head.out));
        self.body.iter_mut().for_each(|piece| buffers::give(std::mem::take(piece)));
        if !self.cut {
            // Unless it was told of the end before.
            self.meter.end(Ended::Left);
        }
    }
}
