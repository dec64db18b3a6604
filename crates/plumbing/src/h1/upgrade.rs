//! Connections that have left HTTP behind: a 101, or an accepted CONNECT.

use crate::socket::Socket;
use bytes::{Buf, Bytes};
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::oneshot;

/// A socket, and what had been read from it beyond the head: the other side
/// need not have waited for the switch.
#[derive(Debug)]
pub struct Upgraded {
    socket: Socket,
    early: Bytes,
}

impl Upgraded {
    pub(crate) fn new(socket: Socket, early: Bytes) -> Upgraded {
        Upgraded { socket, early }
    }

    /// The socket, and the bytes that come before all that it will give.
    pub fn into_parts(self) -> (Socket, Bytes) {
        (self.socket, self.early)
    }
}

impl AsyncRead for Upgraded {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.early.is_empty() {
            return Pin::new(&mut self.socket).poll_read(cx, buf);
        }
        let count = self.early.len().min(buf.remaining());
        buf.put_slice(&self.early[..count]);
        self.early.advance(count);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Upgraded {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.socket).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.socket).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(cx)
    }
}

/// The client's connection, once our answer has switched protocols; fails if
/// it did not, or the connection ended before.
#[derive(Debug)]
pub struct OnUpgrade(pub(super) oneshot::Receiver<Upgraded>);

impl OnUpgrade {
    /// Whoever has the other end gives it.
    #[cfg(feature = "hyper-http1")]
    pub(crate) fn by(receiver: oneshot::Receiver<Upgraded>) -> OnUpgrade {
        OnUpgrade(receiver)
    }
}

/// The connection did not change its protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the connection did not change its protocol")]
pub struct NotUpgraded;

impl Future for OnUpgrade {
    type Output = Result<Upgraded, NotUpgraded>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(cx).map_err(|_| NotUpgraded)
    }
}
