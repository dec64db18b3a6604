//! From one PodAutoscaler that Kubernetes scales, and what belongs to it, to
//! what is to be written.

use super::HpaSpec;
use crate::knative::annotations::resolve;
use crate::knative::config::AutoscalerConfig;
use crate::knative::object::{Existing, HORIZONTAL_POD_AUTOSCALER, SERVERLESS_SERVICE};
use crate::knative::pa::{self, ACTIVE, PaStatus, PodAutoscaler, SCALE_TARGET_INITIALIZED, SKS_READY};
use crate::knative::sks::{ServerlessService, SksSpec};
use policy::compat::Compat;
use policy::moment::Moment;
use policy::world::Path;
use serde_json::{Value, json};
use std::time::Duration;

/// What Kubernetes says of its scaling.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Replicas {
    /// Pods that there are.
    pub current: i32,
    /// Pods that it wants.
    pub desired: i32,
}

/// All that is known.
#[derive(Clone, Copy, Debug)]
pub struct Seen<'a> {
    /// The object.
    pub pa: &'a PodAutoscaler,
    /// `config-autoscaler`.
    pub config: &'a AutoscalerConfig,
    /// Its HorizontalPodAutoscaler.
    pub hpa: Option<&'a Existing<(HpaSpec, Replicas)>>,
    /// The service of the revision.
    pub sks: Option<&'a Existing<ServerlessService>>,
}

/// One thing to write. Objects have the name of the PodAutoscaler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Write {
    /// A HorizontalPodAutoscaler is to be made.
    CreateHpa(HpaSpec),
    /// It is to become this.
    UpdateHpa(HpaSpec),
    /// A ServerlessService is to be made.
    CreateSks(SksSpec),
    /// It is to become this.
    UpdateSks(SksSpec),
    /// The status, for the subresource `status`.
    Status(PaStatus),
}

