//! One live revision: who waits, which pods there are, what was counted.

use crate::RevisionLoad;
use crate::burst::Burst;
use crate::condition::Condition;
use crate::retire::Retirement;
use crate::trouble::{self, Attempt, Troubled};
use crate::wake::Wake;
use observe::Identity;
use observe::metrics::Series;
use parking_lot::{Mutex, RwLock};
use plumbing::clock;
use plumbing::conn::Caller;
use plumbing::limiter::{Limiter, Permit};
use plumbing::refuse::Refusal;
use plumbing::replay::PrefixBudget;
use policy::admit::{Bounds, PodKey, Refused};
use policy::eject::{self, Sign};
use policy::pick::Rule;
use policy::revision::{RevisionId, RevisionSpec};
use policy::timeline::{Meter, MeterReport};
use policy::wake::{self, WakeHistory};
use policy::world::{Path, PodName, PodPhase, RevisionView};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

pub(crate) struct Revision {
    pub(crate) id: RevisionId,
    pub(crate) limiter: Limiter,
    number: u64,
    retirement: Arc<Retirement>,
    state: RwLock<State>,
    meter: Mutex<Meter>,
    /// What may be kept of the bodies of its requests.
    pub(crate) budget: PrefixBudget,
    /// What is counted of its requests.
    pub(crate) series: Series,
    pub(crate) burst: Burst,
    /// The average that was reported last, as bits.
    reported: AtomicU64,
    troubled: Troubled,
    wakes: Mutex<Wakes>,
}

#[derive(Default)]
struct Wakes {
    /// Set from the first request at zero until a pod is there.
    now: Option<Arc<Wake>>,
    past: WakeHistory,
}

struct State {
    spec: Arc<RevisionSpec>,
    path: Path,
    without_room: bool,
    /// Pods that start or are ready.
    made: u32,
    /// Pods that may be chosen.
    pods: BTreeMap<PodKey, Pod>,
}

#[derive(Clone)]
pub(crate) struct Pod {
    pub(crate) name: PodName,
    pub(crate) address: SocketAddr,
    pub(crate) condition: Arc<Condition>,
    /// True while somebody asks it for its readiness.
    doubted: bool,
    /// True while somebody asks it for a free slot.
    watched: bool,
}

impl Pod {
    /// True while somebody asks it for its readiness.
    pub(crate) fn is_doubted(&self) -> bool {
        self.doubted
    }
}

/// How a pod is met that was not there before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Newcomers {
    /// It has a sidecar of ours, and the platform has seen it ready.
    Ours,
    /// It gets no work until it has said that it is ready, and what it is.
    Asked,
    /// It is taken for one of the reference.
    Stock,
}

/// A pod that gets no new work until it has shown that it is ready.
pub(crate) struct Doubted {
    pub(crate) key: PodKey,
    pub(crate) pod: Pod,
    /// How long it is left alone first.
    pub(crate) rest: Duration,
}

/// What a snapshot changed.
#[derive(Default)]
pub(crate) struct Applied {
    /// New pods; those in doubt get no work until they have been asked.
    pub(crate) new: Vec<(PodKey, Pod)>,
    /// The wake-up that it ended.
    pub(crate) woken: Option<Arc<Wake>>,
}

/// A request that has come in.
pub(crate) struct Entered {
    pub(crate) inside: Inside,
    /// The first sign of load: to be told at once.
    pub(crate) poke: bool,
    /// It began this wake-up.
    pub(crate) wakes: bool,
    /// The wake-up that is under way.
    pub(crate) wake: Option<Arc<Wake>>,
    /// More are inside than the pods that are made can carry: to be told.
    pub(crate) burst: bool,
}

