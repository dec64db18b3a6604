//! One live revision: who waits, which pods there are, what was counted.

use crate::RevisionLoad;
use crate::burst::Burst;
use crate::condition::Condition;
use crate::metrics::Metrics;
use crate::pods::{Pod, Pods};
use crate::prober::Prober;
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
use policy::admit::{Admission, Bounds, Refused};
use policy::pick::Rule;
use policy::revision::{RevisionId, RevisionSpec};
use policy::timeline::{Meter, MeterReport};
use policy::wake::{self, WakeHistory};
use policy::world::{Path, PodPhase, RevisionView};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

pub(crate) struct Revision {
    pub(crate) id: RevisionId,
    pub(crate) limiter: Limiter,
    pub(crate) pods: Pods,
    /// Who asks its pods; `None` where the platform does.
    pub(crate) prober: Option<Arc<Prober>>,
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
    /// It stands among those that are tracked; under their lock.
    listed: AtomicBool,
    /// The platform knows it no longer.
    gone: AtomicBool,
}

#[derive(Default)]
struct Wakes {
    /// Set from the first request at zero until a pod is there.
    now: Option<Arc<Wake>>,
    past: WakeHistory,
}

struct State {
    spec: Arc<RevisionSpec>,
    /// Of `spec`.
    identity: Arc<Identity>,
    path: Path,
    without_room: bool,
    /// Pods that start or are ready.
    made: u32,
    /// The platform holds some for ready.
    some_ready: bool,
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
    /// `number` tells it from all others; `waiting_max` and `budget` bound what
    /// it holds.
    pub(crate) fn new(
        id: RevisionId,
        view: &RevisionView,
        number: u64,
        (waiting_max, budget): (usize, PrefixBudget),
        retirement: &Arc<Retirement>,
        prober: Option<Arc<Prober>>,
    ) -> Revision {
        let bounds = Bounds { waiting_max, places_max: usize::MAX };
        let rule = Rule::for_limit(view.spec.container_concurrency);
        let told = retirement.clone();
        let limiter = Limiter::new(bounds, rule, Some(Box::new(move |pod| told.end(number, pod))));
        let (spec, identity) = (view.spec.clone(), identity(&id, &view.spec));
        let state = State { spec, identity, path: view.path, without_room: false, made: 0, some_ready: false };
        Revision {
            id,
            pods: Pods::new(limiter.clone(), number, retirement.clone()),
            limiter,
            prober,
            state: RwLock::new(state),
            meter: Mutex::new(Meter::new()),
            reported: AtomicU64::new(0),
            budget,
            series: Series::default(),
            burst: Burst::default(),
            troubled: Troubled::default(),
            wakes: Mutex::default(),
            listed: AtomicBool::new(false),
            gone: AtomicBool::new(false),
        }
    }

    /// Takes in what the platform says of the revision.
    pub(crate) fn apply(&self, view: &Arc<RevisionView>, metrics: &Metrics) {
        {
            let mut state = self.state.write();
            if !Arc::ptr_eq(&state.spec, &view.spec) {
                state.spec = view.spec.clone();
                state.identity = identity(&self.id, &view.spec);
            }
            state.path = view.path;
            state.without_room = view.without_room > 0;
            let made = view.pods.iter().filter(|pod| pod.phase != PodPhase::Terminating).count();
            state.made = u32::try_from(made).unwrap_or(u32::MAX);
            state.some_ready = view.ready_pods().next().is_some();
        }
        if let Some(prober) = &self.prober {
            return prober.listed(self, view);
        }
        // The platform has asked them, and all sidecars are ours.
        let ready = view.ready_pods().map(|pod| {
            let condition = Arc::new(Condition::new(true));
            Pod::new(pod.name.clone(), pod.address, condition)
        });
        let limit = Some(view.spec.container_concurrency).filter(|limit| *limit > 0);
        self.pods.choose(ready.collect(), limit);
        self.settle(view, metrics);
    }

    /// The pods that may be chosen are as they should be by `view`: what
    /// follows of that for those who wait.
    pub(crate) fn settle(&self, view: &RevisionView, metrics: &Metrics) {
        self.take_in_trouble(view);
        if let Some(wake) = self.follow_wake(view) {
            wake.is_over(metrics, self);
        }
    }

