//! From one PodAutoscaler, what belongs to it and the last decision, to what
//! is to be written.

use super::{PaStatus, PodAutoscaler, Write, activity};
use crate::knative::annotations::{Resolved, resolve};
use crate::knative::config::AutoscalerConfig;
use crate::knative::metric::MetricSpec;
use crate::knative::object::{Existing, METRIC, SERVERLESS_SERVICE};
use crate::knative::pods::Counts;
use crate::knative::sks::{ServerlessService, SksSpec};
use policy::active::Standing;
use policy::compat::Compat;
use policy::decider::Status;
use policy::moment::Moment;
use policy::world::Path;
use policy::zero::{self, Probe, Target, Verdict, ZeroInput};
use std::fmt;
use std::time::Duration;

/// Activators of a revision about whose pods nothing is known.
const ACTIVATORS_AT_FIRST: u32 = 2;

/// Labels without which nobody knows what is scaled.
const LABELS: [&str; 2] = ["serving.knative.dev/configuration", "serving.knative.dev/revision"];

/// All that is known.
#[derive(Clone, Copy, Debug)]
pub struct Seen<'a> {
    /// The object.
    pub pa: &'a PodAutoscaler,
    /// `config-autoscaler`.
    pub config: &'a AutoscalerConfig,
    /// `progress-deadline` of `config-deployment`.
    pub progress_deadline: Duration,
    /// The service of the revision.
    pub sks: Option<&'a Existing<ServerlessService>>,
    /// What is collected of it.
    pub metric: Option<&'a Existing<MetricSpec>>,
    /// The last decision; `None` where nobody decides on it yet.
    pub decision: Option<Status>,
    /// Its pods.
    pub pods: Counts,
    /// How many pods its target asks for now.
    pub target: Target,
    /// A probe through its service is answered by an activator.
    pub activator_answers: bool,
}

/// Why there is no more to do for now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It lacks this label.
    NoLabel(&'static str),
    /// An object of that kind and name belongs to somebody else.
    NotOwned {
        /// Kind of the object.
        kind: &'static str,
        /// Its name.
        name: String,
    },
    /// There is nothing of that name to scale.
    NoTarget(String),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::NoLabel(label) => write!(f, "label {label:?} not found or empty"),
            Fault::NotOwned { kind, name } => write!(f, "PA: {name} does not own {kind}: {name}"),
            Fault::NoTarget(name) => write!(f, "nothing of the name {name:?} to scale"),
        }
    }
}

/// What comes of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The next status.
    pub status: PaStatus,
    /// What is to be written, in order; the status last, where it changed.
    pub writes: Vec<Write>,
    /// Look again after that long, if nothing else happens before.
    pub recheck_after: Option<Duration>,
    /// Whether the answer of an activator counted. Where it was missing, one
    /// should be asked for, and the object looked at again after that.
    pub probe: Probe,
    /// Why it ended early.
    pub fault: Option<Fault>,
}

/// Looks at one object once.
pub fn reconcile(seen: &Seen<'_>, now: Moment, compat: Compat) -> Outcome {
    let before = &seen.pa.status;
    let generation = seen.pa.meta.generation;
    let outcome =
        Outcome { status: before.clone(), writes: Vec::new(), recheck_after: None, probe: Probe::Unused, fault: None };
    let resolved = resolve(&seen.pa.wish(), seen.config, seen.progress_deadline, compat);
    let mut step = Step { seen, resolved, now, compat, outcome };
    step.outcome.status.conditions.begin(before.observed_generation != generation, now);
    step.outcome.fault = step.run().err();
    let mut outcome = step.outcome;
    outcome.status.conditions.settle(&before.conditions, now);
    outcome.status.observed_generation = generation;
    if outcome.status != *before {
        outcome.writes.push(Write::Status(outcome.status.clone()));
    }
    outcome
}

struct Step<'a> {
    seen: &'a Seen<'a>,
    resolved: Resolved,
    now: Moment,
    compat: Compat,
    outcome: Outcome,
}

