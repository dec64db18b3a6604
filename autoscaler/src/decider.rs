//! One revision: its windows, its memory, and its last orders.

use crate::Config;
use crate::collect::Target;
use crate::collect::durations::Durations;
use crate::history::{History, Record};
use crate::ingest::rows::Row;
use crate::schedule::Schedule;
use crate::status::{self, RevisionStatus};
use parking_lot::Mutex;
use policy::collect::{Collection, Dropped, Load, Silence};
use policy::compat::Compat;
use policy::decider::Status;
use policy::limit::Overrides;
use policy::moment::Moment;
use policy::overload::{Capacity, Overload, Second, WishBounds};
use policy::reporters::{Heard, Reporters};
use policy::revision::{Metric, RevisionId};
use policy::saved::{Saved, SavedLoad, Use};
use policy::scale::{self, Memory, Observed, Ready};
use policy::scrape::Outcome;
use policy::stat::Stat;
use policy::world::{Order, Path, PodName, PodPhase, RevisionView};
use policy::zero::{ZeroInput, ZeroState, ZeroVerdict};
use std::sync::Arc;
use std::time::Duration;

/// Steps of one evaluation: idle is a step of its own before zero.
const STEPS_MAX: usize = 4;

/// Whoever was asked within so long is known by that: a round each second, and
/// the time that one may take.
const ASKED: Duration = Duration::from_secs(3);

/// Seconds that are looked back at, if nobody asked for so long.
const SECONDS_BACK_MAX: i64 = 10;

// What a stat needs comes first, in as few cache lines as can be: stats of one
// second go to as many revisions, far apart in memory.
#[repr(C)]
pub(crate) struct Decider {
    /// No two have the same, of those that are and were.
    pub(crate) serial: u64,
    /// The second for which the pods that do not push were asked last.
    asked_for: Option<Moment>,
    compat: Compat,
    pub(crate) status: Status,
    /// Whoever reports by itself, in case it falls silent.
    reporters: Reporters,
    collection: Collection,
    pub(crate) view: Arc<RevisionView>,
    id: RevisionId,
    /// What silence means where pods are asked.
    silence: Silence,
    /// How long rounds of asking took.
    pub(crate) durations: Durations,
    overload: Overload,
    /// Requests that the ready pods took at the last evaluation.
    slots: f64,
    schedules: Vec<Schedule>,
    memory: Memory,
    zero: ZeroState,
    /// The last order's number of pods; `None` before the first.
    pub(crate) ordered: Option<u32>,
    /// Pods wanted, as far as that was known last.
    pub(crate) requested: Option<i32>,
    pub(crate) path: Path,
    pub(crate) history: History,
    /// Stats that were dropped because their numbers made no sense.
    pub(crate) dropped_stats: u64,
    /// Decisions made; the history may not go back so far.
    pub(crate) decisions: u64,
}

impl Decider {
    pub(crate) fn new(id: RevisionId, view: Arc<RevisionView>, config: &Config, now: Moment) -> Decider {
        let spec = &view.spec;
        let ready = ready(&view);
        Decider {
            serial: 0,
            collection: Collection::new(&spec.windows, silence(&view, config.silence), config.compat),
            silence: config.silence,
            reporters: Reporters::default(),
            asked_for: None,
            durations: Durations::default(),
            overload: Overload::new(spec.windows.stable, spec.windows.panic),
            slots: 0.0,
            schedules: match config.compat {
                Compat::Strict => Vec::new(),
                Compat::Better => config.schedules.iter().filter(|of| of.revision == id).cloned().collect(),
            },
            memory: Memory::new(&spec.scale, ready, now, config.compat),
            status: Status::initial(&spec.scale, config.compat),
            zero: ZeroState::new(now, config.compat),
            compat: config.compat,
            ordered: None,
            requested: None,
            path: Path::Activator,
            history: History::default(),
            dropped_stats: 0,
            decisions: 0,
            view,
            id,
        }
    }

