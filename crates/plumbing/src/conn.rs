//! One accepted connection: its socket, and what is known of it.

use parking_lot::Mutex;
use rustix::event::{PollFd, PollFlags, Timespec};
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::Instant;

use crate::worker::Worker;

/// The client's side of a connection, as request tasks see it.
pub struct Caller {
    /// Address of the peer.
    pub peer: SocketAddr,
    /// The worker that serves the connection.
    pub worker: Worker,
    /// True when descriptors have run short: answer `fd_limit` and close.
    pub fds_scarce: bool,
    pub(crate) link: Arc<Link>,
}

impl Caller {
    /// Address of the peer, without port, IPv4 where it is one.
    pub fn ip(&self) -> IpAddr {
        self.peer.ip().to_canonical()
    }

    /// Ready once the client has closed or reset the connection. For requests
    /// whose body is no longer read: those that are read notice by reading.
    /// Looks every 25 ms, since data that waits in the socket hides the event.
    pub async fn left(&self) {
        loop {
            self.worker.wheel().sleep(Duration::from_millis(25)).await;
            if self.link.peer_has_closed() {
                return;
            }
            if self.link.local.is_some_and(|local| self.worker.sockets().peer_is_gone(self.peer, local)) {
                return;
            }
        }
    }
}

/// State shared by a connection's socket, its driver and its requests.
pub(crate) struct Link {
    socket: Mutex<TcpStream>,
    local: Option<SocketAddr>,
    /// Requests whose answers have not ended.
    in_flight: AtomicU32,
    /// When the head that is being read began to come.
    head_since: Mutex<Option<Instant>>,
    /// Over HTTP/2 bytes come without a request; the head limit is off.
    pub(crate) http2: AtomicBool,
}

impl Link {
    pub(crate) fn new(socket: TcpStream) -> Arc<Link> {
        Arc::new(Link {
            local: socket.local_addr().ok(),
            socket: Mutex::new(socket),
            in_flight: AtomicU32::new(0),
            head_since: Mutex::new(Some(Instant::now())),
            http2: AtomicBool::new(false),
        })
    }

    /// A whole head has come.
    pub(crate) fn begin_request(self: &Arc<Self>) -> Busy {
        self.in_flight.fetch_add(1, Ordering::Relaxed);
        *self.head_since.lock() = None;
        Busy(self.clone())
    }

    /// True while an answer has not ended, or the last bytes of one over
    /// HTTP/1 may be on their way still: those go at the client's pace.
    pub(crate) fn is_busy(&self) -> bool {
        let between_requests = self.http2.load(Ordering::Relaxed) || self.head_since.lock().is_some();
        self.in_flight.load(Ordering::Relaxed) > 0 || !between_requests
    }

    /// Since when an unfinished head is being read.
    pub(crate) fn head_since(&self) -> Option<Instant> {
        if self.http2.load(Ordering::Relaxed) { None } else { *self.head_since.lock() }
    }

    fn peer_has_closed(&self) -> bool {
        let socket = self.socket.lock();
        let mut fds = [PollFd::new(&*socket, PollFlags::RDHUP)];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        let Ok(1) = rustix::event::poll(&mut fds, Some(&now)) else { return false };
        fds[0].revents().intersects(PollFlags::RDHUP | PollFlags::HUP | PollFlags::ERR)
    }
}

/// Counts a request of a connection until its answer has ended.
pub(crate) struct Busy(Arc<Link>);

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The socket, for the HTTP library.
pub(crate) struct Socket(pub(crate) Arc<Link>);

impl AsyncRead for Socket {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<std::io::Result<()>> {
        let before = buf.filled().len();
        let read = Pin::new(&mut *self.0.socket.lock()).poll_read(cx, buf);
        if buf.filled().len() > before && self.0.in_flight.load(Ordering::Relaxed) == 0 {
            self.0.head_since.lock().get_or_insert_with(Instant::now);
        }
        read
    }
}

impl AsyncWrite for Socket {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<std::io::Result<usize>> {
        Pin::new(&mut *self.0.socket.lock()).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[std::io::IoSlice<'_>],
    ) -> Poll<std::io::Result<usize>> {
        Pin::new(&mut *self.0.socket.lock()).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut *self.0.socket.lock()).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut *self.0.socket.lock()).poll_shutdown(cx)
    }
}