impl Step<'_> {
    fn run(&mut self) -> Result<(), Fault> {
        let with_pods = |found: &&Existing<ServerlessService>| !found.is.status.private_service_name.is_empty();
        let Some(found) = self.seen.sks.filter(with_pods) else {
            return self.without_service();
        };
        let sks = &found.is;
        self.outcome.status.metrics_service_name = sks.status.private_service_name.clone();
        let decision = self.decision()?;
        self.metric()?;
        let verdict = self.scale(sks, decision)?;
        let ready = self.seen.pods.ready;
        let path = zero::next_path(sks.spec.path, verdict.want, decision.excess_burst_capacity, ready, self.compat);
        self.service(path, zero::num_activators(ready, &self.resolved.scale))?;
        self.outcome.status.service_name = sks.status.service_name.clone();
        activity::tell_of_service(&mut self.outcome.status.conditions, sks, self.now);
        self.told(verdict.want, ready);
        Ok(())
    }

    /// Nothing is decided before the pods can be found.
    fn without_service(&mut self) -> Result<(), Fault> {
        self.service(Path::Activator, ACTIVATORS_AT_FIRST)?;
        activity::tell_of_no_service(&mut self.outcome.status.conditions, self.now);
        self.told(-1, 0);
        Ok(())
    }

    /// The last decision, or what counts before the first.
    fn decision(&self) -> Result<Status, Fault> {
        if let Some(decision) = self.seen.decision {
            return Ok(decision);
        }
        let labels = &self.seen.pa.meta.labels;
        match LABELS.iter().find(|&&label| labels.get(label).is_none_or(String::is_empty)) {
            Some(label) => Err(Fault::NoLabel(label)),
            None => Ok(Status::initial(&self.resolved.scale, self.compat)),
        }
    }

    fn metric(&mut self) -> Result<(), Fault> {
        let service = &self.outcome.status.metrics_service_name;
        let burst = self.resolved.scale.target_burst_capacity;
        let wanted = MetricSpec::new(&self.resolved.windows, service, burst);
        match self.seen.metric {
            None => self.outcome.writes.push(Write::CreateMetric(wanted)),
            Some(found) if !found.owned => return Err(self.not_owned(METRIC.name)),
            Some(found) if found.is != wanted => self.outcome.writes.push(Write::UpdateMetric(wanted)),
            Some(_) => {}
        }
        Ok(())
    }

    /// How many pods there should be; and the order for them, where the target
    /// asks for another number.
    fn scale(&mut self, sks: &ServerlessService, decision: Status) -> Result<Verdict, Fault> {
        let through_activators = sks.status.through_activators_since().map(|since| self.now.since(since));
        let input = ZeroInput {
            desired: decision.desired,
            excess_burst_capacity: decision.excess_burst_capacity,
            ready: self.seen.pods.ready,
            bounds: &self.resolved.bounds,
            spec: &self.resolved.scale,
            path_through_activator_for: through_activators,
            // Where there is no name to ask by, nobody answers.
            probe_ok: self.seen.activator_answers && !self.outcome.status.service_name.is_empty(),
        };
        let activity = activity::activity(&self.outcome.status.conditions, self.now);
        let verdict = zero::verdict(&input, &activity, sks.spec.path, self.now, self.compat);
        self.outcome.recheck_after = verdict.recheck_after;
        self.outcome.probe = verdict.probe;
        let target = &self.seen.pa.spec.target.name;
        let patch = zero::patch(verdict.order, self.seen.target).map_err(|_| Fault::NoTarget(target.clone()))?;
        self.outcome.writes.extend(patch.map(Write::Scale));
        Ok(verdict)
    }

    fn service(&mut self, path: Path, num_activators: u32) -> Result<(), Fault> {
        let spec = &self.seen.pa.spec;
        let wanted = SksSpec { path, num_activators, target: spec.target.clone(), protocol: spec.protocol };
        match self.seen.sks {
            None => self.outcome.writes.push(Write::CreateSks(wanted)),
            Some(found) if !found.owned => return Err(self.not_owned(SERVERLESS_SERVICE.name)),
            Some(found) if found.is.spec != wanted => self.outcome.writes.push(Write::UpdateSks(wanted)),
            Some(_) => {}
        }
        Ok(())
    }

    fn told(&mut self, want: i32, ready: u32) {
        let status = &mut self.outcome.status;
        status.actual_scale = Some(ready);
        status.desired_scale = Some(zero::shown_scale(status.desired_scale, want));
        let standing = Standing {
            want,
            ready,
            min_scale: self.resolved.bounds.min_scale,
            initial_scale: self.resolved.scale.initial_scale,
        };
        let reached = !status.service_name.is_empty();
        activity::tell(&mut status.conditions, &standing, reached, self.now, self.compat);
    }

    fn not_owned(&mut self, kind: &'static str) -> Fault {
        let name = &self.seen.pa.meta.name;
        activity::tell_of_owner(&mut self.outcome.status.conditions, kind, name, self.now);
        Fault::NotOwned { kind, name: name.clone() }
    }
}
