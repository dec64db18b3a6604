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
    /// Bytes of bodies kept of held requests, for one revision.
    pub held_bytes_per_revision_max: usize,
    /// Bytes of bodies kept of held requests, in all.
    pub held_bytes_max: usize,
    /// Longest wait for a slot; not charged to the app's limits.
    pub wait_max: Duration,
    /// The wait counts toward the app's limits, as in the reference; in strict
    /// mode always.
    pub charge_wait: bool,
    /// Wake-ups that one caller may cause per second; `None` = no bound.
    pub wakes_per_caller_max: Option<u32>,
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
            held_bytes_per_revision_max: 32 << 20,
            held_bytes_max: 64 << 20,
            wait_max: Duration::from_secs(300),
            charge_wait: false,
            wakes_per_caller_max: None,
            trust,
            serve: Settings::default(),
            compat: Compat::Better,
        }
    }

    /// Does the wait count toward the app's limits?
    pub(crate) fn charges_wait(&self) -> bool {
        self.charge_wait || self.compat == Compat::Strict
    }
}