    /// Goes on with what an earlier autoscaler knew of the revision, as far as
    /// that is young enough.
    pub(crate) fn restore(&mut self, saved: &Saved, now: Moment) {
        let spec = &self.view.spec;
        let usable = saved.use_of(spec.windows.stable, now);
        if usable != Use::Nothing {
            self.zero = ZeroState::restore(saved.activity, saved.path, self.compat);
            self.path = saved.path;
        }
        if usable == Use::All {
            saved.load.put_into(&mut self.collection, saved.at, now);
            self.memory = Memory::restore(&spec.scale, &saved.memory, self.compat);
            self.status = saved.status;
            self.ordered = saved.ordered;
        }
    }

    /// What the next autoscaler should know of the revision.
    pub(crate) fn save(&mut self, now: Moment) -> Saved {
        Saved {
            at: now,
            load: SavedLoad::of(&mut self.collection, self.view.spec.windows.stable, now),
            memory: self.memory.save(),
            status: self.status,
            activity: *self.zero.activity(),
            ordered: self.ordered,
            path: self.path,
        }
    }

    pub(crate) fn id(&self) -> &RevisionId {
        &self.id
    }

    pub(crate) fn follow(&mut self, view: &Arc<RevisionView>, now: Moment) {
        if Arc::ptr_eq(view, &self.view) {
            return;
        }
        if view.spec.windows != self.view.spec.windows {
            self.collection.resize(&view.spec.windows, now);
            self.overload.resize(view.spec.windows.stable, view.spec.windows.panic);
        }
        if view.pods != self.view.pods {
            self.reporters.follow(&self.view.pods, &view.pods, now);
        }
        self.collection.set_silence(silence(view, self.silence));
        self.view = view.clone();
    }

    /// Takes in what a pod or an activator has sent.
    pub(crate) fn record(&mut self, at: Moment, stat: &Stat, urgent: bool, now: Moment) {
        let heard = self.hear(&stat.pod_name, None, now);
        self.record_of(heard, at, stat, urgent);
    }

    /// The same of what a stream sends each second: its row learns where it
    /// belongs.
    pub(crate) fn record_row(&mut self, at: Moment, row: &mut Row, now: Moment) {
        let heard = self.hear(&row.stat.pod_name, row.reporter, now);
        self.record_of(heard, at, &row.stat, false);
        row.reporter = heard.place();
        if let Some(name) = self.reporters.name(&heard)
            && !Arc::ptr_eq(name, &row.stat.pod_name)
        {
            row.stat.pod_name = name.clone();
        }
    }

    /// Looks at what [`Decider::record_row`] will need.
    pub(crate) fn touch(&self, at: Moment, reporter: Option<u32>) -> u64 {
        self.collection.touch(at) ^ self.reporters.touch(reporter)
    }

    /// Looks at what [`Decider::evaluate`] will need.
    pub(crate) fn touch_all(&self, now: Moment) -> u64 {
        self.touch(now, Some(0)) ^ u64::from(self.view.without_room) ^ self.history.touch()
    }

    fn hear(&mut self, name: &PodName, guess: Option<u32>, now: Moment) -> Heard {
        let Decider { reporters, view, .. } = self;
        let pod = || view.pods.iter().find(|pod| pod.name == *name).map(|pod| pod.name.clone());
        reporters.hear(name, guess, now, pod)
    }

    fn record_of(&mut self, heard: Heard, at: Moment, stat: &Stat, urgent: bool) {
        // Its first, for a second in which it was asked: counted already.
        if heard.begins && self.asked_for == Some(at.truncated_to_second()) {
            return;
        }
        let recorded = match self.compat {
            Compat::Strict => self.collection.record(at, stat),
            Compat::Better => self.reporters.record(heard, at, stat, urgent, &mut self.collection),
        };
        self.note(recorded);
    }

    fn note(&mut self, recorded: Result<(), Dropped>) {
        if let Err(why) = recorded {
            self.dropped_stats += 1;
            crate::metrics::dropped(why);
        }
    }

    /// Averages over the two windows, as decided on last.
    pub(crate) fn averages(&self) -> Option<(f64, f64)> {
        let made = self.history.newest_first().find_map(|record| record.decision.as_ref().ok())?;
        Some((made.why.stable, made.why.panic))
    }

