//! One live revision: who waits, which pods there are, what was counted.

use crate::RevisionLoad;
use crate::retire::Retirement;
use parking_lot::{Mutex, RwLock};
use plumbing::clock;
use plumbing::conn::Caller;
use plumbing::limiter::{Limiter, Permit};
use plumbing::reason::Reason;
use plumbing::refuse::Refusal;
use policy::admit::{Bounds, PodKey, Refused};
use policy::pick::Rule;
use policy::revision::{RevisionId, RevisionSpec};
use policy::timeline::{Meter, MeterReport};
use policy::world::{Path, PodName, RevisionView, Trouble, TroubleKind};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::time::Instant;

pub(crate) struct Revision {
    pub(crate) id: RevisionId,
    pub(crate) limiter: Limiter,
    number: u64,
    retirement: Arc<Retirement>,
    /// What is known of the sidecar of a new pod.
    sidecars: Sidecar,
    state: RwLock<State>,
    meter: Mutex<Meter>,
    /// Set from the first request at zero until a pod is there.
    waking: Mutex<Option<Instant>>,
    /// The average that was reported last, as bits.
    reported: AtomicU64,
}

struct State {
    spec: Arc<RevisionSpec>,
    path: Path,
    trouble: Option<Trouble>,
    without_room: bool,
    /// Pods that may be chosen.
    pods: BTreeMap<PodKey, Pod>,
}

#[derive(Clone)]
pub(crate) struct Pod {
    pub(crate) name: PodName,
    pub(crate) address: SocketAddr,
    /// True while somebody asks it for its readiness.
    doubted: bool,
    /// True while somebody asks it for a free slot.
    watched: bool,
    /// Whose sidecar it has.
    pub(crate) sidecar: Sidecar,
}

/// Whose sidecar a pod has: offers are made to ours alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sidecar {
    /// Nobody has asked.
    Unknown,
    /// Somebody asks, or it did not answer.
    Asked,
    /// Ours.
    Ours,
    /// Another.
    Stock,
}

/// A wake-up from zero.
pub(crate) struct Wake {
    /// From the first request to the first ready pod.
    pub(crate) total: Duration,
    /// The part of it that is the app's own start.
    pub(crate) app_start: Option<Duration>,
}

impl Revision {
    pub(crate) fn new(
        id: RevisionId,
        view: &RevisionView,
        number: u64,
        waiting_max: usize,
        retirement: &Arc<Retirement>,
        sidecars: Sidecar,
    ) -> Revision {
        let bounds = Bounds { waiting_max, places_max: usize::MAX };
        let rule = Rule::for_limit(view.spec.container_concurrency);
        let told = retirement.clone();
        let limiter = Limiter::new(bounds, rule, Some(Box::new(move |pod| told.end(number, pod))));
        let state = State {
            spec: view.spec.clone(),
            path: view.path,
            trouble: None,
            without_room: false,
            pods: BTreeMap::new(),
        };
        Revision {
            id,
            limiter,
            number,
            retirement: retirement.clone(),
            sidecars,
            state: RwLock::new(state),
            meter: Mutex::new(Meter::new()),
            waking: Mutex::new(None),
            reported: AtomicU64::new(0),
        }
    }

    /// Takes in what the platform says of the revision. Returns the wake-up
    /// that this ends, if it ends one.
    pub(crate) fn apply(&self, view: &RevisionView) -> Option<Wake> {
        let capacity = |spec: &RevisionSpec| (spec.container_concurrency > 0).then_some(spec.container_concurrency);
        let (gone, limit_changed) = {
            let mut state = self.state.write();
            let limit_changed = capacity(&state.spec) != capacity(&view.spec);
            state.spec = view.spec.clone();
            state.path = view.path;
            state.trouble = view.trouble.clone();
            state.without_room = view.without_room > 0;
            let stays =
                |pod: &Pod| view.ready_pods().any(|ready| ready.name == pod.name && ready.address == pod.address);
            let gone: Vec<(PodKey, Pod)> =
                state.pods.iter().filter(|(_, pod)| !stays(pod)).map(|(key, pod)| (*key, pod.clone())).collect();
            (gone, limit_changed)
        };
        for (key, pod) in gone {
            self.remove(key, pod.name);
        }
        let limit = capacity(&view.spec);
        if limit_changed {
            let keys: Vec<PodKey> = self.state.read().pods.keys().copied().collect();
            self.limiter.update(|admission, woken| {
                keys.iter().for_each(|&key| admission.resize_pod(key, limit, woken));
            });
        }
        for pod in view.ready_pods() {
            let (name, sidecar) = (pod.name.clone(), self.sidecars);
            self.add(Pod { name, address: pod.address, doubted: false, watched: false, sidecar }, limit);
        }
        self.refuse_if_troubled();
        let first = view.ready_pods().next()?;
        let since = self.waking.lock().take()?;
        Some(Wake { total: since.elapsed(), app_start: first.start_took })
    }

