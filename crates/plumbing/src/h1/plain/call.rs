//! A plain request on a connection that is kept, up to the head of its answer.

use super::super::client::{Connection, Wire};
use super::answer::{self, Head, Seen};
use super::relay::Source;
use super::request::Plain;
use crate::body::Body;
use bytes::Buf;
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::AsyncWrite;

/// What became of a plain request.
pub enum Called {
    /// It has a plain answer, whose body is still to be read.
    Answered(Source),
    /// What came is not a plain answer's head: read it the whole way.
    Whole(Connection<Body>),
    /// Nothing was sent, or nothing of it was read: it may go elsewhere.
    NotSent,
    /// It was sent, or may have been; what failed.
    Broken(String),
}

impl Connection<Body> {
    /// Sends a plain request on a connection that is not stale, and waits for
    /// the head of its answer. Dropping the future closes the connection.
    pub async fn call(mut self, plain: &Plain) -> Called {
        let mut calling = Calling { pieces: plain.pieces(), written: 0, deaf: false };
        match poll_fn(|cx| calling.poll(&mut self.0, cx)).await {
            Came::Plain(head) => Called::Answered(Source::new(self, head)),
            Came::Other => {
                self.0.take_over(calling.pieces, calling.deaf);
                Called::Whole(self)
            }
            Came::NotSent => Called::NotSent,
            Came::Broken(error) => Called::Broken(error),
        }
    }
}

enum Came {
    Plain(Head),
    Other,
    NotSent,
    Broken(String),
}

struct Calling<'p> {
    pieces: [&'p [u8]; 3],
    written: u64,
    /// Writing failed: what the other side had said before may still come.
    deaf: bool,
}

impl Calling<'_> {
    fn poll(&mut self, wire: &mut Wire<Body>, cx: &mut Context<'_>) -> Poll<Came> {
        if !self.deaf
            && let Poll::Ready(Err(_)) = self.poll_write(wire, cx)
        {
            if self.written == 0 {
                return Poll::Ready(Came::NotSent);
            }
            self.deaf = true;
        }
        loop {
            match ready!(wire.inbox.poll_fill(&mut wire.socket, cx)) {
                Ok(1..) => {}
                Ok(0) if wire.inbox.bytes.is_empty() && wire.is_unread(self.written) => {
                    return Poll::Ready(Came::NotSent);
                }
                Ok(0) if wire.inbox.bytes.is_empty() => return Poll::Ready(Came::Broken("EOF".to_owned())),
                Ok(0) => return Poll::Ready(Came::Other),
                Err(error) => return Poll::Ready(Came::Broken(error.to_string())),
            }
            match answer::read(&wire.inbox.bytes) {
                Seen::Part if !wire.inbox.was_filled() => {}
                Seen::Plain(head) if self.is_written() => {
                    wire.inbox.bytes.advance(head.bytes);
                    return Poll::Ready(Came::Plain(head));
                }
                _ => return Poll::Ready(Came::Other),
            }
        }
    }

    fn is_written(&self) -> bool {
        self.pieces.iter().all(|piece| piece.is_empty())
    }

    fn poll_write(&mut self, wire: &mut Wire<Body>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.is_written() {
            let socket = Pin::new(&mut wire.socket);
            let mut count = ready!(match self.pieces {
                [head, [], []] => socket.poll_write(cx, head),
                [head, first, second] => socket.poll_write_vectored(cx, &[head, first, second].map(IoSlice::new)),
            })?;
            if count == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.written += count as u64;
            for piece in &mut self.pieces {
                let taken = count.min(piece.len());
                *piece = &piece[taken..];
                count -= taken;
            }
        }
        Pin::new(&mut wire.socket).poll_flush(cx)
    }
}