    /// Notes how far a wake-up is; returns the one that has ended.
    fn follow_wake(&self, view: &RevisionView) -> Option<Arc<Wake>> {
        let mut wakes = self.wakes.lock();
        let wake = wakes.now.as_ref()?;
        if self.pods.is_empty() {
            if view.pods.iter().any(|pod| pod.phase == PodPhase::Starting) {
                wake.ordered();
            }
            return None;
        }
        wake.ready(view.ready_pods().next().and_then(|first| first.start_took));
        let wake = wakes.now.take()?;
        wakes.past.note(wake.took());
        Some(wake)
    }

    /// The revision is gone: nobody waits for it any more.
    pub(crate) fn retire(&self) {
        self.gone.store(true, Ordering::Relaxed);
        self.stop_asking();
        self.pods.retire();
        self.limiter.update(|admission, woken| admission.refuse_all(Refused::RevisionRemoved, woken));
    }

    /// Nobody asks its pods any more.
    pub(crate) fn stop_asking(&self) {
        if let Some(prober) = &self.prober {
            prober.end();
        }
    }

    /// Its pods are asked for by name, of a mesh that routes to single ones.
    pub(crate) fn is_passed_through(&self) -> bool {
        self.prober.as_ref().is_some_and(|prober| prober.passes_through())
    }

    /// Nobody waits any longer: the process ends.
    pub(crate) fn give_up(&self) {
        self.limiter.update(|admission, woken| admission.refuse_all(Refused::Draining, woken));
    }

    /// Refuses those who wait if no pod can be had.
    fn take_in_trouble(&self, view: &RevisionView) {
        let without_pods = self.pods.is_empty();
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

    /// True while no pod may be chosen.
    pub(crate) fn is_at_zero(&self) -> bool {
        self.pods.is_empty()
    }

    /// True while wanted pods wait for room.
    pub(crate) fn is_without_room(&self) -> bool {
        self.state.read().without_room
    }

    /// Its names, as telemetry has them.
    pub(crate) fn identity(&self) -> Arc<Identity> {
        self.state.read().identity.clone()
    }

    pub(crate) fn spec(&self) -> Arc<RevisionSpec> {
        self.state.read().spec.clone()
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
        let burst = {
            let state = self.state.read();
            self.burst.begins(inside, state.made, &state.spec)
        };
        let (wakes, wake) = if self.is_without_pods() { self.begin_wake() } else { (false, None) };
        Entered { inside: Inside { revision: self.clone() }, poke, wakes, wake, burst }
    }

    /// None may be chosen, and none is known that only has not answered yet.
    fn is_without_pods(&self) -> bool {
        self.pods.is_empty() && !self.state.read().some_ready
    }

    /// Would the next request begin a wake-up?
    pub(crate) fn is_asleep(&self) -> bool {
        self.is_without_pods() && self.wakes.lock().now.is_none()
    }

    /// The wake-up that is under way, and whether it begins here.
    fn begin_wake(&self) -> (bool, Option<Arc<Wake>>) {
        let mut wakes = self.wakes.lock();
        // A pod may have come since; nobody would end a wake-up that begins now.
        if !self.is_without_pods() {
            return (false, None);
        }
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

    /// There is something to report of it at the next tick, or may be.
    pub(crate) fn is_reported(&self) -> bool {
        !self.gone.load(Ordering::Relaxed) && self.meter.lock().is_tracked()
    }

    /// Notes that it stands among the tracked ones; false if it did before.
    pub(crate) fn list(&self) -> bool {
        !self.listed.swap(true, Ordering::Relaxed)
    }

    /// Ends [`Revision::list`].
    pub(crate) fn unlist(&self) -> bool {
        self.listed.swap(false, Ordering::Relaxed)
    }

    /// The average concurrency that was reported last.
    pub(crate) fn reported(&self) -> f64 {
        f64::from_bits(self.reported.load(Ordering::Relaxed))
    }

    /// Requests that are at pods.
    pub(crate) fn in_flight(&self) -> usize {
        self.limiter.read(Admission::running)
    }

    /// Somebody waits for a slot.
    pub(crate) fn is_waited_for(&self) -> bool {
        self.limiter.read(Admission::waiting) > 0
    }

    pub(crate) fn load(&self) -> RevisionLoad {
        self.limiter.read(|admission| RevisionLoad {
            revision: self.id.clone(),
            held: admission.waiting(),
            oldest_held_since: admission.oldest_since(),
            in_flight: admission.running(),
            pods: admission.pod_count(),
        })
    }
}

fn identity(id: &RevisionId, spec: &RevisionSpec) -> Arc<Identity> {
    Arc::new(Identity {
        namespace: id.namespace.clone(),
        service: spec.service.clone(),
        configuration: spec.configuration.clone(),
        revision: id.name.clone(),
        ..Identity::default()
    })
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
