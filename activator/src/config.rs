//! What an activator is told at its start.

use observe::Observer;
use plumbing::serve::Settings;
use plumbing::trust::Trust;
use policy::compat::Compat;
use policy::probing;
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
    /// How long requests may go on waiting once the end has begun; then they
    /// are told so. `None` = as long as their own limits let them.
    pub drain_wait: Option<Duration>,
    /// How long upgraded connections may last once the requests have ended.
    pub tunnel_timeout: Duration,
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
    /// Set where it stands behind an ingress; `None` where it is the ingress.
    pub cluster: Option<Cluster>,
    /// What is told of its requests.
    pub observer: Observer,
}

/// What an activator behind the ingress of a cluster knows of its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cluster {
    /// The end of all service names, such as `cluster.local`.
    pub domain: Arc<str>,
    /// Its own address (`POD_IP`): as which it is listed among the activators
    /// of a revision.
    pub address: Arc<str>,
    /// How it asks pods whether they are ready. Of a mesh that routes to single
    /// pods (`passthrough`) they are asked for by the name of their private
    /// service. Whether a probe is trusted is the revision's to say.
    pub probing: probing::Settings,
}

impl Cluster {
    /// With the reference's defaults, at this address.
    pub fn new(domain: impl Into<Arc<str>>, address: impl Into<Arc<str>>) -> Cluster {
        let (domain, address) = (domain.into(), address.into());
        Cluster { domain, address, probing: probing::Settings::default() }
    }
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
            drain_wait: None,
            tunnel_timeout: Duration::from_secs(60),
            charge_wait: false,
            wakes_per_caller_max: None,
            trust,
            serve: Settings::default(),
            compat: Compat::Better,
            cluster: None,
            observer: Observer::off(),
        }
    }

    /// Does the wait count toward the app's limits?
    pub(crate) fn charges_wait(&self) -> bool {
        self.charge_wait || self.compat == Compat::Strict
    }
}
