//! What the reference describes of reconciles, and no recording shows.

use super::*;
use crate::knative::conditions::{Condition, READY, Truth};
use crate::knative::config::AutoscalerConfig;
use crate::knative::metric::MetricSpec;
use crate::knative::object::Existing;
use crate::knative::pods::Counts;
use crate::knative::sks::{self, ServerlessService, SksSpec, SksStatus};
use policy::compat::Compat;
use policy::decider::Status;
use policy::moment::Moment;
use policy::world::Path;
use policy::zero::{Probe, Target};
use std::time::Duration;

fn second(seconds: i64) -> Moment {
    Moment::from_unix_millis(seconds * 1000)
}

fn pa() -> PodAutoscaler {
    let mut meta = Meta { namespace: "ns".into(), name: "rev".into(), generation: 1, ..Meta::default() };
    for label in ["configuration", "revision"] {
        meta.labels.insert(format!("serving.knative.dev/{label}"), "rev".into());
    }
    PodAutoscaler { meta, ..PodAutoscaler::default() }
}

fn service(path: Path, num_activators: u32) -> Existing<ServerlessService> {
    let spec = SksSpec { path, num_activators, target: ObjectRef::default(), protocol: Protocol::Http1 };
    let mut status = SksStatus {
        service_name: "rev".into(),
        private_service_name: "rev-private".into(),
        observed_generation: 1,
        ..SksStatus::default()
    };
    status.conditions.mark_true(sks::ENDPOINTS_POPULATED, second(0));
    if path == Path::Activator {
        status.conditions.tell(sks::ACTIVATOR_ENDPOINTS_POPULATED, true, "", "", second(0));
    }
    Existing { is: ServerlessService { meta: pa().meta, spec, status }, owned: true }
}

/// What a test gives; the rest is as it mostly is.
struct World {
    pa: PodAutoscaler,
    sks: Option<Existing<ServerlessService>>,
    metric: Option<Existing<MetricSpec>>,
    decision: Option<Status>,
    ready: u32,
    target: Target,
    activator_answers: bool,
    compat: Compat,
}

impl World {
    fn new() -> World {
        World {
            pa: pa(),
            sks: Some(service(Path::Activator, 4)),
            metric: None,
            decision: Some(Status { desired: 1, excess_burst_capacity: -1 }),
            ready: 1,
            target: Target::Unset,
            activator_answers: true,
            compat: Compat::Strict,
        }
    }

    fn look(&self, now: i64) -> Outcome {
        let seen = Seen {
            pa: &self.pa,
            config: &AutoscalerConfig::default(),
            progress_deadline: Duration::from_secs(600),
            sks: self.sks.as_ref(),
            metric: self.metric.as_ref(),
            decision: self.decision,
            pods: Counts { ready: self.ready, ..Counts::default() },
            target: self.target,
            activator_answers: self.activator_answers,
        };
        reconcile(&seen, second(now), self.compat)
    }

    /// Looks, and keeps what is written.
    fn turn(&mut self, now: i64) -> Outcome {
        let outcome = self.look(now);
        self.pa.status = outcome.status.clone();
        for write in &outcome.writes {
            match write {
                Write::CreateMetric(is) | Write::UpdateMetric(is) => {
                    self.metric = Some(Existing { is: is.clone(), owned: true });
                }
                Write::Scale(pods) => self.target = Target::Pods(i32::try_from(*pods).unwrap()),
                Write::UpdateSks(spec) => self.sks.as_mut().unwrap().is.spec = spec.clone(),
                _ => {}
            }
        }
        outcome
    }
}

fn condition<'a>(outcome: &'a Outcome, kind: &str) -> &'a Condition {
    outcome.status.conditions.get(kind).unwrap()
}

fn words<'a>(outcome: &'a Outcome, kind: &str) -> (Truth, &'a str) {
    let condition = condition(outcome, kind);
    (condition.truth, &condition.reason)
}

#[test]
fn what_is_as_it_should_be_needs_no_write() {
    let mut world = World::new();
    let first = world.turn(10);
    assert!(matches!(&first.writes[..], [Write::CreateMetric(_), Write::Status(_)]), "{:?}", first.writes);
    let again = world.turn(20);
    assert_eq!((again.writes, again.fault), (vec![], None));
}

#[test]
fn without_a_decision_that_of_the_beginning_counts_and_labels_are_needed() {
    let mut world = World { decision: None, ..World::new() };
    let outcome = world.look(10);
    assert_eq!((outcome.fault, outcome.status.desired_scale), (None, Some(-1)));
    world.pa.meta.labels.remove("serving.knative.dev/revision");
    let outcome = world.look(10);
    assert_eq!(outcome.fault, Some(Fault::NoLabel("serving.knative.dev/revision")));
    assert!(matches!(&outcome.writes[..], [Write::Status(_)]), "{:?}", outcome.writes);
    // Once somebody decides on it, nobody asks for labels.
    world.decision = Some(Status { desired: 1, excess_burst_capacity: 0 });
    assert_eq!(world.look(10).fault, None);
}

