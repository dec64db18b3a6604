//! One accepted connection: what is known of it.

use crate::h1::{Doubt, Guess};
use crate::worker::Worker;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// The client's side of a connection, as request tasks see it.
pub struct Caller {
    /// Address of the peer.
    pub peer: SocketAddr,
    /// The worker that serves the connection.
    pub worker: Worker,
    /// True when descriptors have run short: answer `fd_limit` and close.
    pub fds_scarce: bool,
    /// The connection is under TLS.
    pub tls: bool,
    pub(crate) local: Option<SocketAddr>,
}

impl Caller {
    /// Address of the peer, without port, IPv4 where it is one.
    pub fn ip(&self) -> IpAddr {
        self.peer.ip().to_canonical()
    }

    /// Has the client gone? Of one on this machine the kernel knows; one
    /// elsewhere has to be asked.
    pub(crate) fn guess(&self, _: Doubt) -> Guess {
        if !self.ip().is_loopback() {
            return Guess::Unknown;
        }
        let gone = self.local.is_some_and(|local| self.worker.sockets().peer_is_gone(self.peer, local));
        if gone { Guess::Gone } else { Guess::Here }
    }
}

/// Requests of a connection whose answers have not ended. Clones share it.
#[derive(Clone, Default)]
pub(crate) struct Activity(Arc<AtomicU32>);

impl Activity {
    pub(crate) fn begin(&self) -> Busy {
        self.0.fetch_add(1, Ordering::Relaxed);
        Busy(self.clone())
    }

    pub(crate) fn is_busy(&self) -> bool {
        self.0.load(Ordering::Relaxed) > 0
    }
}

/// Counts a request until its answer has ended.
pub(crate) struct Busy(Activity);

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}
