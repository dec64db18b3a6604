//! A connection's socket: plain, or under TLS.

use bytes::BufMut;
use rustix::net::RecvFlags;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;

/// What is read from and written to.
#[derive(Debug)]
pub enum Socket {
    /// As the kernel has it.
    Plain(TcpStream),
    /// With a client that has shaken hands.
    Tls(Box<TlsStream<TcpStream>>),
}

impl Socket {
    /// The socket below.
    pub fn tcp(&self) -> &TcpStream {
        match self {
            Socket::Plain(socket) => socket,
            Socket::Tls(stream) => stream.get_ref().0,
        }
    }

    /// Ready when a read is worth a buffer. Under TLS there may be data that
    /// the kernel knows nothing of: there it is always.
    pub(crate) fn poll_worth_reading(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Socket::Plain(socket) => socket.poll_read_ready(cx),
            Socket::Tls(_) => Poll::Ready(Ok(())),
        }
    }

    /// Reads once, if the runtime has just said that it can be done; `None`:
    /// it cannot, or only by polling. `room`: bytes that `buffer` takes.
    pub(crate) fn try_read(&self, buffer: &mut impl BufMut, room: usize) -> Option<io::Result<usize>> {
        let Socket::Plain(socket) = self else { return None };
        let read = match socket.try_read_buf(buffer) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return None,
            read => read,
        };
        if matches!(read, Ok(count) if count > 0 && count < room) {
            // The kernel has no more, and will say so when it has: as polling
            // does, so that the next look costs no call.
            let _ = socket.try_io(Interest::READABLE, || Err::<(), _>(io::ErrorKind::WouldBlock.into()));
        }
        Some(read)
    }

    /// True if the kernel has bytes, by asking itself and not the runtime.
    pub(crate) fn has_unread(&self) -> bool {
        let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
        matches!(rustix::net::recv(self.tcp(), &mut [0; 1], flags), Ok((1.., _)))
    }

    /// True if there is something to be read, as far as the runtime knows.
    pub(crate) fn has_input(&self) -> bool {
        self.tcp().poll_read_ready(&mut Context::from_waker(Waker::noop())).is_ready()
    }
}

impl From<TcpStream> for Socket {
    fn from(socket: TcpStream) -> Socket {
        Socket::Plain(socket)
    }
}

impl AsyncRead for Socket {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Socket::Plain(socket) => Pin::new(socket).poll_read(cx, buf),
            Socket::Tls(stream) => Pin::new(stream).poll_read(cx, buf),
        }
    }
}

impl AsyncWrite for Socket {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Socket::Plain(socket) => Pin::new(socket).poll_write(cx, buf),
            Socket::Tls(stream) => Pin::new(stream).poll_write(cx, buf),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Socket::Plain(socket) => Pin::new(socket).poll_write_vectored(cx, bufs),
            Socket::Tls(stream) => Pin::new(stream).poll_write_vectored(cx, bufs),
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Socket::Plain(_) => Poll::Ready(Ok(())),
            Socket::Tls(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Socket::Plain(socket) => Pin::new(socket).poll_shutdown(cx),
            Socket::Tls(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}