#[test]
fn what_belongs_to_somebody_else_is_a_fault() {
    let mut world = World::new();
    world.sks.as_mut().unwrap().owned = false;
    let outcome = world.look(10);
    assert_eq!(outcome.fault, Some(Fault::NotOwned { kind: "ServerlessService", name: "rev".into() }));
    assert_eq!(words(&outcome, ACTIVE), (Truth::False, "NotOwned"));
    assert_eq!(words(&outcome, READY), (Truth::False, "NotOwned"));

    let mut world = World::new();
    let windows = MetricSpec { stable_window: Duration::ZERO, panic_window: Duration::ZERO, scrape_target: "".into() };
    world.metric = Some(Existing { is: windows, owned: false });
    let outcome = world.look(10);
    assert_eq!(outcome.fault, Some(Fault::NotOwned { kind: "Metric", name: "rev".into() }));
    assert!(matches!(&outcome.writes[..], [Write::Status(_)]), "{:?}", outcome.writes);

    // Also where it has no private service yet.
    let mut world = World::new();
    let sks = world.sks.as_mut().unwrap();
    (sks.owned, sks.is.status) = (false, SksStatus::default());
    assert!(matches!(world.look(10).fault, Some(Fault::NotOwned { .. })));
}

#[test]
fn a_missing_target_is_a_fault_and_the_service_stays() {
    let mut world = World { target: Target::Missing, ..World::new() };
    world.sks = Some(service(Path::Direct, 9));
    let outcome = world.look(10);
    assert!(matches!(outcome.fault, Some(Fault::NoTarget(_))));
    assert!(matches!(&outcome.writes[..], [Write::CreateMetric(_), Write::Status(_)]), "{:?}", outcome.writes);
    // Nobody has looked at the new generation to the end.
    assert_eq!(words(&outcome, READY), (Truth::Unknown, "NewObservedGenFailure"));
    assert_eq!(outcome.status.observed_generation, 1);
}

#[test]
fn a_service_whose_spec_has_changed_is_not_ready() {
    let mut world = World::new();
    world.sks.as_mut().unwrap().is.meta.generation = 2;
    let outcome = world.look(10);
    assert_eq!(words(&outcome, SKS_READY), (Truth::Unknown, "NotReady"));
    assert_eq!(words(&outcome, ACTIVE), (Truth::True, ""));
    assert_eq!(words(&outcome, READY), (Truth::Unknown, "NotReady"));
}

#[test]
fn a_new_generation_of_an_idle_one_is_looked_at_in_one_go() {
    let mut world = World::new();
    world.turn(10);
    world.decision = Some(Status { desired: 0, excess_burst_capacity: -1 });
    let idle = world.turn(70);
    assert_eq!((words(&idle, ACTIVE), idle.recheck_after), ((Truth::False, "NoTraffic"), Some(Duration::from_secs(3))));
    world.pa.meta.generation = 2;
    let outcome = world.look(80);
    assert_eq!(words(&outcome, READY), (Truth::False, "NoTraffic"));
    assert_eq!((condition(&outcome, READY).since, outcome.status.observed_generation), (second(70), 2));
}

#[test]
fn nobody_answers_where_there_is_no_name_to_ask_by() {
    let mut world = World::new();
    world.turn(10);
    world.decision = Some(Status { desired: 0, excess_burst_capacity: -1 });
    world.turn(70);
    assert_eq!(world.look(110).probe, Probe::Passed);
    world.pa.status.service_name.clear();
    let outcome = world.look(110);
    assert_eq!((outcome.probe, outcome.recheck_after), (Probe::Failed, None));
}

#[test]
fn a_start_that_failed_is_told_until_the_next_one_unless_strict() {
    for (compat, reason) in [(Compat::Strict, "NoTraffic"), (Compat::Better, "TimedOut")] {
        let mut world = World { ready: 0, compat, ..World::new() };
        world.turn(0);
        world.decision = Some(Status { desired: 0, excess_burst_capacity: -1 });
        let failed = world.turn(631);
        assert_eq!(words(&failed, ACTIVE), (Truth::False, "TimedOut"));
        assert_eq!(condition(&failed, ACTIVE).message, "The target could not be activated.");
        assert_eq!(words(&world.turn(632), ACTIVE), (Truth::False, reason));
        world.decision = Some(Status { desired: 1, excess_burst_capacity: -1 });
        assert_eq!(words(&world.turn(640), ACTIVE), (Truth::Unknown, "Queued"));
    }
}

#[test]
fn a_restart_moves_no_path_unless_strict() {
    for (compat, moves) in [(Compat::Strict, true), (Compat::Better, false)] {
        let mut world = World { sks: Some(service(Path::Direct, 4)), compat, ..World::new() };
        world.decision = Some(Status { desired: 1, excess_burst_capacity: 5 });
        world.turn(10);
        world.decision = None;
        let outcome = world.turn(20);
        let moved =
            outcome.writes.iter().any(|write| matches!(write, Write::UpdateSks(spec) if spec.path == Path::Activator));
        assert_eq!(moved, moves);
    }
}

#[test]
fn an_idle_one_with_enough_pods_of_which_nothing_is_known_is_left_alone() {
    let mut world = World::new();
    world.turn(10);
    let conditions = world.pa.status.conditions.iter().cloned().map(|mut condition| {
        if condition.kind == ACTIVE {
            (condition.truth, condition.reason) = (Truth::False, "Elsewhere".into());
        }
        condition
    });
    world.pa.status.conditions = Conditions::restore(NEEDED, conditions);
    world.decision = None;
    assert_eq!(words(&world.look(20), ACTIVE), (Truth::False, "Elsewhere"));
}

#[test]
fn the_scale_is_a_patch_that_needs_no_value_before() {
    let body = Write::Scale(3).body(&pa());
    assert_eq!(body.to_string(), r#"[{"op":"add","path":"/spec/replicas","value":3}]"#);
}
