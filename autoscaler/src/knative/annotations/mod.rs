//! The annotations by which a revision says how it scales: which there are
//! ([`keys`]), what is admitted ([`admit()`]), and what becomes of them at run
//! time together with the config ([`resolve()`]). Autoscaler reference,
//! sections 4 and 5.

mod admit;
pub mod keys;
mod read;
mod resolve;

pub use admit::{Refusal, admit};
pub use resolve::{Reachability, Resolved, Wish, resolve};

use std::collections::BTreeMap;

/// Annotations of an object.
pub type Annotations = BTreeMap<String, String>;

/// Whose reconciler a revision belongs to.
pub mod class {
    /// Scaled by us.
    pub const KPA: &str = "kpa.autoscaling.knative.dev";
    /// Scaled by Kubernetes.
    pub const HPA: &str = "hpa.autoscaling.knative.dev";
    /// How the names of both end, and of no other class.
    pub(super) const OURS: &str = ".knative.dev";
}

/// What load is measured in.
pub mod metric {
    /// Requests in progress.
    pub const CONCURRENCY: &str = "concurrency";
    /// Requests per second.
    pub const RPS: &str = "rps";
    /// CPU time; scaled by Kubernetes.
    pub const CPU: &str = "cpu";
    /// Memory; scaled by Kubernetes.
    pub const MEMORY: &str = "memory";
}

/// How seconds of a window are weighed (`metric-aggregation-algorithm`).
pub mod algorithm {
    /// All the same; also what anything unknown means.
    pub const LINEAR: &str = "linear";
    /// The newer the more.
    pub const WEIGHTED: &str = "weighted-exponential";
    /// The same, as it was spelled once.
    pub const WEIGHTED_OLD: &str = "weightedExponential";
}