    fn add(&self, pod: Pod, limit: Option<u32>) {
        let mut state = self.state.write();
        if state.pods.values().any(|known| known.name == pod.name) {
            return;
        }
        // No slots at first, so that nobody is sent to a pod whose address is
        // not written down yet.
        let key = self.limiter.update(|admission, woken| admission.add_pod(Some(0), woken));
        state.pods.insert(key, pod);
        drop(state);
        self.limiter.update(|admission, woken| admission.resize_pod(key, limit, woken));
    }

    fn remove(&self, key: PodKey, name: PodName) {
        self.retirement.begin(self.number, key, name);
        let idle = self.limiter.update(|admission, _| admission.remove_pod(key));
        self.state.write().pods.remove(&key);
        if idle {
            self.retirement.end(self.number, key);
        }
    }

    /// The revision is gone: nobody waits for it any more.
    pub(crate) fn retire(&self) {
        let pods = std::mem::take(&mut self.state.write().pods);
        for (key, pod) in pods {
            self.remove(key, pod.name);
        }
        self.limiter.update(|admission, woken| admission.refuse_all(Refused::RevisionRemoved, woken));
    }

    /// Nobody waits any longer: the process ends.
    pub(crate) fn give_up(&self) {
        self.limiter.update(|admission, woken| admission.refuse_all(Refused::Draining, woken));
    }

    fn refuse_if_troubled(&self) {
        let why = {
            let state = self.state.read();
            match &state.trouble {
                Some(trouble) if state.pods.is_empty() => refused(trouble.kind),
                _ => return,
            }
        };
        self.limiter.update(|admission, woken| admission.refuse_all(why, woken));
    }

    /// Why a request cannot be held: pods cannot be started. The details name
    /// the command and its last words, so they are for this machine only.
    pub(crate) fn trouble(&self, caller: &Caller) -> Option<Refusal> {
        let state = self.state.read();
        let trouble = state.trouble.as_ref().filter(|_| state.pods.is_empty())?;
        let reason = reason(trouble.kind);
        let near = caller.ip().is_loopback();
        Some(if near { Refusal::because(reason, trouble.text.to_string()) } else { Refusal::new(reason) })
    }

    /// True while wanted pods wait for room.
    pub(crate) fn is_without_room(&self) -> bool {
        self.state.read().without_room
    }

    pub(crate) fn spec(&self) -> Arc<RevisionSpec> {
        self.state.read().spec.clone()
    }

    pub(crate) fn pod(&self, key: PodKey) -> Option<Pod> {
        self.state.read().pods.get(&key).cloned()
    }

    /// Notes that a pod is doubted. The pod, unless that was known already.
    pub(crate) fn doubt(&self, key: PodKey) -> Option<Pod> {
        let mut state = self.state.write();
        let pod = state.pods.get_mut(&key).filter(|pod| !pod.doubted)?;
        pod.doubted = true;
        Some(pod.clone())
    }

    /// Notes that somebody asks for the sidecar of a pod. True when nobody did.
    pub(crate) fn ask_for_sidecar(&self, key: PodKey) -> bool {
        let mut state = self.state.write();
        let pod = state.pods.get_mut(&key).filter(|pod| pod.sidecar == Sidecar::Unknown);
        pod.map(|pod| pod.sidecar = Sidecar::Asked).is_some()
    }