impl Revision {
    pub(crate) fn new(
        id: RevisionId,
        view: &RevisionView,
        number: u64,
        waiting_max: usize,
        budget: PrefixBudget,
        retirement: &Arc<Retirement>,
    ) -> Revision {
        let bounds = Bounds { waiting_max, places_max: usize::MAX };
        let rule = Rule::for_limit(view.spec.container_concurrency);
        let told = retirement.clone();
        let limiter = Limiter::new(bounds, rule, Some(Box::new(move |pod| told.end(number, pod))));
        let state =
            State { spec: view.spec.clone(), path: view.path, without_room: false, made: 0, pods: BTreeMap::new() };
        Revision {
            id,
            limiter,
            number,
            retirement: retirement.clone(),
            state: RwLock::new(state),
            meter: Mutex::new(Meter::new()),
            reported: AtomicU64::new(0),
            budget,
            series: Series::default(),
            burst: Burst::default(),
            troubled: Troubled::default(),
            wakes: Mutex::default(),
        }
    }

    /// Takes in what the platform says of the revision. New pods that are to be
    /// asked wait for [`Revision::trust_again`].
    pub(crate) fn apply(&self, view: &RevisionView, newcomers: Newcomers) -> Applied {
        let capacity = |spec: &RevisionSpec| (spec.container_concurrency > 0).then_some(spec.container_concurrency);
        let (gone, limit_changed) = {
            let mut state = self.state.write();
            let limit_changed = capacity(&state.spec) != capacity(&view.spec);
            state.spec = view.spec.clone();
            state.path = view.path;
            state.without_room = view.without_room > 0;
            let made = view.pods.iter().filter(|pod| pod.phase != PodPhase::Terminating).count();
            state.made = u32::try_from(made).unwrap_or(u32::MAX);
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
        let new = view
            .ready_pods()
            .filter_map(|pod| {
                let condition = Arc::new(Condition::new(newcomers == Newcomers::Ours));
                let (name, doubted) = (pod.name.clone(), newcomers == Newcomers::Asked);
                self.add(Pod { name, address: pod.address, condition, doubted, watched: false }, limit)
            })
            .collect();
        self.take_in_trouble(view);
        Applied { new, woken: self.follow_wake(view) }
    }

    /// Adds a pod, unless it is known.
    fn add(&self, pod: Pod, limit: Option<u32>) -> Option<(PodKey, Pod)> {
        let mut state = self.state.write();
        if state.pods.values().any(|known| known.name == pod.name) {
            return None;
        }
        // No slots at first, so that nobody is sent to a pod whose address is
        // not written down yet.
        let key = self.limiter.update(|admission, woken| {
            let key = admission.add_pod(Some(0), woken);
            if pod.doubted {
                admission.suspend_pod(key);
            }
            key
        });
        state.pods.insert(key, pod.clone());
        drop(state);
        self.limiter.update(|admission, woken| admission.resize_pod(key, limit, woken));
        Some((key, pod))
    }

    /// Notes how far a wake-up is; returns the one that has ended.
    fn follow_wake(&self, view: &RevisionView) -> Option<Arc<Wake>> {
        let mut wakes = self.wakes.lock();
        let wake = wakes.now.as_ref()?;
        let Some(first) = view.ready_pods().next() else {
            if view.pods.iter().any(|pod| pod.phase == PodPhase::Starting) {
                wake.ordered();
            }
            return None;
        };
        wake.ready(first.start_took);
        let wake = wakes.now.take()?;
        wakes.past.note(wake.took());
        Some(wake)
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

    /// Refuses those who wait if no pod can be had.
    fn take_in_trouble(&self, view: &RevisionView) {
        let without_pods = self.state.read().pods.is_empty();
        if let Some(kind) = self.troubled.take_in(view.trouble.as_ref().filter(|_| without_pods)) {
            self.limiter.update(|admission, woken| admission.refuse_all(trouble::refused(kind), woken));
        }
    }

    /// Why a request cannot be held: pods cannot be started.
    pub(crate) fn trouble(&self, caller: &Caller) -> Option<Refusal> {
        self.troubled.refusal(caller)
    }

    /// The right to be held although pods cannot be started, to see whether
    /// they can by now; one request at a time has it.
    pub(crate) fn attempt(&self) -> Option<Attempt<'_>> {
        self.troubled.attempt()
    }

    /// When a client that is refused now should come back.
    pub(crate) fn retry_after(&self) -> Duration {
        let wakes = self.wakes.lock();
        if let Some(wake) = &wakes.now {
            return wakes.past.retry_while_waking(wake.lasts());
        }
        let oldest = self.limiter.read(|admission| admission.oldest_since());
        wake::retry_while_busy(oldest.map_or(Duration::ZERO, |since| clock::now().since(since)))
    }

    /// True while no pod is ready.
    pub(crate) fn is_at_zero(&self) -> bool {
        self.state.read().pods.is_empty()
    }

    /// True while wanted pods wait for room.
    pub(crate) fn is_without_room(&self) -> bool {
        self.state.read().without_room
    }

    /// Its names, as telemetry has them.
    pub(crate) fn identity(&self) -> Identity {
        let spec = self.spec();
        Identity {
            namespace: self.id.namespace.clone(),
            service: spec.service.clone(),
            configuration: spec.configuration.clone(),
            revision: self.id.name.clone(),
            ..Identity::default()
        }
    }

    pub(crate) fn spec(&self) -> Arc<RevisionSpec> {
        self.state.read().spec.clone()
    }

    pub(crate) fn pod(&self, key: PodKey) -> Option<Pod> {
        self.state.read().pods.get(&key).cloned()
    }

    /// Notes that a pod has failed; what to watch, when that begins its doubt.
    /// It gets no new work then, if so many may be passed over.
    pub(crate) fn doubt(&self, key: PodKey, sign: Sign) -> Option<Doubted> {
        let mut state = self.state.write();
        let pod = state.pods.get_mut(&key)?;
        let failures = pod.condition.failed();
        if pod.doubted {
            return None;
        }
        // One that handed a request back is out already.
        let out = self.limiter.update(|admission, _| admission.eject_pod(key, sign) || admission.is_suspended(key));
        pod.doubted = out;
        out.then(|| Doubted { key, pod: pod.clone(), rest: eject::rest(sign, failures) })
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

    /// Counts a request until the guard is dropped.
    pub(crate) fn enter(self: &Arc<Self>) -> Entered {
        let (poke, inside) = {
            let mut meter = self.meter.lock();
            (meter.enter(clock::now()), meter.in_progress())
        };
        let (at_zero, burst) = {
            let state = self.state.read();
            (state.pods.is_empty(), self.burst.begins(inside, state.made, &state.spec))
        };
        let (wakes, wake) = if at_zero { self.begin_wake() } else { (false, None) };
        Entered { inside: Inside { revision: self.clone() }, poke, wakes, wake, burst }
    }

    /// Would the next request begin a wake-up?
    pub(crate) fn is_asleep(&self) -> bool {
        self.state.read().pods.is_empty() && self.wakes.lock().now.is_none()
    }

    /// The wake-up that is under way, and whether it begins here.
    fn begin_wake(&self) -> (bool, Option<Arc<Wake>>) {
        let mut wakes = self.wakes.lock();
        let begins = wakes.now.is_none();
        let wake = wakes.now.get_or_insert_with(|| Arc::new(Wake::begin()));
        (begins, Some(wake.clone()))
    }

    /// Is there more to tell of a burst that goes on?
    pub(crate) fn burst_begins(&self) -> bool {
        let inside = self.meter.lock().in_progress();
        let state = self.state.read();
        self.burst.begins(inside, state.made, &state.spec)
    }

    /// What is in progress and was not told yet, and how much it is in all.
    pub(crate) fn announce(&self) -> Option<(MeterReport, u32)> {
        let mut meter = self.meter.lock();
        let told = meter.announce(clock::now())?;
        Some((told, meter.in_progress()))
    }

    pub(crate) fn tick(&self) -> Option<MeterReport> {
        let mut meter = self.meter.lock();
        let report = meter.tick(clock::now());
        self.burst.reported(meter.in_progress());
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

/// A request that is counted.
pub(crate) struct Inside {
    revision: Arc<Revision>,
}

impl Drop for Inside {
    fn drop(&mut self) {
        self.revision.meter.lock().leave(clock::now());
    }
}
