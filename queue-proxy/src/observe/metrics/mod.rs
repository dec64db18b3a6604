//! Counts of requests: a fixed set of instruments, exact on the wire.
//!
//! Names, labels and bounds are those of the reference, in the text form and
//! in OTLP alike. A table of our own instead of the `metrics` facade: the
//! series are known, each request touches up to six of them with the same
//! labels, and the facade would look each of them up by strings, keep raw
//! samples until somebody folds them, and could say neither scopes nor
//! `target_info`.
//!
//! What a request costs: its host and route tag become small numbers when it
//! begins, and at its end one look-up per label set finds the counters. Both
//! look-ups are in a sheet of the thread's own, so that locks are not fought over.

mod book;
mod counters;
mod histogram;
mod instruments;
mod labels;
mod names;
mod page;
mod process;
mod reading;
mod text;

pub use counters::Dropped;
pub use page::answer;

pub(crate) use instruments::Scope;
pub(crate) use labels::{Labels, Method, method_name};
pub(crate) use reading::{Attribute, Family, Point, Reading, Sample};

use book::Book;
use plumbing::clock;
use policy::compat::Compat;
use policy::moment::Moment;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// Reads the number of places taken at the app, running and waiting.
pub type Depth = Box<dyn Fn() -> u64 + Send + Sync>;

/// All counts of one sidecar.
pub struct Metrics {
    book: Book,
    compat: Compat,
    /// Not set without a limit: there is no queue then.
    depth: OnceLock<Depth>,
    /// Places when the last request started at the app, plus one; 0 = none
    /// has. Strict mode shows this instead of the truth.
    stale_depth: AtomicU64,
    resource: Vec<(String, String)>,
    app: (String, u16),
    began: Moment,
    dropped: Arc<Dropped>,
}

/// What the counters are told of where and what they count.
pub(crate) struct Setup {
    pub(crate) compat: Compat,
    pub(crate) resource: Vec<(String, String)>,
    /// Host and port of the app.
    pub(crate) app: (String, u16),
    pub(crate) dropped: Arc<Dropped>,
}

impl Metrics {
    pub(crate) fn new(setup: Setup) -> Metrics {
        Metrics {
            book: Book::new(setup.compat),
            compat: setup.compat,
            depth: OnceLock::new(),
            stale_depth: AtomicU64::new(0),
            resource: setup.resource,
            app: setup.app,
            began: clock::now(),
            dropped: setup.dropped,
        }
    }

    /// There is a queue, and this reads it.
    pub(crate) fn read_depth(&self, depth: Depth) {
        let _ = self.depth.set(depth);
    }

    /// The labels of a request, but for its status.
    pub(crate) fn labels(&self, facts: &super::facts::RequestFacts<'_>) -> Labels {
        self.book.labels(facts)
    }

    /// A request has ended.
    pub(crate) fn served(&self, labels: Labels, status: u16, took: Duration, request: u64, response: u64) {
        self.book.served(labels.with_status(status), |series| {
            series.duration.record(nanos(took));
            series.request_size.record(request);
            series.response_size.record(response);
        });
    }

    /// The app has answered, or has failed to (status 0).
    pub(crate) fn called(&self, labels: Labels, status: u16, took: Duration, request: u64) {
        self.book.called(labels.with_status(status), |series| {
            series.duration.record(nanos(took));
            series.request_size.record(request);
        });
    }

    /// A request that had a place at the app has ended.
    pub(crate) fn invoked(&self, status: u16, took: Duration) {
        self.book.invoked(status, |duration| duration.record(nanos(took)));
    }

    /// A request starts at the app.
    pub(crate) fn started(&self) {
        if let (Compat::Strict, Some(depth)) = (self.compat, self.depth.get()) {
            self.stale_depth.store(depth() + 1, Ordering::Relaxed);
        }
    }

    fn depth(&self) -> Option<u64> {
        match (self.compat, self.depth.get()) {
            (_, None) => None,
            (Compat::Better, Some(depth)) => Some(depth()),
            (Compat::Strict, Some(_)) => self.stale_depth.load(Ordering::Relaxed).checked_sub(1),
        }
    }
}

fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
