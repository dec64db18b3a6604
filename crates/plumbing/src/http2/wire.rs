//! The socket under an HTTP/2 connection.
//!
//! The `h2` crate writes each larger piece of a body with a system call of its
//! own, and reads into whatever room its buffer has left. Here what is written
//! is gathered until whoever drives the connection has nothing more to say for
//! now (see [`Wire::turn`]), and what is read is read in large pieces. Buffers
//! are lent by the thread while they hold something.

use super::merge::Merger;
use crate::socket::Socket;
use bytes::Bytes;
use parking_lot::Mutex;
use std::cell::RefCell;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// What is gathered before it is written, at most; read at a time.
const BUFFER_BYTES: usize = 32 * 1024;
/// Empty buffers kept for a thread.
const BUFFERS_KEPT: usize = 4;
/// Pieces of one write: what was gathered, and what goes behind it.
const SLICES: usize = 4;

/// A socket, shared by the connection on it and by whoever drives that.
#[derive(Clone)]
pub(crate) struct Wire {
    shared: Arc<Mutex<State>>,
}

struct State {
    socket: Socket,
    /// Read before the connection began.
    early: Bytes,
    merger: Merger,
    inbox: Option<Buffer>,
    outbox: Option<Buffer>,
    /// The socket has been found empty in this turn.
    dry: bool,
}

impl Wire {
    /// Of a client that has sent its preface, with what has been read already.
    pub(crate) fn of_client(socket: Socket, early: Bytes) -> Wire {
        let mut merger = Merger::after_preface();
        merger.follow(&early);
        Wire::new(socket, early, merger)
    }

    /// Of a server, which has sent nothing yet.
    pub(crate) fn of_server(socket: TcpStream) -> Wire {
        Wire::new(Socket::Plain(socket), Bytes::new(), Merger::new())
    }

    fn new(socket: Socket, early: Bytes, merger: Merger) -> Wire {
        let state = State { socket, early, merger, inbox: None, outbox: None, dry: false };
        Wire { shared: Arc::new(Mutex::new(state)) }
    }

