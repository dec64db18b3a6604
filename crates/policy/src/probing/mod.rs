//! Which pods of a revision answer: who is asked next, and what an answer
//! means.
//!
//! A [`Watch`] belongs to one revision. It is told what the private Endpoints
//! list ([`Watch::endpoints`]) and what was answered ([`Watch::answered`]); it
//! says what to ask ([`Watch::next_probe`]), when to come back
//! ([`Watch::wake_at`]), and what may get requests ([`Watch::update`]). After
//! every call whoever holds it sends the probes that there are and takes the
//! update.
//!
//! A pod is asked before Kubernetes holds it for ready, since it tells sooner.
//! Where a mesh is between, pods may not be reached one by one; then all of
//! them are used behind their cluster IP (activator reference, section 6).
//!
//! Strict mode goes by rounds (`rounds`), as the reference does; the better
//! mode asks each pod at its own pace (`singly`).

mod asking;
mod pace;
mod rounds;
mod singly;

use crate::backends::{Backends, Destination};
use crate::compat::Compat;
use crate::endpoints::Listed;
use crate::mesh::MeshMode;
use crate::moment::Moment;
pub use pace::step;
use rounds::Rounds;
use singly::Singly;
use std::collections::BTreeSet;
use std::time::Duration;

/// How pods of a revision are asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Whether a mesh may be between.
    pub mesh: MeshMode,
    /// The mesh routes to single pods (`enable-mesh-pod-addressability`): the
    /// cluster IP is never used.
    pub passthrough: bool,
    /// A pod that passes counts even if Kubernetes does not hold it for ready
    /// yet. Not so where the sidecar cannot know: with an exec readiness probe
    /// of the main container, or a startup probe of any.
    pub trust_probe: bool,
    /// Time between two questions (`PROBE_FREQUENCY`).
    pub every: Duration,
    /// Longest time for an answer (`PROBE_TIMEOUT`).
    pub answer_max: Duration,
}

impl Default for Settings {
    /// The reference's.
    fn default() -> Settings {
        Settings {
            mesh: MeshMode::Auto,
            passthrough: false,
            trust_probe: true,
            every: Duration::from_millis(200),
            answer_max: Duration::from_millis(300),
        }
    }
}

/// Names a probe of a [`Watch`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProbeId(u64);

/// A question to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Probe {
    /// To be given back with the answer.
    pub id: ProbeId,
    /// Whom to ask.
    pub to: Destination,
    /// What that is.
    pub subject: Subject,
    /// When it has failed without an answer. The watch sees to that itself;
    /// the connection can be given up.
    pub deadline: Moment,
}

/// Who is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// A pod.
    Pod,
    /// All pods, behind the cluster IP of their private service.
    ClusterIp,
}

/// What came of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Ready.
    Passed,
    /// The pod's sidecar itself says that it is not.
    Unready,
    /// A 502 or 503 that may be a mesh's.
    Between,
    /// Any other answer: no mesh is between, but neither was it a pass.
    Odd,
    /// None: refused, reset, or too late.
    Failed,
}

impl Answer {
    /// From a response. `ours` = it says that the sidecar is ours
    /// (`x-zeroscale-proxy`). Knative's sidecar tells of itself as well: its
    /// 503 has no body, or one that says that it is shutting down, while those
    /// of a mesh say what they could not reach.
    pub fn new(status: u16, body: &[u8], ours: bool) -> Answer {
        match status {
            200 if body == b"queue" => Answer::Passed,
            503 if ours || body.is_empty() || body.starts_with(b"shutting down") => Answer::Unready,
            502 | 503 => Answer::Between,
            _ => Answer::Odd,
        }
    }
}

/// The watch over the pods of one revision.
#[derive(Debug)]
pub struct Watch {
    way: Way,
}

#[derive(Debug)]
enum Way {
    Rounds(Rounds),
    Singly(Singly),
}

impl Watch {
    /// Without pods. `seed` moves the questions of several activators apart.
    pub fn new(settings: Settings, compat: Compat, seed: u64, now: Moment) -> Watch {
        let way = match compat {
            Compat::Strict => Way::Rounds(Rounds::new(settings, now)),
            Compat::Better => Way::Singly(Singly::new(settings, seed)),
        };
        Watch { way }
    }

    /// The cluster IP of the private service, with the port of the revision's
    /// protocol, or that there is none.
    pub fn service(&mut self, address: Option<Destination>, now: Moment) {
        match &mut self.way {
            Way::Rounds(way) => way.service = address,
            Way::Singly(way) => way.set_service(address, now),
        }
    }