    /// What a pod's sidecar turned out to be.
    pub(crate) fn learn_sidecar(&self, key: PodKey, sidecar: Sidecar) {
        if let Some(pod) = self.state.write().pods.get_mut(&key) {
            pod.sidecar = sidecar;
        }
    }

    /// Ends [`Revision::doubt`].
    pub(crate) fn trust_again(&self, key: PodKey) {
        if let Some(pod) = self.state.write().pods.get_mut(&key) {
            pod.doubted = false;
        }
        self.limiter.update(|admission, woken| admission.resume_pod(key, woken));
    }

    /// Pods that others have filled and for which requests wait; they are
    /// watched from now on, by the caller.
    pub(crate) fn begin_watch(&self) -> Vec<(PodKey, Pod)> {
        let full: Vec<PodKey> = {
            let state = self.state.read();
            let unwatched = state.pods.iter().filter(|(_, pod)| !pod.watched).map(|(key, _)| *key);
            self.limiter.read(|admission| unwatched.filter(|key| admission.is_worth_asking(*key)).collect())
        };
        if full.is_empty() {
            return Vec::new();
        }
        let mut state = self.state.write();
        let mut begin = |key: PodKey| {
            let pod = state.pods.get_mut(&key).filter(|pod| !pod.watched)?;
            pod.watched = true;
            Some((key, pod.clone()))
        };
        full.into_iter().filter_map(&mut begin).collect()
    }

    /// True while a watched pod is to be watched on. When not, it is not
    /// watched any more, and whoever waits next may begin again.
    pub(crate) fn watch_on(&self, key: PodKey) -> bool {
        let mut state = self.state.write();
        let Some(pod) = state.pods.get_mut(&key) else { return false };
        // Under the lock: whoever comes to wait looks after it has taken its place.
        pod.watched = self.limiter.read(|admission| admission.is_worth_asking(key));
        pod.watched
    }

    /// A slot on the direct path, when that is the path.
    pub(crate) fn direct_slot(&self) -> Option<Permit> {
        let direct = self.state.read().path == Path::Direct;
        if direct { self.limiter.take_beyond_limit() } else { None }
    }

    /// Counts a request until the guard is dropped. The second value is true
    /// when it is the first sign of load, to be told at once.
    pub(crate) fn enter(self: &Arc<Self>) -> (Inside, bool) {
        let poke = self.meter.lock().enter(clock::now());
        (Inside { revision: self.clone() }, poke)
    }

    /// Notes the beginning of a wake-up. True when none was under way.
    pub(crate) fn begin_wake(&self) -> bool {
        if !self.state.read().pods.is_empty() {
            return false;
        }
        let mut waking = self.waking.lock();
        let first = waking.is_none();
        waking.get_or_insert_with(Instant::now);
        first
    }

    pub(crate) fn is_waking(&self) -> bool {
        self.waking.lock().is_some()
    }

    pub(crate) fn tick(&self) -> Option<MeterReport> {
        let report = self.meter.lock().tick(clock::now());
        let average = report.as_ref().map_or(0.0, |report| report.average_concurrency);
        self.reported.store(average.to_bits(), Ordering::Relaxed);
        report
    }

    /// The average concurrency that was reported last.
    pub(crate) fn reported(&self) -> f64 {
        f64::from_bits(self.reported.load(Ordering::Relaxed))
    }

    pub(crate) fn load(&self) -> RevisionLoad {
        self.limiter.read(|admission| RevisionLoad {
            revision: self.id.clone(),
            held: admission.waiting(),
            oldest_held_since: admission.oldest_since(),
            in_flight: admission.running(),
        })
    }
}

fn refused(kind: TroubleKind) -> Refused {
    match kind {
        TroubleKind::StartFailed => Refused::StartFailed,
        TroubleKind::StartTimeout => Refused::StartTimeout,
    }
}

fn reason(kind: TroubleKind) -> Reason {
    match kind {
        TroubleKind::StartFailed => Reason::StartFailed,
        TroubleKind::StartTimeout => Reason::StartTimeout,
    }
}

/// A request that is counted.
pub(crate) struct Inside {
    revision: Arc<Revision>,
}

impl Drop for Inside {
    fn drop(&mut self) {
        self.revision.meter.lock().leave(clock::now());
    }
}
