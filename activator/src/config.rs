//! What an activator is told at its start.

use plumbing::serve::Settings;
use plumbing::trust::Trust;
use policy::compat::Compat;
use std::sync::Arc;
use std::time::Duration;

/// An activator's settings. The defaults are those of the local floor.
#[derive(Clone)]
pub struct Config {
    /// Its own name, sent in every stat.
    pub pod_name: Arc<str>,
    /// Requests held for one revision.
    pub held_per_revision_max: usize,
    /// Requests held in all.
    pub held_max: usize,
    /// Bytes of bodies kept of held requests, in all.
    pub held_bytes_max: usize,
    /// Longest wait for a slot; never charged to the app's limits.
    pub wait_max: Duration,
    /// Whose internal headers are believed.
    pub trust: Trust,
    /// Limits of client connections.
    pub serve: Settings,
    /// Strict: no marks to the sidecar, and the reference's statuses.
    pub compat: Compat,
}

impl Config {
    /// With the documented defaults.
    pub fn new(pod_name: impl Into<Arc<str>>, trust: Trust) -> Config {
        Config {
            pod_name: pod_name.into(),
            held_per_revision_max: 10_000,
            held_max: 20_000,
            held_bytes_max: 64 << 20,
            wait_max: Duration::from_secs(300),
            trust,
            serve: Settings::default(),
            compat: Compat::Better,
        }
    }
}
