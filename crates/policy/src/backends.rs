//! Where the requests of a revision can go.

use std::collections::BTreeSet;
use std::sync::Arc;

/// `host:port`, an IPv6 address in brackets.
///
/// The order of pods among activators is that of this text, so that
/// `10.0.0.10:8012` comes before `10.0.0.2:8012`: all activators of a fleet,
/// the reference's among them, have to see the same order.
pub type Destination = Arc<str>;

/// What is known to answer now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Backends {
    /// Each of these pods.
    Pods(BTreeSet<Destination>),
    /// Pods are not reached one by one (a mesh is between), but all of them
    /// together behind one address.
    ClusterIp {
        /// The address of the private service.
        address: Destination,
        /// Pods behind it that Kubernetes holds for ready.
        ready: BTreeSet<Destination>,
    },
}

impl Default for Backends {
    /// Nothing answers.
    fn default() -> Backends {
        Backends::Pods(BTreeSet::new())
    }
}

impl Backends {
    /// Pods, reached one by one or behind the one address.
    pub fn count(&self) -> usize {
        match self {
            Backends::Pods(pods) => pods.len(),
            Backends::ClusterIp { ready, .. } => ready.len(),
        }
    }
}