    /// Ready pods, as decided on last.
    pub(crate) fn ready_then(&self) -> Option<u32> {
        self.history.newest_first().find_map(|record| record.decision.as_ref().ok()).map(|made| made.why.ready)
    }

    pub(crate) fn is_in_panic(&self) -> bool {
        self.memory.panic_since().is_some()
    }

    /// Its pods, if there are some that are to be asked for their load.
    pub(crate) fn target(&self, now: Moment) -> Option<Target> {
        if is_told_by_activators_alone(&self.view) {
            return None;
        }
        let asked = |(_, pod): &(usize, &policy::world::Pod)| {
            pod.phase == PodPhase::Ready && !self.reporters.push(&pod.name, now)
        };
        let pods: Vec<usize> = self.view.pods.iter().enumerate().filter(asked).map(|(place, _)| place).collect();
        (!pods.is_empty()).then(|| Target { revision: self.id.clone(), view: self.view.clone(), pods })
    }

    /// Whether a pod sends its stats itself.
    pub(crate) fn is_pushed_by(&self, pod: &str, now: Moment) -> bool {
        self.reporters.push(pod, now)
    }

    /// Takes in what its pods answered.
    pub(crate) fn scraped(&mut self, outcome: &Outcome, now: Moment, took: Duration) {
        if let Ok(Some(stat)) = &outcome.stat {
            self.asked_for = Some(now.truncated_to_second());
            let recorded = self.collection.record(now, stat);
            self.note(recorded);
        }
        if !matches!(outcome.stat, Ok(None)) {
            self.durations.note(took);
        }
    }

    /// True when a report asks for a decision at once: there is load at zero,
    /// or `urgent`ly more of it than the pods ordered so far can carry.
    pub(crate) fn is_poked_by(&self, average_concurrency: f64, urgent: bool) -> bool {
        let burst = urgent && self.compat == Compat::Better && average_concurrency > 0.0;
        burst || self.status.poke(average_concurrency, self.compat)
    }

    /// Decides, and says what to order. The same order again and again is
    /// meant: a lost one heals by the next.
    pub(crate) fn evaluate(&mut self, now: Moment) -> Option<Order> {
        let view = self.view.clone();
        let spec = &view.spec;
        let (starting, bounds) = match self.compat {
            Compat::Strict => (0, None),
            Compat::Better => {
                let asked = self.asked_for.is_some_and(|asked| now.since(asked) < ASKED);
                let is_known = |name: &str| asked && view.pods.iter().any(|pod| *pod.name == *name);
                self.reporters.fill(now, &mut self.collection, is_known);
                (starting(&view), self.without_queue(&view, now))
            }
        };
        self.collection.release(now);
        self.overload.release(now);
        let floor = self.schedules.iter_mut().filter_map(|schedule| schedule.floor(now)).max();
        let load = match self.collection.load(spec.scale.metric, now) {
            // There is nobody who could report; that is no reason to stay cold.
            Load::NoData if floor.is_some() && view.pods.is_empty() => Load::Average { stable: 0.0, panic: 0.0 },
            load => load,
        };
        let seen = Observed { load, ready: Ready::Pods(ready(&view)), starting, bounds };
        let overrides = Overrides { floor, ceiling: None };
        let decision = scale::decide(&spec.scale, &seen, &overrides, &mut self.memory, now);
        self.status.inform(decision.as_ref().ok().map(Status::from));
        let verdict = self.step(&view, now);
        if let Some(pods) = verdict.order {
            self.ordered = Some(pods);
        }
        if verdict.want >= 0 {
            self.requested = Some(verdict.want);
        }
        self.path = verdict.path;
        self.decisions += 1;
        let record = Record { at: now, last: now, times: 1, decision, verdict, ordered: self.ordered };
        let reason = status::in_a_word(&record);
        if self.history.add(record) {
            tracing::info!(revision = %self.id, wanted = self.ordered, path = status::path(self.path), reason, "decided");
        }
        let wanted = self.ordered?;
        let go_first = self.go_first(&view, wanted, now);
        Some(Order { revision: self.id.clone(), wanted, path: self.path, reason: shared(reason), go_first })
    }