    /// Whether a pod that passes counts before Kubernetes holds it for ready
    /// ([`Settings::trust_probe`]); for what happens from now on.
    pub fn set_trust_probe(&mut self, trust: bool) {
        match &mut self.way {
            Way::Rounds(way) => way.settings.trust_probe = trust,
            Way::Singly(way) => way.settings.trust_probe = trust,
        }
    }

    /// The private Endpoints were made or changed.
    pub fn endpoints(&mut self, listed: Listed, now: Moment) {
        match &mut self.way {
            Way::Rounds(way) => way.endpoints(listed, now),
            Way::Singly(way) => way.endpoints(&listed, now),
        }
    }

    /// The private Endpoints are gone; the watch is not needed any more. The
    /// reference goes on with the pods that it knew.
    pub fn end(&mut self) {
        match &mut self.way {
            Way::Rounds(way) => way.end(),
            Way::Singly(way) => way.end(),
        }
    }

    /// Asks those that do not answer yet at once, as when a request begins to
    /// wait for them.
    pub fn check_now(&mut self, now: Moment) {
        match &mut self.way {
            Way::Rounds(way) => way.check(now),
            Way::Singly(way) => way.check_now(now),
        }
    }

    /// A request could not be sent to that destination. The better mode gives
    /// it no more until it has passed again; it is asked after `rest`.
    pub fn doubt(&mut self, destination: &Destination, rest: Duration, now: Moment) {
        match &mut self.way {
            Way::Rounds(_) => {}
            Way::Singly(way) => way.doubt(destination, rest, now),
        }
    }

    /// What came of a probe. One that is too late, or of a pod that is gone,
    /// changes nothing.
    pub fn answered(&mut self, probe: ProbeId, answer: Answer, now: Moment) {
        match &mut self.way {
            Way::Rounds(way) => way.answered(probe, answer, now),
            Way::Singly(way) => way.answered(probe, answer, now),
        }
    }

    /// [`Watch::wake_at`] has come. Does no harm before.
    pub fn wake(&mut self, now: Moment) {
        match &mut self.way {
            Way::Rounds(way) => way.wake(now),
            Way::Singly(way) => way.wake(now),
        }
    }

    /// When to call [`Watch::wake`]; `None` = only an event changes anything.
    pub fn wake_at(&self) -> Option<Moment> {
        match &self.way {
            Way::Rounds(way) => way.wake_at(),
            Way::Singly(way) => way.wake_at(),
        }
    }

    /// The next question, which is sent now.
    pub fn next_probe(&mut self, now: Moment) -> Option<Probe> {
        match &mut self.way {
            Way::Rounds(way) => way.asking.next(now + way.settings.answer_max),
            Way::Singly(way) => way.asking.next(now + way.settings.answer_max),
        }
    }

    /// True while there is a question to send.
    pub fn has_probe(&self) -> bool {
        match &self.way {
            Way::Rounds(way) => way.asking.has_next(),
            Way::Singly(way) => way.asking.has_next(),
        }
    }

    /// Pods that are asked again and again, since they do not answer yet.
    pub fn asked(&self) -> usize {
        match &self.way {
            Way::Rounds(way) => way.missing(),
            Way::Singly(way) => way.missing(),
        }
    }

    /// How many pods are asked by this process, those of other revisions
    /// included: the more there are, the less often the better mode asks each.
    pub fn set_crowd(&mut self, pods: usize) {
        if let Way::Singly(way) = &mut self.way {
            way.crowd = pods;
        }
    }

    /// What may get requests, if there is news since the last call.
    pub fn update(&mut self) -> Option<Backends> {
        match &mut self.way {
            Way::Rounds(way) => way.update.take(),
            Way::Singly(way) => way.update(),
        }
    }

    /// Pods that may get requests one by one.
    pub fn healthy(&self) -> BTreeSet<Destination> {
        match &self.way {
            Way::Rounds(way) => way.healthy.clone(),
            Way::Singly(way) => way.healthy(),
        }
    }

    /// The pods are used behind their cluster IP.
    pub fn cluster_ip_healthy(&self) -> bool {
        match &self.way {
            Way::Rounds(way) => way.cluster_ip_healthy,
            Way::Singly(way) => way.by_cluster_ip(),
        }
    }

    /// Pods are held for reachable one by one. In strict mode never again
    /// once their cluster IP was used.
    pub fn pods_addressable(&self) -> bool {
        match &self.way {
            Way::Rounds(way) => way.pods_addressable,
            Way::Singly(way) => !way.by_cluster_ip(),
        }
    }
}

#[cfg(test)]
mod tests;
