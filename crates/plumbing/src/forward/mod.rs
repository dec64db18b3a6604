//! Requests out: one request to one address, over connections that are kept.
//!
//! Each worker has its own pool: no lock that another core takes, no hop to
//! another thread.

#[cfg(feature = "hyper-http1")]
mod by_hyper;
mod connect;
mod http1;
mod http2;
mod received;

pub use connect::CONNECT_TIMEOUT;
pub use http1::Home;
pub use received::Received;

use crate::body::Body;
use crate::fds::Budget;
use crate::h1::{Break, Hold, Interim, Plain, Source};
use crate::idle::Stake;
use crate::reason::Reason;
use crate::wheel::Wheel;
use connect::Connector;
use http::{Request, Response, Version, request};
use http1::Http1;
use http2::Http2;
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::time::Instant;

/// Where a request goes, and how.
#[derive(Default)]
pub struct Trip {
    /// Sending it twice does no harm, and its body is empty.
    pub repeatable: bool,
    /// If it does harm: a connection is used again sooner than its server is
    /// known to keep it, as the reference does. Now and then a request is lost.
    pub trusting: bool,
    /// How long a server that refuses connections is tried again; with it, a
    /// repeatable request is sent once more if its server has ended meanwhile.
    pub patience: Duration,
    /// Takes interim answers (1xx) to the client.
    pub interim: Option<Interim>,
    /// Until when the body of a request that says `Expect` is held back.
    pub hold: Hold,
    /// Largest head of an answer, in bytes, where it should be smaller than
    /// what apps may need (HTTP/1 only).
    pub head_bytes_max: Option<usize>,
    /// Is told when there was a connection, the first time.
    pub connected: Option<Arc<OnceLock<Instant>>>,
}

impl Trip {
    fn stake(&self) -> Stake {
        match (self.repeatable, self.trusting) {
            (true, _) => Stake::Nothing,
            (false, false) => Stake::Request,
            (false, true) => Stake::Accepted,
        }
    }

    fn note_connected(&self) {
        if let Some(place) = &self.connected {
            let _ = place.set(Instant::now());
        }
    }
}

/// Why a request was not answered.
pub enum SendError {
    /// Nothing was sent: it may go elsewhere, whatever it is.
    NotSent {
        /// What failed.
        error: String,
    },
    /// It was sent, or may have been.
    Broken {
        /// What failed.
        error: String,
        /// Where.
        at: Break,
    },
    /// It went by HTTP/1 to a server that speaks HTTP/2 alone and could make
    /// nothing of it; its body was empty.
    OtherVersion {
        /// The request's head, as it was.
        head: Box<request::Parts>,
    },
}

impl SendError {
    /// The reason that an answer of ours gives for it, and what failed, for
    /// the log.
    pub fn into_reason(self) -> (Reason, String) {
        match self {
            SendError::NotSent { error } => (Reason::ConnectFailed, error),
            SendError::Broken { error, at: Break::RequestBody } => (Reason::Malformed, error),
            SendError::Broken { error, at: Break::BeforeAnswer } => (Reason::ResetBeforeAnswer, error),
            SendError::Broken { error, at: Break::Answer | Break::Version } => (Reason::BadAnswer, error),
            SendError::OtherVersion { .. } => (Reason::BadAnswer, "the server speaks HTTP/2".to_owned()),
        }
    }
}

/// What became of a plain request.
pub enum Answer {
    /// It has a plain answer, on a connection that has a home.
    Plain(Source, Home),
    /// It has another, or failed on its way.
    Whole(Result<Response<Received>, SendError>),
    /// There is no connection for it: nothing was sent, or nothing that does
    /// harm when it is sent again.
    NotSent(Plain),
}

/// The connections of one worker. Clones share it.
#[derive(Clone)]
pub struct Pool {
    shared: Arc<Shared>,
}

struct Shared {
    http1: Arc<Http1>,
    http2: Http2,
    /// Instead of `http1`.
    #[cfg(feature = "hyper-http1")]
    by_hyper: Option<Arc<by_hyper::ByHyper>>,
}

impl Pool {
    /// Without connections. Those that are made count against `fds`.
    pub fn new(wheel: Wheel, fds: Budget, http1: crate::http1::Http1) -> Pool {
        let connector = Connector { wheel, fds };
        #[cfg(feature = "hyper-http1")]
        let by_hyper = (http1 == crate::http1::Http1::Hyper).then(|| by_hyper::ByHyper::new(connector.clone()));
        #[cfg(not(feature = "hyper-http1"))]
        let crate::http1::Http1::Own = http1;
        let shared = Shared {
            http1: Http1::new(connector.clone()),
            http2: Http2::new(connector),
            #[cfg(feature = "hyper-http1")]
            by_hyper,
        };
        Pool { shared: Arc::new(shared) }
    }

    /// Closes idle connections that are old, or that the other side has
    /// closed, for as long as it is polled. Sleeps while there are none.
    pub async fn sweep(self) {
        #[cfg(feature = "hyper-http1")]
        if let Some(by_hyper) = &self.shared.by_hyper {
            return by_hyper.sweep().await;
        }
        self.shared.http1.sweep().await;
    }

    /// Does the server at `address` speak HTTP/2? Asked once, before the first
    /// request of that version; without an answer it is taken to.
    pub async fn speaks_http2(&self, address: SocketAddr) -> bool {
        self.shared.http2.is_spoken(address).await
    }

    /// Sends a request to `address`, in the version it came in: 2 as h2c, all
    /// else as HTTP/1.1.
    ///
    /// # Errors
    /// See [`SendError`]. A reused connection that turned out to be dead is
    /// not among them where another try is safe.
    pub async fn send(
        &self,
        address: SocketAddr,
        request: Request<Body>,
        trip: Trip,
    ) -> Result<Response<Received>, SendError> {
        if request.version() == Version::HTTP_2 {
            return self.shared.http2.send(address, request, &trip).await;
        }
        #[cfg(feature = "hyper-http1")]
        if let Some(by_hyper) = &self.shared.by_hyper {
            return by_hyper.send(address, request, trip).await;
        }
        self.shared.http1.send(address, request, trip).await
    }

    /// Sends a plain request to `address`, if there is a connection for it;
    /// `repeatable` as of a [`Trip`]. What is not sent goes the whole way.
    pub async fn call(&self, address: SocketAddr, request: Plain, repeatable: bool, now: Instant) -> Answer {
        let stake = if repeatable { Stake::Nothing } else { Stake::Request };
        self.shared.http1.call(address, request, stake, now).await
    }
}
