//! The autoscaler's part of the loop: load in, a number of pods and a path
//! out; with what is to hold of them, said once more in plain terms.

use super::invariant::{Invariant, Violation};
use super::setup::Setup;
use policy::active::{Active, Activity};
use policy::collect::Collection;
use policy::compat::Compat;
use policy::decider::Status;
use policy::limit::Overrides;
use policy::moment::Moment;
use policy::revision::Metric;
use policy::scale::{Memory, Observed, Ready, decide};
use policy::stat::Stat;
use policy::world::Path;
use policy::zero::{ZeroInput, ZeroState, ZeroVerdict};
use std::time::Duration;

/// A start is given up so much later than its deadline.
const START_SLACK: Duration = Duration::from_secs(30);

/// So many steps in a row may ask for the next one at once.
const STEPS_AT_ONCE: usize = 3;

/// What the scaler sees beside the load.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sight {
    pub(super) ready: u32,
    /// Since how long requests really go through the activator.
    pub(super) through_activator_for: Option<Duration>,
    pub(super) probe_ok: bool,
}

/// The scaler of the one revision.
pub(super) struct Scaler {
    collection: Collection,
    memory: Memory,
    zero: ZeroState,
    status: Status,
    /// The last second of which a load above nothing was reported.
    loaded: Option<i64>,
}

impl Scaler {
    pub(super) fn new(setup: &Setup, now: Moment) -> Scaler {
        Scaler {
            collection: Collection::new(&setup.windows, setup.silence, setup.compat),
            memory: Memory::new(&setup.spec, 0, now, setup.compat),
            zero: ZeroState::new(now, setup.compat),
            status: Status::initial(&setup.spec, setup.compat),
            loaded: None,
        }
    }

    /// Takes in a report.
    pub(super) fn record(&mut self, stat: &Stat, now: Moment, found: &mut Vec<Violation>) {
        if let Err(why) = self.collection.record(now, stat) {
            found.push(Violation::new(Invariant::Load, format!("a report was dropped as {}: {stat:?}", why.as_str())));
        }
        if stat.average_concurrency > stat.average_proxied_concurrency {
            self.loaded = Some(now.unix_seconds());
        }
    }

    /// True when load at zero should cause a decision at once.
    pub(super) fn poke(&self, average_concurrency: f64, compat: Compat) -> bool {
        self.status.poke(average_concurrency, compat)
    }

    /// One decision, and as many steps as it asks for at once.
    pub(super) fn tick(&mut self, setup: &Setup, sight: Sight, now: Moment, found: &mut Vec<Violation>) -> ZeroVerdict {
        let ready = if sight.ready == 0 { Ready::NotFound } else { Ready::Pods(sight.ready) };
        let seen = Observed::new(self.collection.load(setup.spec.metric, now), ready);
        let decision = decide(&setup.spec, &seen, &Overrides::NONE, &mut self.memory, now);
        self.status.inform(decision.ok().as_ref().map(Status::from));
        let mut verdict = self.step(setup, sight, now, found);
        let mut steps = 1;
        while verdict.recheck_after == Some(Duration::ZERO) && steps < STEPS_AT_ONCE {
            let next = self.step(setup, sight, now, found);
            verdict = ZeroVerdict { order: next.order.or(verdict.order), ..next };
            steps += 1;
        }
        if setup.compat == Compat::Better && verdict.changed && verdict.recheck_after == Some(Duration::ZERO) {
            found.push(Violation::new(Invariant::Wanted, "the way to zero asks for the next step for ever"));
        }
        verdict
    }

    fn step(&mut self, setup: &Setup, sight: Sight, now: Moment, found: &mut Vec<Violation>) -> ZeroVerdict {
        let input = ZeroInput {
            desired: self.status.desired,
            excess_burst_capacity: self.status.excess_burst_capacity,
            ready: sight.ready,
            bounds: &setup.limits,
            spec: &setup.spec,
            path_through_activator_for: sight.through_activator_for,
            probe_ok: sight.probe_ok,
        };
        let before = *self.zero.activity();
        let verdict = self.zero.step(&input, now);
        let judge = Judge { setup, sight, before, input: &input, verdict: &verdict, now };
        found.extend(judge.bounds().into_iter().chain(judge.path()));
        if verdict.order == Some(0) {
            found.extend(judge.zero(self.loaded));
        }
        verdict
    }
}

/// One verdict, and all it was made from.
struct Judge<'a> {
    setup: &'a Setup,
    sight: Sight,
    before: Activity,
    input: &'a ZeroInput<'a>,
    verdict: &'a ZeroVerdict,
    now: Moment,
}

impl Judge<'_> {
    /// At least this many, if any number is ordered.
    fn least(&self) -> i32 {
        let (spec, limits) = (&self.setup.spec, &self.setup.limits);
        if !spec.reachable {
            return 0;
        }
        let initial = if !self.before.initialized() && spec.initial_scale > 1 { spec.initial_scale } else { 0 };
        limits.min_scale.max(initial)
    }

    fn bounds(&self) -> Option<Violation> {
        let order = self.verdict.order?;
        let most = match self.setup.limits.max_scale {
            0 => u32::MAX,
            most => most.max(self.least()).unsigned_abs(),
        };
        let least = self.least().unsigned_abs();
        let as_wanted = i64::from(order) == i64::from(self.verdict.want);
        let what = format!("{order} pods are ordered, {} wanted, {least} to {most} allowed", self.verdict.want);
        ((order < least || order > most) || !as_wanted).then(|| Violation::new(Invariant::Wanted, what))
    }

    fn path(&self) -> Option<Violation> {
        if self.verdict.path == Path::Activator {
            return None;
        }
        let never = self.setup.spec.target_burst_capacity == -1.0;
        let no_pods = self.sight.ready == 0 && self.setup.compat == Compat::Better;
        let short = self.verdict.want >= 0 && (self.verdict.want == 0 || self.input.excess_burst_capacity < 0);
        let what = format!("direct path with {} ready, {} wanted", self.sight.ready, self.verdict.want);
        (never || no_pods || short).then(|| Violation::new(Invariant::Path, what))
    }

    /// What has to be so when no pods are ordered: allowed at all, and either
    /// a start had its time, or the revision was idle long enough, with the
    /// activator in its path, and without load in the whole stable window.
    fn zero(&self, loaded: Option<i64>) -> Option<Violation> {
        let (spec, limits) = (&self.setup.spec, &self.setup.limits);
        let lasts = self.before.lasts(self.now);
        let why = match self.before.active() {
            _ if !limits.scale_to_zero => "scale to zero is off",
            Active::Starting(_) if lasts >= limits.progress_deadline + START_SLACK => return None,
            Active::Starting(_) => "a start is in progress",
            Active::Yes => "it was active until now",
            Active::No(_) => {
                let retention = if spec.reachable { limits.retention } else { Duration::ZERO };
                let through = self.sight.through_activator_for.unwrap_or_default();
                let window = i64::try_from(spec.stable_window.as_secs()).unwrap_or(i64::MAX);
                let silent = loaded.is_none_or(|loaded| self.now.unix_seconds() - loaded >= window);
                if spec.target_burst_capacity != -1.0 && !self.sight.probe_ok {
                    "the activator was not seen"
                } else if lasts < retention {
                    "the retention is not over"
                } else if through < limits.grace && lasts < limits.grace {
                    "the grace is not over"
                } else if spec.metric == Metric::Concurrency && !silent {
                    "there was load within the stable window"
                } else {
                    return None;
                }
            }
        };
        Some(Violation::new(Invariant::Wanted, format!("0 pods are ordered, but {why}")))
    }
}