    /// Takes in the seconds that are over, and says what is to be asked for at
    /// most while requests wait for pods that start.
    fn without_queue(&mut self, view: &RevisionView, now: Moment) -> Option<WishBounds> {
        let (spec, limit) = (&view.spec, view.spec.container_concurrency);
        if spec.scale.metric != Metric::Concurrency || limit == 0 {
            return None;
        }
        let slots = f64::from(ready(view)) * f64::from(limit);
        let mut capacity = Capacity {
            slots: slots.min(std::mem::replace(&mut self.slots, slots)),
            carried: f64::from(ready(view)) * spec.scale.target,
            starting: starting(view),
            target: spec.scale.target,
        };
        let index = now.unix_seconds();
        let first = self.overload.next().unwrap_or(index - 1).max(index - SECONDS_BACK_MAX);
        for index in first..index {
            if let Some((inside, arrived)) = self.collection.second(index) {
                self.overload.see(Second { index, inside, arrived }, &capacity);
            }
        }
        capacity.slots = slots;
        let (inside, _) = self.collection.second(index).unwrap_or_default();
        self.overload.bounds(index, inside, &capacity)
    }

    /// Which pods are to go, if there are more than wanted.
    fn go_first(&self, view: &RevisionView, wanted: u32, now: Moment) -> Vec<PodName> {
        let staying = view.pods.iter().filter(|pod| pod.phase != PodPhase::Terminating).count();
        match staying.saturating_sub(wanted as usize) {
            0 => Vec::new(),
            _ if self.compat == Compat::Strict => Vec::new(),
            excess => self.reporters.go_first(&view.pods, excess, now),
        }
    }

    /// Bytes that it holds, without its history.
    pub(crate) fn bytes(&self) -> usize {
        size_of::<Decider>()
            + self.collection.heap_bytes()
            + self.reporters.heap_bytes()
            + self.overload.heap_bytes()
            + self.memory.heap_bytes()
    }

    fn step(&mut self, view: &RevisionView, now: Moment) -> ZeroVerdict {
        let through_activator = (view.path == Path::Activator).then(|| now.since(view.path_since));
        let input = ZeroInput {
            desired: self.status.desired,
            excess_burst_capacity: self.status.excess_burst_capacity,
            ready: ready(view),
            bounds: &view.spec.bounds,
            spec: &view.spec.scale,
            path_through_activator_for: through_activator,
            probe_ok: true,
        };
        let mut verdict = self.zero.step(&input, now);
        for _ in 1..STEPS_MAX {
            if verdict.recheck_after != Some(Duration::ZERO) {
                break;
            }
            verdict = self.zero.step(&input, now);
        }
        verdict
    }

    pub(crate) fn status(&self, id: &RevisionId, now: Moment) -> RevisionStatus {
        status::of(id, self, now)
    }
}

/// One text for all orders with the same reason.
fn shared(reason: &'static str) -> Arc<str> {
    static KNOWN: Mutex<Vec<Arc<str>>> = Mutex::new(Vec::new());
    let mut known = KNOWN.lock();
    if let Some(known) = known.iter().find(|known| ***known == *reason) {
        return known.clone();
    }
    let new: Arc<str> = reason.into();
    known.push(new.clone());
    new
}

fn starting(view: &RevisionView) -> u32 {
    let starting = view.pods.iter().filter(|pod| pod.phase == PodPhase::Starting).count();
    u32::try_from(starting).unwrap_or(u32::MAX)
}

pub(crate) fn ready(view: &RevisionView) -> u32 {
    u32::try_from(view.ready_pods().count()).unwrap_or(u32::MAX)
}

/// With `target-burst-capacity` -1 every request comes through an activator:
/// the reference asks no pod then.
fn is_told_by_activators_alone(view: &RevisionView) -> bool {
    view.spec.scale.target_burst_capacity == -1.0
}

fn silence(view: &RevisionView, otherwise: Silence) -> Silence {
    if is_told_by_activators_alone(view) { Silence::Idle } else { otherwise }
}
