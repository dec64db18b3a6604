//! Bytes that a socket gave and nobody has taken yet.

use super::buffers;
use super::limits::BUFFER_BYTES;
use crate::socket::Socket;
use bytes::{BufMut, BytesMut};
use std::future::Future;
use std::io;
use std::pin::pin;
use std::task::{Context, Poll, ready};
use tokio::io::AsyncReadExt;

/// What was read, and the state of reading.
#[derive(Default)]
pub(super) struct Inbox {
    pub(super) bytes: BytesMut,
    /// The other side has ended its direction.
    pub(super) ended: bool,
    /// Size class of the next buffer.
    class: usize,
}

impl Inbox {
    /// Reads once; 0 at the end. The buffer is borrowed only when there is
    /// something to read, so that waiting costs no memory.
    pub(super) fn poll_fill(&mut self, socket: &mut Socket, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        if self.ended {
            return Poll::Ready(Ok(0));
        }
        let free = self.bytes.capacity() - self.bytes.len();
        let needs_room = free < BUFFER_BYTES[self.class] / 2;
        if needs_room {
            ready!(socket.poll_worth_reading(cx))?;
            self.make_room();
        }
        let room = self.bytes.capacity() - self.bytes.len();
        let known = if needs_room { socket.try_read(&mut (&mut self.bytes).limit(room), room) } else { None };
        let read = match known {
            Some(read) => Poll::Ready(read),
            None => {
                let mut window = (&mut self.bytes).limit(room);
                let read = pin!(socket.read_buf(&mut window));
                read.poll(cx)
            }
        };
        match read {
            Poll::Ready(Ok(0)) => self.ended = true,
            Poll::Ready(Ok(count)) if count == room => self.class = (self.class + 1).min(BUFFER_BYTES.len() - 1),
            Poll::Ready(Ok(count)) if count < BUFFER_BYTES[0] / 2 => self.class = 0,
            Poll::Pending => self.release(),
            Poll::Ready(_) => {}
        }
        read
    }

    /// The last read filled its buffer: there may be more.
    pub(super) fn was_filled(&self) -> bool {
        self.class > 0
    }

    fn make_room(&mut self) {
        if self.bytes.is_empty() {
            buffers::give(std::mem::take(&mut self.bytes));
            self.bytes = buffers::take(self.class);
        } else {
            // An unfinished head or line: it has to stay in one piece.
            self.bytes.reserve(BUFFER_BYTES[self.class].max(self.bytes.len()));
        }
    }

    /// Gives the buffer back if nothing is in it.
    fn release(&mut self) {
        if self.bytes.is_empty() && self.bytes.capacity() > 0 {
            buffers::give(std::mem::take(&mut self.bytes));
        }
    }

    /// Between messages: the next begins with a small read.
    pub(super) fn rest(&mut self) {
        self.release();
        self.class = 0;
    }
}

impl Drop for Inbox {
    fn drop(&mut self) {
        buffers::give(std::mem::take(&mut self.bytes));
    }
}
