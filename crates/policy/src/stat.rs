//! One pod's second of load, before any encoding.

use crate::moment::Moment;
use crate::revision::RevisionId;
use std::sync::Arc;

/// What one sidecar or one activator saw of a revision in its last period.
#[derive(Clone, Debug, PartialEq)]
pub struct Stat {
    /// Who reports: a pod of the revision, or an activator.
    pub pod_name: Arc<str>,
    /// Requests in progress on average, waiting ones included.
    pub average_concurrency: f64,
    /// The part of them that came through an activator.
    pub average_proxied_concurrency: f64,
    /// Requests that arrived, per second.
    pub request_count: f64,
    /// The part of them that came through an activator.
    pub proxied_request_count: f64,
}

/// Stats that travel together.
#[derive(Clone, Debug, PartialEq)]
pub struct StatBatch {
    /// When they were taken.
    pub at: Moment,
    /// One entry for each revision and reporter.
    pub stats: Vec<(RevisionId, Stat)>,
    /// True when this is the first sign of load at zero, or of more than was
    /// ordered pods for: decide at once.
    pub poke: bool,
}
