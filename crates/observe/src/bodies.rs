//! A watch goes with the bodies of its request, and ends with the answer's.

use super::watch::{End, Outcome, Watch};
use http::Response;
use hyper::body::Body as _;
use plumbing::body::Body;
use plumbing::clock;
use plumbing::meter::{Ended, Meter};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::time::Instant;

impl Watch {
    /// Counts the request's body as it is read.
    pub fn reads(&mut self, body: Body) -> Body {
        if self.is_off() || body.is_end_stream() {
            return body;
        }
        match self.reader() {
            Some(bytes) => body.metered(Box::new(Read(bytes))),
            None => body,
        }
    }

    /// An answer of ours, which is known in full: it ends here.
    pub fn answers(self, response: Response<Body>, end: End) -> Response<Body> {
        if !self.is_off() {
            let response_bytes = response.body().size_hint().exact().unwrap_or_default();
            self.finish(Outcome { status: response.status().as_u16(), end, response_bytes });
        }
        response
    }

    /// An answer of the app's: it ends with its body.
    pub fn passes_on(self, response: Response<Body>) -> Response<Body> {
        if self.is_off() {
            return response;
        }
        let written = Written { watch: self, status: response.status().as_u16(), bytes: 0 };
        response.map(|body| body.metered(Box::new(written)))
    }

    /// To be kept for as long as an upgraded connection lasts.
    pub fn tunnels(self) -> Tunnel {
        Tunnel(Some(self))
    }
}

impl From<Ended> for End {
    fn from(how: Ended) -> End {
        match how {
            Ended::Whole => End::Whole,
            Ended::Broken => End::Cut,
            Ended::Limit(_) => End::TimedOut,
            Ended::Left => End::ClientGone,
        }
    }
}

struct Read(Arc<AtomicU64>);

impl Meter for Read {
    fn passed(&mut self, bytes: usize) {
        self.0.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    fn ended(self: Box<Self>, _: Ended, _: Instant) {}
}

struct Written {
    watch: Watch,
    status: u16,
    bytes: u64,
}

impl Meter for Written {
    fn passed(&mut self, bytes: usize) {
        self.bytes += bytes as u64;
    }

    fn ended(self: Box<Self>, how: Ended, at: Instant) {
        let Written { watch, status, bytes } = *self;
        watch.finish_at(Outcome { status, end: how.into(), response_bytes: bytes }, clock::at(at));
    }
}

/// The watch of an upgraded connection.
pub struct Tunnel(Option<Watch>);

impl Drop for Tunnel {
    fn drop(&mut self) {
        if let Some(watch) = self.0.take() {
            watch.finish(Outcome { status: 101, end: End::Tunnel, response_bytes: 0 });
        }
    }
}
