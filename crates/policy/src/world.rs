//! The words of the platform seam: what is (`Snapshot`), and what is wanted
//! (`Order`). Both are whole and level-triggered: a lost one heals by the next.

use crate::moment::Moment;
use crate::revision::{RevisionId, RevisionSpec};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;

/// Name of a pod, unique among all that are or were.
pub type PodName = Arc<str>;

/// What a platform knows, at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Snapshot {
    /// Grows by one with each snapshot that a platform publishes.
    pub version: u64,
    /// All revisions.
    pub revisions: BTreeMap<RevisionId, Arc<RevisionView>>,
    /// Which revision a request is for.
    pub routes: Routes,
}

/// One revision as the platform sees it.
#[derive(Clone, Debug, PartialEq)]
pub struct RevisionView {
    /// Limits and scaling.
    pub spec: Arc<RevisionSpec>,
    /// Pods that exist, in the order in which they were made.
    pub pods: Vec<Pod>,
    /// How requests reach it now.
    pub path: Path,
    /// Since when `path` has that value.
    pub path_since: Moment,
    /// Set while its pods cannot be started.
    pub trouble: Option<Trouble>,
    /// Pods that are wanted and not made, because all the room is taken
    /// (`--max-pods`).
    pub without_room: u32,
    /// Its place in the network of a cluster.
    pub network: Network,
}

/// What the network of a cluster knows of a revision. Where there is none,
/// nothing of it is known or needed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Network {
    /// The one address of all its pods: that of its private service, with the
    /// port of the revision's protocol.
    pub private_service: Option<SocketAddr>,
    /// IP addresses of the activators in its path, as the ready addresses of
    /// its public Endpoints name them. They may also be those of pods, when
    /// the path is the direct one.
    pub activators: BTreeSet<Arc<str>>,
    /// A pod that passes an activator's probe takes requests even if the
    /// platform does not hold it for ready yet. Not so where its sidecar
    /// cannot know: with an exec readiness probe or a startup probe.
    pub trust_probe: bool,
}

impl Default for Network {
    /// Nothing is known of it, and probes are trusted.
    fn default() -> Network {
        Network { private_service: None, activators: BTreeSet::new(), trust_probe: true }
    }
}

impl RevisionView {
    /// Pods that take new requests.
    pub fn ready_pods(&self) -> impl Iterator<Item = &Pod> {
        self.pods.iter().filter(|pod| pod.phase == PodPhase::Ready)
    }
}

/// One pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pod {
    /// Its name.
    pub name: PodName,
    /// Where its sidecar listens.
    pub address: SocketAddr,
    /// How far it is in its life.
    pub phase: PodPhase,
    /// Since when it is in that phase.
    pub since: Moment,
    /// How long the app took from exec to its first passed readiness probe.
    pub start_took: Option<std::time::Duration>,
}

/// How far a pod is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PodPhase {
    /// Made, and its readiness probe has not passed yet, or fails now.
    Starting,
    /// Takes new requests.
    Ready,
    /// Gets no new request; ends when its last one has.
    Terminating,
}

/// How requests reach a revision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Path {
    /// Through the activator (Knative's mode `Proxy`).
    Activator,
    /// Straight to the pods (Knative's mode `Serve`).
    Direct,
}

/// Why a revision's pods cannot be started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// Which kind.
    pub kind: TroubleKind,
    /// One sentence for people: what was tried and what happened.
    pub text: Arc<str>,
    /// Since when.
    pub since: Moment,
}

/// Kinds of failed starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TroubleKind {
    /// The command could not be run, or ended several times in a row.
    StartFailed,
    /// The readiness probe did not pass within the start timeout.
    StartTimeout,
}

/// Which revision a request is for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Routes {
    /// By host name, lower case, without port.
    pub hosts: BTreeMap<Arc<str>, RevisionId>,
    /// For every other host; `None` = unknown hosts are refused.
    pub fallback: Option<RevisionId>,
}

/// What the autoscaler wants of one revision. Idempotent; the answer is the
/// next snapshot.
#[derive(Clone, Debug, PartialEq)]
pub struct Order {
    /// Of which revision.
    pub revision: RevisionId,
    /// How many pods there should be.
    pub wanted: u32,
    /// How requests should reach it.
    pub path: Path,
    /// Why, in a few words, for the platform's log.
    pub reason: &'static str,
    /// Pods to remove first when there are too many; unknown names are ignored.
    pub go_first: Vec<PodName>,
}

/// Pods that are still in somebody's hands: published by whoever sends
/// requests to pods, so that a platform stops a pod only when nobody holds it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Holding {
    /// The snapshot that has been taken in.
    pub version: u64,
    /// Terminating pods with requests in progress.
    pub pods: BTreeSet<PodName>,
}

impl Holding {
    /// True when `pod`, terminating since snapshot `version`, may be stopped.
    pub fn has_let_go(&self, pod: &str, version: u64) -> bool {
        self.version >= version && !self.pods.contains(pod)
    }
}
