//! Reconciles of one PodAutoscaler, one after the other. Its status and its
//! Metric are kept between them, and all else is given.

use super::super::conditions::same_conditions;
use super::super::config::{config, texts};
use super::super::row::{Verdict, at, differs, int, list, located, part, same};
use super::super::scale_to_zero::target;
use super::super::serverless_service::path;
use autoscaler::knative::annotations::{Annotations, Reachability};
use autoscaler::knative::conditions::{Condition, Conditions, READY, Truth};
use autoscaler::knative::config::AutoscalerConfig;
use autoscaler::knative::metric::MetricSpec;
use autoscaler::knative::object::{Existing, Meta, ObjectRef};
use autoscaler::knative::pa::{Outcome, PaSpec, PaStatus, PodAutoscaler, Seen, Write, reconcile};
use autoscaler::knative::pods::Counts;
use autoscaler::knative::sks::{self, Protocol, ServerlessService, SksSpec, SksStatus};
use policy::compat::Compat;
use policy::decider::Status;
use policy::moment::Moment;
use policy::zero::Probe;
use serde_json::Value;
use std::time::Duration;

pub(super) fn judge(row: &Value, mode: Compat) -> Verdict {
    let mut world = World::new(row, mode)?;
    for (number, step) in list(&row["steps"])?.iter().enumerate() {
        located(|| format!("step {number}"), world.step(step))?;
    }
    Ok(())
}

/// What is kept from one step to the next.
struct World {
    config: AutoscalerConfig,
    progress_deadline: Duration,
    pa: PodAutoscaler,
    metric: Option<Existing<MetricSpec>>,
    mode: Compat,
}

impl World {
    fn new(row: &Value, mode: Compat) -> Verdict<World> {
        let pa = &row["pa"];
        let mut meta = Meta { namespace: "ns".into(), name: "rev".into(), ..Meta::default() };
        meta.annotations = texts(&pa["annotations"])?;
        for label in ["configuration", "revision"] {
            meta.labels.insert(format!("serving.knative.dev/{label}"), "rev".into());
        }
        let spec = PaSpec {
            container_concurrency: part(&pa["container_concurrency"])?,
            reachability: reachability(&pa["reachability"]),
            protocol: Protocol::Http1,
            target: ObjectRef { name: "rev-deployment".into(), ..ObjectRef::default() },
        };
        let seconds = part(&row["progress_deadline_s"])?;
        Ok(World {
            config: config(&row["config"], mode)?,
            progress_deadline: Duration::from_secs(seconds),
            pa: PodAutoscaler { meta, spec, status: PaStatus::default() },
            metric: None,
            mode,
        })
    }

    fn step(&mut self, step: &Value) -> Verdict {
        let given = &step["in"];
        self.change(given)?;
        let now = at(int(&given["t_ms"])?);
        let [desired, excess_burst_capacity]: [i32; 2] = part(&given["decider"])?;
        let [ready, not_ready, pending, terminating]: [u32; 4] = part(&given["pods"])?;
        let sks = self.service(&given["sks"])?;
        let seen = Seen {
            pa: &self.pa,
            config: &self.config,
            progress_deadline: self.progress_deadline,
            sks: sks.as_ref(),
            metric: self.metric.as_ref(),
            decision: Some(Status { desired, excess_burst_capacity }),
            pods: Counts { ready, not_ready, pending, terminating },
            target: target(&given["replicas"], given["target_exists"].as_bool().unwrap_or(true))?,
            activator_answers: given["probe"] == "ok",
        };
        let outcome = reconcile(&seen, now, self.mode);
        same_outcome(&step["out"], &outcome)?;
        self.pa.status = outcome.status;
        self.keep(outcome.writes);
        Ok(())
    }

    /// What a step changes before it is looked at.
    fn change(&mut self, given: &Value) -> Verdict {
        self.pa.meta.generation = part(&given["generation"])?;
        if let Some(changed) = given.get("config") {
            self.config = config(changed, self.mode)?;
        }
        if given["reachability"].is_string() {
            self.pa.spec.reachability = reachability(&given["reachability"]);
        }
        if let Some(changed) = given.get("annotations_set").filter(|changed| !changed.is_null()) {
            let changed: Annotations = texts(changed)?;
            self.pa.meta.annotations.extend(changed);
        }
        Ok(())
    }

    /// The service as a step gives it; null = there is none.
    fn service(&self, given: &Value) -> Verdict<Option<Existing<ServerlessService>>> {
        if given.is_null() {
            return Ok(None);
        }
        let spec = &self.pa.spec;
        let is = ServerlessService {
            meta: Meta { generation: 1, ..self.pa.meta.clone() },
            spec: SksSpec {
                path: path(&given["mode"])?,
                num_activators: part(&given["num_activators"])?,
                target: spec.target.clone(),
                protocol: spec.protocol,
            },
            status: SksStatus {
                service_name: part(&given["service"])?,
                private_service_name: part(&given["private_service"])?,
                observed_generation: 1,
                conditions: service_conditions(given)?,
            },
        };
        Ok(Some(Existing { is, owned: true }))
    }