    /// Polls the connection once, and then writes what it had to say. All
    /// polls of a connection go through here: its own flush writes nothing.
    ///
    /// # Errors
    /// The connection's; the socket's if writing fails.
    pub(crate) fn turn<T>(
        &self,
        cx: &mut Context<'_>,
        poll: impl FnOnce(&mut Context<'_>) -> Poll<Result<T, h2::Error>>,
    ) -> Poll<Result<T, Fault>> {
        self.shared.lock().dry = false;
        let polled = poll(cx);
        match self.shared.lock().poll_send(cx) {
            Poll::Ready(Err(error)) if polled.is_pending() => Poll::Ready(Err(error.into())),
            _ => polled.map_err(Fault::from),
        }
    }
}

/// Why a connection ended before its time.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Fault {
    /// One side broke the protocol, or ended the connection.
    #[error("{0}")]
    Protocol(#[from] h2::Error),
    /// The socket failed.
    #[error("{0}")]
    Socket(#[from] io::Error),
}

impl State {
    /// Writes what was gathered.
    fn poll_send(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while let Some(out) = &mut self.outbox {
            let count = ready!(Pin::new(&mut self.socket).poll_write(cx, out.filled()))?;
            if count == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            out.start += count;
            if out.filled().is_empty() {
                self.outbox = None;
            }
        }
        Pin::new(&mut self.socket).poll_flush(cx)
    }

    /// Writes what was gathered, and `more` behind it. Ready with how much of
    /// `more` went out.
    fn poll_write_behind(&mut self, cx: &mut Context<'_>, more: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        loop {
            let Some(out) = &mut self.outbox else {
                return Pin::new(&mut self.socket).poll_write_vectored(cx, more);
            };
            let gathered = out.filled().len();
            let mut slices = [IoSlice::new(&[]); SLICES];
            slices[0] = IoSlice::new(out.filled());
            let behind = more.iter().zip(&mut slices[1..]);
            behind.for_each(|(piece, slice)| *slice = IoSlice::new(piece));
            let count = ready!(Pin::new(&mut self.socket).poll_write_vectored(cx, &slices))?;
            if count == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            if count < gathered {
                out.start += count;
                continue;
            }
            self.outbox = None;
            if count > gathered {
                return Poll::Ready(Ok(count - gathered));
            }
        }
    }

    fn gather(&mut self, pieces: &[IoSlice<'_>]) -> Option<usize> {
        let total = pieces.iter().map(|piece| piece.len()).sum();
        let room = self.outbox.as_ref().map_or(BUFFER_BYTES, Buffer::room);
        if total > room {
            return None;
        }
        if total > 0 {
            let out = self.outbox.get_or_insert_with(Buffer::take);
            pieces.iter().for_each(|piece| out.push(piece));
        }
        Some(total)
    }

    fn poll_read(&mut self, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if !self.early.is_empty() {
            let piece = self.early.split_to(self.early.len().min(into.remaining()));
            into.put_slice(&piece);
            return Poll::Ready(Ok(()));
        }
        if self.inbox.is_none() {
            if self.dry {
                return Poll::Pending;
            }
            let mut buffer = Buffer::take();
            let mut space = ReadBuf::new(&mut buffer.bytes);
            let polled = Pin::new(&mut self.socket).poll_read(cx, &mut space);
            buffer.end = space.filled().len();
            self.dry = polled.is_pending();
            ready!(polled)?;
            let mut merged = Buffer::take();
            self.inbox = match self.merger.merge(buffer.filled(), &mut merged.bytes) {
                Some(count) => {
                    merged.end = count;
                    Some(merged)
                }
                None => Some(buffer),
            };
        }
        if let Some(read) = &mut self.inbox {
            let count = read.filled().len().min(into.remaining());
            into.put_slice(&read.filled()[..count]);
            read.start += count;
            if read.filled().is_empty() {
                self.inbox = None;
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncRead for Wire {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        self.shared.lock().poll_read(cx, into)
    }
}

impl AsyncWrite for Wire {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(cx, &[IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let mut state = self.shared.lock();
        match state.gather(pieces) {
            Some(count) => Poll::Ready(Ok(count)),
            None => state.poll_write_behind(cx, pieces),
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    /// Nothing: see [`Wire::turn`].
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut state = self.shared.lock();
        ready!(state.poll_send(cx))?;
        Pin::new(&mut state.socket).poll_shutdown(cx)
    }
}

/// Bytes on their way, `start..end` of them; of the thread's when empty.
struct Buffer {
    bytes: Box<[u8]>,
    start: usize,
    end: usize,
}

thread_local! {
    static KEPT: RefCell<Vec<Box<[u8]>>> = const { RefCell::new(Vec::new()) };
}

impl Buffer {
    fn take() -> Buffer {
        let kept = KEPT.try_with(|kept| kept.borrow_mut().pop()).ok().flatten();
        let bytes = kept.unwrap_or_else(|| vec![0; BUFFER_BYTES].into());
        Buffer { bytes, start: 0, end: 0 }
    }

    fn filled(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    fn room(&self) -> usize {
        self.bytes.len() - self.end
    }

    fn push(&mut self, piece: &[u8]) {
        self.bytes[self.end..][..piece.len()].copy_from_slice(piece);
        self.end += piece.len();
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let bytes = std::mem::take(&mut self.bytes);
        // On a thread that ends it is simply dropped.
        let _ = KEPT.try_with(|kept| {
            let mut kept = kept.borrow_mut();
            if kept.len() < BUFFERS_KEPT {
                kept.push(bytes);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::poll_fn;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    async fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let ours = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        (ours, listener.accept().await.unwrap().0)
    }

    #[tokio::test]
    async fn what_is_written_in_a_turn_goes_out_at_its_end() {
        let (ours, mut peer) = pair().await;
        let wire = Wire::of_server(ours);
        let mut inner = wire.clone();
        let turn = poll_fn(|cx| {
            wire.turn(cx, |cx| {
                for _ in 0..3 {
                    let pieces = [IoSlice::new(&[1; 9]), IoSlice::new(&[2; 991])];
                    let written = Pin::new(&mut inner).poll_write_vectored(cx, &pieces);
                    assert!(matches!(written, Poll::Ready(Ok(1000))));
                    assert!(Pin::new(&mut inner).poll_flush(cx).is_ready());
                }
                let early = peer.try_read(&mut [0; 1]).unwrap_err();
                assert_eq!(early.kind(), io::ErrorKind::WouldBlock);
                Poll::Ready(Ok(()))
            })
        });
        turn.await.unwrap();
        let mut all = [0; 3000];
        peer.read_exact(&mut all).await.unwrap();
        assert!(all.chunks(1000).all(|piece| piece[..9] == [1; 9] && piece[9..] == [2; 991]));
    }

    #[tokio::test]
    async fn all_of_it_arrives_in_order_however_slow_the_peer_is() {
        const TOTAL: usize = 8 << 20;
        let (ours, mut peer) = pair().await;
        let wire = Wire::of_server(ours);
        let mut inner = wire.clone();
        let data: Vec<u8> = (0..TOTAL).map(|at| (at % 251) as u8).collect();
        let (mut sent, mut draw, mut waited) = (0, fastrand::Rng::with_seed(5), false);
        let write = poll_fn(|cx| {
            wire.turn(cx, |cx| {
                while sent < TOTAL {
                    let most = *draw.choice(&[10, 1000, 20_000, 70_000]).unwrap();
                    let piece = &data[sent..TOTAL.min(sent + draw.usize(1..most))];
                    match Pin::new(&mut inner).poll_write(cx, piece) {
                        Poll::Ready(count) => sent += count.unwrap(),
                        Poll::Pending => {
                            waited = true;
                            return Poll::Pending;
                        }
                    }
                }
                Poll::Ready(Ok(()))
            })
        });
        let mut got = Vec::new();
        let (written, _) = tokio::join!(
            async {
                write.await.unwrap();
                wire.clone().shutdown().await
            },
            async { peer.read_to_end(&mut got).await.unwrap() },
        );
        written.unwrap();
        assert!(waited && got == data);
    }

    #[tokio::test]
    async fn what_was_read_before_comes_first_and_then_the_socket_to_its_end() {
        let (ours, mut peer) = pair().await;
        let wire = Wire::of_client(Socket::Plain(ours), Bytes::from_static(b"PRI * HT"));
        let mut inner = wire.clone();
        // One large frame, as far as heads go.
        let rest: Vec<u8> = (0..100_000_u32).map(|at| 64 + (at % 7) as u8).collect();
        let mut got = Vec::new();
        let read = poll_fn(|cx| {
            wire.turn(cx, |cx| {
                loop {
                    let mut space = [0; 300];
                    let mut space = ReadBuf::new(&mut space);
                    match Pin::new(&mut inner).poll_read(cx, &mut space) {
                        Poll::Pending => return Poll::Pending,
                        Poll::Ready(read) => read.unwrap(),
                    }
                    if space.filled().is_empty() {
                        return Poll::Ready(Ok(()));
                    }
                    got.extend_from_slice(space.filled());
                }
            })
        });
        let (read, ()) = tokio::join!(read, async {
            peer.write_all(&rest).await.unwrap();
            drop(peer);
        });
        read.unwrap();
        assert_eq!(got, [b"PRI * HT", &rest[..]].concat());
    }
}
