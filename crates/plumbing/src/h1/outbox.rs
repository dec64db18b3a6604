//! Bytes on their way to a socket: small ones in one run, large ones beside
//! it, all written together.

use super::buffers;
use super::limits::FLAT_BYTES_MAX;
use crate::socket::Socket;
use bytes::{Buf, Bytes, BytesMut};
use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::AsyncWrite;

/// Pieces given to the kernel in one call.
const SLICES: usize = 32;

/// What is to be written, in order.
#[derive(Default)]
pub(super) struct Outbox {
    queue: VecDeque<Bytes>,
    tail: BytesMut,
    length: usize,
    /// Bytes that the kernel has accepted of this message.
    pub(super) written: u64,
}

impl Outbox {
    pub(super) fn len(&self) -> usize {
        self.length
    }

    pub(super) fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Adds bytes by copying them.
    pub(super) fn flat(&mut self, bytes: &[u8]) {
        if self.tail.capacity() == 0 {
            self.tail = buffers::take(0);
        }
        self.tail.extend_from_slice(bytes);
        self.length += bytes.len();
    }

    /// Adds bytes of a body.
    pub(super) fn data(&mut self, bytes: Bytes) {
        if bytes.len() <= FLAT_BYTES_MAX {
            return self.flat(&bytes);
        }
        if !self.tail.is_empty() {
            self.queue.push_back(self.tail.split().freeze());
        }
        self.length += bytes.len();
        self.queue.push_back(bytes);
    }

    /// All that is to be written, in one piece.
    pub(super) fn contents(&self) -> Vec<u8> {
        let pieces = self.queue.iter().map(|piece| &piece[..]);
        pieces.chain(std::iter::once(&self.tail[..])).flatten().copied().collect()
    }

    /// Forgets what was not written.
    pub(super) fn clear(&mut self) {
        self.queue.clear();
        self.tail.clear();
        self.length = 0;
    }

    /// Writes all there is.
    pub(super) fn poll_flush(&mut self, socket: &mut Socket, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.length > 0 {
            let count = if self.queue.is_empty() {
                ready!(Pin::new(&mut *socket).poll_write(cx, &self.tail))?
            } else {
                let mut slices = [IoSlice::new(&[]); SLICES];
                let mut used = 0;
                let pieces = self.queue.iter().map(|piece| &piece[..]).chain(std::iter::once(&self.tail[..]));
                for (slice, piece) in slices.iter_mut().zip(pieces) {
                    *slice = IoSlice::new(piece);
                    used += 1;
                }
                ready!(Pin::new(&mut *socket).poll_write_vectored(cx, &slices[..used]))?
            };
            if count == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.written += count as u64;
            self.advance(count);
        }
        // An answer may take long to come: its request's buffer is free for others.
        self.lend();
        Pin::new(socket).poll_flush(cx)
    }

    fn advance(&mut self, mut count: usize) {
        self.length -= count;
        while let Some(piece) = self.queue.front_mut() {
            if count < piece.len() {
                piece.advance(count);
                return;
            }
            count -= piece.len();
            self.queue.pop_front();
        }
        self.tail.advance(count);
    }

    fn lend(&mut self) {
        if self.length == 0 && self.tail.capacity() > 0 {
            buffers::give(std::mem::take(&mut self.tail));
        }
    }

    /// Gives memory back if nothing is in it.
    pub(super) fn release(&mut self) {
        self.lend();
        if self.queue.is_empty() && self.queue.capacity() > 0 {
            self.queue = VecDeque::new();
        }
    }
}

impl Drop for Outbox {
    fn drop(&mut self) {
        buffers::give(std::mem::take(&mut self.tail));
    }
}