    fn keep(&mut self, writes: Vec<Write>) {
        for write in writes {
            if let Write::CreateMetric(is) | Write::UpdateMetric(is) = write {
                self.metric = Some(Existing { is, owned: true });
            }
        }
    }
}

fn reachability(value: &Value) -> Reachability {
    Reachability::parse(value.as_str().unwrap_or_default())
}

fn service_conditions(given: &Value) -> Verdict<Conditions> {
    let truth = match given["ready"].as_str() {
        Some("True") => Truth::True,
        Some("False") => Truth::False,
        Some("Unknown") => Truth::Unknown,
        _ => return differs("malformed row: unknown status of a condition"),
    };
    let condition = |kind: &str, truth, info, message: &str, since: Moment| Condition {
        kind: kind.to_owned(),
        truth,
        info,
        reason: String::new(),
        message: message.to_owned(),
        since,
    };
    let message = given["ready_message"].as_str().unwrap_or_default();
    let mut list = vec![condition(READY, truth, false, message, at(0))];
    let since: Option<i64> = part(&given["activator_populated_since_ms"])?;
    list.extend(since.map(|since| condition(sks::ACTIVATOR_ENDPOINTS_POPULATED, Truth::True, true, "", at(since))));
    Ok(Conditions::restore(sks::NEEDED, list))
}

fn same_outcome(out: &Value, got: &Outcome) -> Verdict {
    same("error", out["error"] != "", got.fault.is_some())?;
    let patch = got.writes.iter().find_map(|write| match write {
        Write::Scale(pods) => Some(*pods),
        _ => None,
    });
    same("patch_replicas", part(&out["patch_replicas"])?, patch)?;
    let rechecks: Vec<u128> = got.recheck_after.iter().map(Duration::as_millis).collect();
    same("requeue_after_ms", part(&out["requeue_after_ms"])?, rechecks)?;
    same("probe_calls", part(&out["probe_calls"])?, u32::from(got.probe != Probe::Unused))?;
    same("async_probe_offered", part(&out["async_probe_offered"])?, got.probe == Probe::Failed)?;
    located(|| "sks_write".to_owned(), same_service(&out["sks_write"], &got.writes))?;
    located(|| "metric_write".to_owned(), same_metric(&out["metric_write"], &got.writes))?;
    located(|| "status".to_owned(), same_status(&out["status"], &got.status))
}

fn same_service(expected: &Value, writes: &[Write]) -> Verdict {
    let written = writes.iter().find_map(|write| match write {
        Write::CreateSks(spec) => Some(("create", spec)),
        Write::UpdateSks(spec) => Some(("update", spec)),
        _ => None,
    });
    same("op", expected["op"].as_str(), written.map(|(op, _)| op))?;
    let Some((_, spec)) = written else { return Ok(()) };
    same("mode", expected["mode"].as_str(), Some(sks::mode(spec.path)))?;
    same("num_activators", part(&expected["num_activators"])?, spec.num_activators)
}

fn same_metric(expected: &Value, writes: &[Write]) -> Verdict {
    let written = writes.iter().find_map(|write| match write {
        Write::CreateMetric(spec) => Some(("create", spec)),
        Write::UpdateMetric(spec) => Some(("update", spec)),
        _ => None,
    });
    same("op", expected["op"].as_str(), written.map(|(op, _)| op))?;
    let Some((_, spec)) = written else { return Ok(()) };
    same("stable_window_ns", part(&expected["stable_window_ns"])?, spec.stable_window.as_nanos())?;
    same("panic_window_ns", part(&expected["panic_window_ns"])?, spec.panic_window.as_nanos())?;
    same("scrape_target", expected["scrape_target"].as_str(), Some(spec.scrape_target.as_str()))
}

fn same_status(expected: &Value, got: &PaStatus) -> Verdict {
    same("desired_scale", part(&expected["desired_scale"])?, got.desired_scale)?;
    same("actual_scale", part(&expected["actual_scale"])?, got.actual_scale)?;
    same("service_name", expected["service_name"].as_str(), Some(got.service_name.as_str()))?;
    let metrics = got.metrics_service_name.as_str();
    same("metrics_service_name", expected["metrics_service_name"].as_str(), Some(metrics))?;
    same("observed_generation", part(&expected["observed_generation"])?, got.observed_generation)?;
    same_conditions(&expected["conditions"], &got.conditions)
}
