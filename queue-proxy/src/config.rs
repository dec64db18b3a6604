//! What a sidecar is told at its start.

use plumbing::serve::Settings;
use plumbing::trust::Trust;
use policy::compat::Compat;
use policy::revision::{RevisionId, Timeouts};
use policy::world::PodName;
use std::net::SocketAddr;

/// Queue depth as a multiple of the limit, the reference's.
pub const QUEUE_DEPTH_PER_SLOT: usize = 10;

/// A sidecar's settings.
#[derive(Clone)]
pub struct Config {
    /// The pod's name, sent in every stat (`SERVING_POD`).
    pub pod: PodName,
    /// Its revision.
    pub revision: RevisionId,
    /// Where the app listens.
    pub app: SocketAddr,
    /// Requests at the app at a time (`CONTAINER_CONCURRENCY`); 0 = no limit.
    pub container_concurrency: u32,
    /// Requests that may wait for the app; without meaning when there is no limit.
    pub queue_depth: usize,
    /// The limits of one request; waiting here counts in them.
    pub timeouts: Timeouts,
    /// How the app is asked whether it is ready.
    pub readiness: Readiness,
    /// Whose internal headers are believed.
    pub trust: Trust,
    /// Limits of client connections.
    pub serve: Settings,
    /// Strict: marks of an activator are not read.
    pub compat: Compat,
}

/// How the app is asked whether it is ready.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Readiness {
    /// It accepts a connection.
    Tcp,
    /// It answers a GET of this path with 200 to 399.
    Http(String),
}
