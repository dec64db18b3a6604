//! One revision: its windows, its memory, and its last orders.

mod held;

use crate::Config;
use crate::collect::Target;
use crate::collect::durations::Durations;
use crate::history::{Fresh, History};
use crate::ingest::rows::Row;
use crate::schedule::Schedule;
use crate::status::{self, RevisionStatus};
use crate::why::answer::Inquiry;
pub(crate) use held::Held;
use policy::collect::{Collection, Dropped, Silence};
use policy::compat::Compat;
use policy::decider::Status;
use policy::judge::{self, Judged, Mind, Sight};
use policy::moment::Moment;
use policy::overload::Overload;
use policy::reporters::{Heard, Reporters};
use policy::revision::RevisionId;
use policy::saved::{Saved, SavedLoad, Use};
use policy::scale::Memory;
use policy::scrape::Outcome;
use policy::stat::Stat;
use policy::world::{Order, Path, PodName, PodPhase, RevisionView};
use policy::zero::ZeroState;
use std::sync::Arc;
use std::time::Duration;

/// Whoever was asked within so long is known by that: a round each second, and
/// the time that one may take.
const ASKED: Duration = Duration::from_secs(3);

/// What a decider takes in. There is nothing else by which a decision comes to
/// be, so whoever has all of them can make it again ([`crate::explain`]).
pub(crate) enum Input<'a> {
    /// What the platform knows of it now.
    View(&'a Arc<RevisionView>),
    /// What a pod or an activator has sent.
    Stat { at: Moment, stat: &'a Stat, urgent: bool },
    /// What its pods answered.
    Scraped { outcome: &'a Outcome, took: Duration },
    /// It is to decide.
    Due,
}

/// What came of an input.
pub(crate) enum Taken {
    /// It is taken in.
    Noted,
    /// It was decided upon.
    Decided(Box<Evaluated>),
}

/// One evaluation.
pub(crate) struct Evaluated {
    pub(crate) judged: Judged,
    /// Pods ordered so far; `None` before the first order.
    pub(crate) ordered: Option<u32>,
    pub(crate) order: Option<Order>,
    /// Bytes of the history before and after it.
    pub(crate) history: (usize, usize),
}

impl Taken {
    pub(crate) fn decided(&self) -> Option<&Evaluated> {
        match self {
            Taken::Noted => None,
            Taken::Decided(evaluated) => Some(evaluated),
        }
    }
}

// What a stat needs comes first, in as few cache lines as can be: stats of one
// second go to as many revisions, far apart in memory.
#[repr(C, align(64))]
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
    pub(crate) id: RevisionId,
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
            self.memory = Memory::restore(spec.scale.scale_down_delay, &saved.memory, self.compat);
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

    /// Takes an input in, and decides if that asks for it.
    pub(crate) fn take(&mut self, input: &Input<'_>, now: Moment) -> Taken {
        match *input {
            Input::View(view) => self.follow(view, now),
            Input::Stat { at, stat, urgent } => {
                self.record(at, stat, urgent, now);
                if self.is_poked_by(stat.average_concurrency, urgent) {
                    return Taken::Decided(self.evaluate(now).into());
                }
            }
            Input::Scraped { outcome, took } => self.scraped(outcome, now, took),
            Input::Due => return Taken::Decided(self.evaluate(now).into()),
        }
        Taken::Noted
    }

    /// The same of a stat that a stream sends each second.
    pub(crate) fn take_row(&mut self, at: Moment, row: &mut Row, now: Moment) -> Taken {
        self.record_row(at, row, now);
        if self.is_poked_by(row.stat.average_concurrency, false) {
            return Taken::Decided(self.evaluate(now).into());
        }
        Taken::Noted
    }

    fn follow(&mut self, view: &Arc<RevisionView>, now: Moment) {
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
    fn record(&mut self, at: Moment, stat: &Stat, urgent: bool, now: Moment) {
        let heard = self.hear(&stat.pod_name, None, now);
        self.record_of(heard, at, stat, urgent);
    }

    /// The same of what a stream sends each second: its row learns where it
    /// belongs.
    fn record_row(&mut self, at: Moment, row: &mut Row, now: Moment) {
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
        let made = self.history.newest_first().find_map(|record| record.made.as_ref().ok())?;
        Some((made.stable, made.panic))
    }

    /// Ready pods, as decided on last.
    pub(crate) fn ready_then(&self) -> Option<u32> {
        self.history.newest_first().find_map(|record| record.made.as_ref().ok()).map(|made| made.ready)
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

    fn scraped(&mut self, outcome: &Outcome, now: Moment, took: Duration) {
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
    fn is_poked_by(&self, average_concurrency: f64, urgent: bool) -> bool {
        let burst = urgent && self.compat == Compat::Better && average_concurrency > 0.0;
        burst || self.status.poke(average_concurrency, self.compat)
    }

    /// Decides, and says what to order. The same order again and again is
    /// meant: a lost one heals by the next.
    fn evaluate(&mut self, now: Moment) -> Evaluated {
        let view = self.view.clone();
        if self.compat == Compat::Better {
            let asked = self.asked_for.is_some_and(|asked| now.since(asked) < ASKED);
            let is_known = |name: &str| asked && view.pods.iter().any(|pod| *pod.name == *name);
            self.reporters.fill(now, &mut self.collection, is_known);
        }
        let sight = Sight {
            ready: ready(&view),
            starting: starting(&view),
            pods: !view.pods.is_empty(),
            floor: self.schedules.iter_mut().filter_map(|schedule| schedule.floor(now)).max(),
            in_path_for: (view.path == Path::Activator).then(|| now.since(view.path_since)),
        };
        let mind = Mind {
            collection: &mut self.collection,
            overload: &mut self.overload,
            slots: &mut self.slots,
            memory: &mut self.memory,
            status: &mut self.status,
            zero: &mut self.zero,
        };
        let judged = judge::judge(&view.spec, &sight, mind, self.compat, now);
        let Judged { decision, verdict } = &judged;
        if let Some(pods) = verdict.order {
            self.ordered = Some(pods);
        }
        if verdict.want >= 0 {
            self.requested = Some(verdict.want);
        }
        self.path = verdict.path;
        self.decisions += 1;
        let fresh = Fresh { at: now, decision, verdict, ordered: self.ordered };
        let reason = status::in_a_word(&fresh);
        let before = self.history.bytes();
        if self.history.add(&fresh) {
            tracing::info!(revision = %self.id, wanted = self.ordered, path = status::path(self.path), reason, "decided");
        }
        let order = self.ordered.map(|wanted| {
            let go_first = self.go_first(&view, wanted, now);
            Order { revision: self.id.clone(), wanted, path: self.path, reason, go_first }
        });
        Evaluated { judged, ordered: self.ordered, order, history: (before, self.history.bytes()) }
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

    pub(crate) fn id(&self) -> RevisionId {
        self.id.clone()
    }

    /// Whether a name is that of its service, or its own.
    pub(crate) fn is_called(&self, name: &str) -> bool {
        *self.view.spec.service == *name || *self.id.name == *name
    }

    /// The names that it goes by.
    pub(crate) fn names(&self) -> [Arc<str>; 2] {
        [self.view.spec.service.clone(), self.id.name.clone()]
    }

    /// All that an answer is made from.
    pub(crate) fn inquire(&self) -> Inquiry {
        let mut collection = self.collection.clone();
        collection.settle();
        Inquiry {
            id: self.id.clone(),
            view: self.view.clone(),
            compat: self.compat,
            collection,
            overload: self.overload.clone(),
            slots: self.slots,
            memory: self.memory.clone(),
            status: self.status,
            zero: self.zero,
            ordered: self.ordered,
            schedules: self.schedules.clone(),
            history: self.history.clone(),
        }
    }

    pub(crate) fn status(&self, id: &RevisionId, now: Moment) -> RevisionStatus {
        status::of(id, self, now)
    }
}

pub(crate) fn starting(view: &RevisionView) -> u32 {
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