impl Write {
    /// What is to be sent: an object to make, or a merge patch.
    pub fn body(&self, pa: &PodAutoscaler) -> Value {
        match self {
            Write::CreateHpa(spec) => spec.object(&pa.meta),
            Write::UpdateHpa(spec) => json!({ "spec": spec.json() }),
            Write::CreateSks(spec) => spec.object(&pa.meta),
            Write::UpdateSks(spec) => json!({ "spec": spec.json() }),
            Write::Status(status) => json!({ "status": status.json() }),
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
    /// Why it ended early.
    pub fault: Option<pa::Fault>,
}

/// Looks at one object once.
pub fn reconcile(seen: &Seen<'_>, now: Moment, compat: Compat) -> Outcome {
    let before = &seen.pa.status;
    let generation = seen.pa.meta.generation;
    let mut outcome = Outcome { status: before.clone(), writes: Vec::new(), fault: None };
    outcome.status.conditions.begin(before.observed_generation != generation, now);
    outcome.fault = step(seen, &mut outcome, now, compat).err();
    outcome.status.conditions.settle(&before.conditions, now);
    outcome.status.observed_generation = generation;
    if outcome.status != *before {
        outcome.writes.push(Write::Status(outcome.status.clone()));
    }
    outcome
}

fn step(seen: &Seen<'_>, outcome: &mut Outcome, now: Moment, compat: Compat) -> Result<(), pa::Fault> {
    let (pa, wish) = (seen.pa, seen.pa.wish());
    // Nobody gives a start up here.
    let resolved = resolve(&wish, seen.config, Duration::MAX, compat);
    let wanted = HpaSpec::new(&wish, &resolved.bounds, &pa.spec.target, compat);
    match seen.hpa {
        None => outcome.writes.push(Write::CreateHpa(wanted)),
        Some(hpa) if !hpa.owned => return Err(not_owned(outcome, pa, HORIZONTAL_POD_AUTOSCALER.name, now)),
        Some(hpa) if hpa.is.0 != wanted => outcome.writes.push(Write::UpdateHpa(wanted)),
        Some(_) => {}
    }
    let (target, protocol) = (pa.spec.target.clone(), pa.spec.protocol);
    let wanted = SksSpec { path: Path::Direct, num_activators: 0, target, protocol };
    match seen.sks {
        None => outcome.writes.push(Write::CreateSks(wanted)),
        Some(sks) if !sks.owned => return Err(not_owned(outcome, pa, SERVERLESS_SERVICE.name, now)),
        Some(sks) if sks.is.spec != wanted => outcome.writes.push(Write::UpdateSks(wanted)),
        Some(_) => {}
    }
    let replicas = seen.hpa.map_or(Replicas::default(), |hpa| hpa.is.1);
    let status = &mut outcome.status;
    status.service_name = seen.sks.map_or_else(String::new, |sks| sks.is.status.service_name.clone());
    if seen.sks.is_some_and(|sks| sks.is.is_ready()) {
        status.conditions.mark_true(SKS_READY, now);
        if replicas.current >= resolved.bounds.min_scale.max(resolved.scale.initial_scale) {
            status.conditions.mark_true(SCALE_TARGET_INITIALIZED, now);
        }
    } else {
        status.conditions.mark_unknown(SKS_READY, "NotReady", "SKS Services are not ready yet", now);
    }
    status.conditions.mark_true(ACTIVE, now);
    status.desired_scale = Some(replicas.desired);
    status.actual_scale = Some(u32::try_from(replicas.current).unwrap_or(0));
    Ok(())
}

fn not_owned(outcome: &mut Outcome, pa: &PodAutoscaler, kind: &'static str, now: Moment) -> pa::Fault {
    pa::tell_of_owner(&mut outcome.status.conditions, kind, &pa.meta.name, now);
    pa::Fault::NotOwned { kind, name: pa.meta.name.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::knative::conditions::READY;
    use crate::knative::object::Meta;
    use crate::knative::sks::{ENDPOINTS_POPULATED, Protocol, SksStatus};

    const NOW: Moment = Moment::from_unix_millis(1000);

    fn pa(annotations: &[(&str, &str)]) -> PodAutoscaler {
        let mut meta = Meta { name: "rev".into(), generation: 1, ..Meta::default() };
        let class = [("class", "hpa.autoscaling.knative.dev")];
        for (key, value) in class.iter().chain(annotations) {
            meta.annotations.insert(format!("autoscaling.knative.dev/{key}"), value.to_string());
        }
        PodAutoscaler { meta, ..PodAutoscaler::default() }
    }

    fn ready_service(path: Path) -> Existing<ServerlessService> {
        let mut status = SksStatus { service_name: "rev".into(), observed_generation: 1, ..SksStatus::default() };
        status.conditions.mark_true(ENDPOINTS_POPULATED, NOW);
        let spec = SksSpec { path, num_activators: 0, target: Default::default(), protocol: Protocol::Http1 };
        let meta = Meta { name: "rev".into(), generation: 1, ..Meta::default() };
        Existing { is: ServerlessService { meta, spec, status }, owned: true }
    }

    fn look(
        pa: &PodAutoscaler,
        hpa: Option<&Existing<(HpaSpec, Replicas)>>,
        sks: Option<&Existing<ServerlessService>>,
    ) -> Outcome {
        reconcile(&Seen { pa, config: &AutoscalerConfig::default(), hpa, sks }, NOW, Compat::Strict)
    }

    #[test]
    fn a_new_one_gets_what_it_needs_and_is_active_though_not_ready() {
        let pa = pa(&[]);
        let outcome = look(&pa, None, None);
        let [Write::CreateHpa(hpa), Write::CreateSks(sks), Write::Status(status)] = &outcome.writes[..] else {
            panic!("{:?}", outcome.writes);
        };
        assert_eq!((hpa.max_replicas, sks.path, sks.num_activators), (i32::MAX, Path::Direct, 0));
        assert!(status.conditions.holds(ACTIVE) && !status.conditions.holds(READY));
        assert_eq!(status.conditions.get(SKS_READY).unwrap().message, "SKS Services are not ready yet");
        assert_eq!(outcome.fault, None);
    }

    #[test]
    fn it_was_started_when_it_had_enough_pods_once() {
        let pa = pa(&[("min-scale", "2"), ("target", "70")]);
        let first = look(&pa, None, None);
        let Write::CreateHpa(spec) = first.writes[0].clone() else { panic!() };
        let sks = ready_service(Path::Direct);
        for (current, started) in [(1, false), (2, true)] {
            let hpa = Existing { is: (spec.clone(), Replicas { current, desired: 3 }), owned: true };
            let outcome = look(&pa, Some(&hpa), Some(&sks));
            assert_eq!(outcome.status.conditions.holds(SCALE_TARGET_INITIALIZED), started);
            assert_eq!(outcome.status.conditions.holds(READY), started);
            assert_eq!((outcome.status.desired_scale, outcome.status.actual_scale), (Some(3), Some(current as u32)));
            assert!(matches!(&outcome.writes[..], [Write::Status(_)]));
            // Nothing changes, so nothing is written.
            let again = PodAutoscaler { status: outcome.status, ..pa.clone() };
            assert_eq!(look(&again, Some(&hpa), Some(&sks)).writes, []);
        }
    }

    #[test]
    fn what_differs_is_written_anew_and_what_is_not_its_own_is_a_fault() {
        let pa = pa(&[]);
        let spec = HpaSpec {
            target: Default::default(),
            min_replicas: Some(1),
            max_replicas: 5,
            goal: None,
            stabilization_seconds: None,
        };
        let hpa = Existing { is: (spec, Replicas::default()), owned: true };
        let outcome = look(&pa, Some(&hpa), Some(&ready_service(Path::Activator)));
        assert!(matches!(&outcome.writes[..], [Write::UpdateHpa(_), Write::UpdateSks(_), Write::Status(_)]));
        let foreign = Existing { owned: false, ..hpa };
        let outcome = look(&pa, Some(&foreign), None);
        assert!(matches!(outcome.fault, Some(pa::Fault::NotOwned { kind: "HorizontalPodAutoscaler", .. })));
        assert_eq!(outcome.status.conditions.get(ACTIVE).unwrap().reason, "NotOwned");
    }

    #[test]
    fn the_object_has_the_form_that_kubernetes_takes() {
        let pa = pa(&[("metric", "queue_depth"), ("target", "2000"), ("window", "90s"), ("max-scale", "9")]);
        let outcome = look(&pa, None, None);
        let body = outcome.writes[0].body(&pa);
        assert_eq!(body["kind"], "HorizontalPodAutoscaler");
        assert_eq!(body["spec"]["metrics"][0]["pods"]["target"]["averageValue"], "2k");
        assert_eq!(body["spec"]["behavior"]["scaleDown"]["stabilizationWindowSeconds"], 90);
        assert_eq!(body["spec"]["maxReplicas"], 9);
        assert!(body["spec"].get("minReplicas").is_none());
    }
}
