//! One revision: its windows, its memory, and its last orders.

use crate::Config;
use crate::collect::Target;
use crate::collect::durations::Durations;
use crate::history::{History, Record};
use crate::metrics::Metrics;
use crate::status::{self, RevisionStatus};
use policy::collect::{Collection, Silence};
use policy::compat::Compat;
use policy::decider::Status;
use policy::limit::Overrides;
use policy::moment::Moment;
use policy::reporters::Reporters;
use policy::revision::RevisionId;
use policy::scale::{self, Memory, Observed, Ready};
use policy::scrape::Outcome;
use policy::scrape::pushers::Pushers;
use policy::stat::Stat;
use policy::world::{Order, Path, PodPhase, RevisionView};
use policy::zero::{ZeroInput, ZeroState, ZeroVerdict};
use std::sync::Arc;
use std::time::Duration;

/// Steps of one evaluation: idle is a step of its own before zero.
const STEPS_MAX: usize = 4;

pub(crate) struct Decider {
    pub(crate) view: Arc<RevisionView>,
    id: RevisionId,
    compat: Compat,
    collection: Collection,
    /// What silence means where pods are asked.
    silence: Silence,
    pushers: Pushers,
    /// Activators with requests, in case they fall silent.
    reporters: Reporters,
    /// The second for which the pods that do not push were asked last.
    asked_for: Option<Moment>,
    /// How long rounds of asking took.
    pub(crate) durations: Durations,
    memory: Memory,
    pub(crate) status: Status,
    zero: ZeroState,
    /// The last order's number of pods; `None` before the first.
    pub(crate) ordered: Option<u32>,
    /// Pods wanted, as far as that was known last.
    pub(crate) requested: Option<i32>,
    pub(crate) path: Path,
    pub(crate) history: History,
    /// Stats that were dropped because their numbers made no sense.
    pub(crate) dropped_stats: u64,
    metrics: Metrics,
}

impl Decider {
    pub(crate) fn new(id: RevisionId, view: Arc<RevisionView>, config: &Config, now: Moment) -> Decider {
        let spec = &view.spec;
        let ready = ready(&view);
        let metrics = Metrics::new(&id);
        Decider {
            collection: Collection::new(&spec.windows, silence(&view, config.silence), config.compat),
            silence: config.silence,
            pushers: Pushers::default(),
            reporters: Reporters::default(),
            asked_for: None,
            durations: Durations::default(),
            memory: Memory::new(&spec.scale, ready, now, config.compat),
            status: Status::initial(&spec.scale, config.compat),
            zero: ZeroState::new(now, config.compat),
            compat: config.compat,
            ordered: None,
            requested: None,
            path: Path::Activator,
            history: History::default(),
            dropped_stats: 0,
            metrics,
            view,
            id,
        }
    }

    pub(crate) fn follow(&mut self, view: &Arc<RevisionView>, now: Moment) {
        if Arc::ptr_eq(view, &self.view) {
            return;
        }
        if view.spec.windows != self.view.spec.windows {
            self.collection.resize(&view.spec.windows, now);
        }
        self.collection.set_silence(silence(view, self.silence));
        self.pushers.retain(now, |name| view.pods.iter().any(|pod| *pod.name == *name));
        self.reporters.retain(|name| view.pods.iter().all(|pod| pod.name != *name));
        self.view = view.clone();
    }

    /// Takes in what a pod or an activator has sent.
    pub(crate) fn record(&mut self, at: Moment, stat: &Stat, urgent: bool, now: Moment) {
        let pushes = self.pushers.push(&stat.pod_name, now);
        if pushes || self.pushers.know(&stat.pod_name) || self.view.pods.iter().any(|pod| pod.name == stat.pod_name) {
            self.pushers.note(&stat.pod_name, now);
            // Its first, for a second in which it was asked: counted already.
            if !pushes && self.asked_for == Some(at.truncated_to_second()) {
                return;
            }
        } else if self.compat == Compat::Better
            && policy::collect::check(stat).is_ok()
            && !self.reporters.note(at, stat, urgent)
        {
            return;
        }
        self.add(at, stat);
    }

    fn add(&mut self, at: Moment, stat: &Stat) {
        if let Err(why) = self.collection.record(at, stat) {
            self.dropped_stats += 1;
            crate::metrics::dropped(why);
        }
    }

    /// Averages over the two windows, as decided on last.
    pub(crate) fn averages(&self) -> Option<(f64, f64)> {
        let made = self.history.newest_first().find_map(|record| record.decision.as_ref().ok())?;
        Some((made.why.stable, made.why.panic))
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
            pod.phase == PodPhase::Ready && !self.pushers.push(&pod.name, now)
        };
        let pods: Vec<usize> = self.view.pods.iter().enumerate().filter(asked).map(|(place, _)| place).collect();
        (!pods.is_empty()).then(|| Target { revision: self.id.clone(), view: self.view.clone(), pods })
    }

    /// Whether a pod sends its stats itself.
    pub(crate) fn is_pushed_by(&self, pod: &str, now: Moment) -> bool {
        self.pushers.push(pod, now)
    }

    /// Takes in what its pods answered.
    pub(crate) fn scraped(&mut self, outcome: &Outcome, now: Moment, took: Duration) {
        if let Ok(Some(stat)) = &outcome.stat {
            self.asked_for = Some(now.truncated_to_second());
            self.add(now, stat);
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
        let collection = &mut self.collection;
        // What was said makes sense, or it would not be remembered.
        self.reporters.fill(now, |at, stat| _ = collection.record(at, stat));
        collection.release(now);
        let view = self.view.clone();
        let spec = &view.spec;
        let seen = Observed { load: self.collection.load(spec.scale.metric, now), ready: Ready::Pods(ready(&view)) };
        let decision = scale::decide(&spec.scale, &seen, &Overrides::NONE, &mut self.memory, now);
        self.status.inform(decision.as_ref().ok().map(Status::from));
        let verdict = self.step(&view, now);
        if let Some(pods) = verdict.order {
            self.ordered = Some(pods);
        }
        if verdict.want >= 0 {
            self.requested = Some(verdict.want);
        }
        self.path = verdict.path;
        self.metrics.note(decision.as_ref().ok(), &verdict);
        let record = Record { at: now, last: now, times: 1, decision, verdict, ordered: self.ordered };
        let reason = status::in_a_word(&record);
        if self.history.add(record) {
            tracing::info!(revision = %self.id, wanted = self.ordered, path = status::path(self.path), reason, "decided");
        }
        let wanted = self.ordered?;
        Some(Order { revision: self.id.clone(), wanted, path: self.path, reason: reason.into(), go_first: Vec::new() })
    }

    /// Bytes that it holds, without its history.
    pub(crate) fn bytes(&self) -> usize {
        size_of::<Decider>() + self.collection.heap_bytes() + self.pushers.heap_bytes() + self.reporters.heap_bytes()
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
