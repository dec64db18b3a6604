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
pub use instruments::{Instrument, Scope, Unit};
pub use page::answer;
pub use reading::{Attribute, Family, Point, Sample};
pub use text::{families, page};

pub(crate) use book::Book;
pub(crate) use labels::{Labels, Method, method_name};
pub(crate) use reading::Reading;

use super::component::Component;
use plumbing::clock;
use policy::compat::Compat;
use policy::moment::Moment;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// Reads the number of places taken at the app, running and waiting.
pub type Depth = Box<dyn Fn() -> u64 + Send + Sync>;

/// What a component with many revisions shows beside its own counts.
#[derive(Default)]
pub struct More {
    /// Of each revision what stands in all its series, and its counts.
    pub revisions: Vec<(Vec<(&'static str, Attribute)>, Series)>,
    /// Further series.
    pub families: Vec<Family>,
}

/// Reads that, as it is now: so a revision that is gone leaves nothing behind.
pub type ReadMore = Box<dyn Fn() -> More + Send + Sync>;

/// The counts of one of many revisions; they begin with its first request.
#[derive(Clone, Default)]
pub struct Series(Arc<OnceLock<Arc<Book>>>);

impl Series {
    pub(crate) fn book(&self, metrics: &Metrics) -> Arc<Book> {
        self.0.get_or_init(|| Arc::new(Book::new(metrics.compat, metrics.component))).clone()
    }

    fn begun(&self) -> Option<&Arc<Book>> {
        self.0.get()
    }
}

/// All counts of one component.
pub struct Metrics {
    /// Of a sidecar all; of an activator those of requests for no revision.
    pub(crate) own: Book,
    compat: Compat,
    component: Component,
    /// Not set without a limit: there is no queue then.
    depth: OnceLock<Depth>,
    /// Places when the last request started at the app, plus one; 0 = none
    /// has. Strict mode shows this instead of the truth.
    stale_depth: AtomicU64,
    more: OnceLock<ReadMore>,
    resource: Vec<(String, String)>,
    app: Option<(String, u16)>,
    began: Moment,
    dropped: Arc<Dropped>,
}

/// What the counters are told of where and what they count.
pub(crate) struct Setup {
    pub(crate) compat: Compat,
    pub(crate) component: Component,
    pub(crate) resource: Vec<(String, String)>,
    /// Host and port of the app, where there is one.
    pub(crate) app: Option<(String, u16)>,
    pub(crate) dropped: Arc<Dropped>,
}

impl Metrics {
    pub(crate) fn new(setup: Setup) -> Metrics {
        Metrics {
            own: Book::new(setup.compat, setup.component),
            compat: setup.compat,
            component: setup.component,
            depth: OnceLock::new(),
            stale_depth: AtomicU64::new(0),
            more: OnceLock::new(),
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

    /// There are revisions, and this reads what there is of them.
    pub(crate) fn read_more(&self, more: ReadMore) {
        let _ = self.more.set(more);
    }

    /// The labels of a request, but for its status; at an activator also but
    /// for its host, since it is not known yet whose it is.
    pub(crate) fn labels(&self, facts: &super::facts::RequestFacts<'_>) -> Labels {
        match self.component {
            Component::Sidecar => self.own.labels(facts),
            Component::Activator => Labels::nameless(facts),
        }
    }

    /// The same of a request that names no route.
    pub(crate) fn plain_labels(&self, method: &http::Method, host: &str, tls: bool) -> Labels {
        self.own.labels_of((method, http::Version::HTTP_11, tls), host, super::facts::NO_ROUTE)
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

#[cfg(test)]
mod tests;
