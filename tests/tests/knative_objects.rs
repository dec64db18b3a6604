//! Objects of a real cluster (`vectors/knative-cluster`): what we would make is
//! what was made there, and what was at rest there is at rest for us.

use autoscaler::knative::annotations::Reachability;
use autoscaler::knative::bucket;
use autoscaler::knative::conditions::{Condition, Conditions, Truth};
use autoscaler::knative::config::AutoscalerConfig;
use autoscaler::knative::metric::MetricSpec;
use autoscaler::knative::object::{Existing, Meta, ObjectRef};
use autoscaler::knative::pa::{self, PaSpec, PaStatus, PodAutoscaler};
use autoscaler::knative::pods::Counts;
use autoscaler::knative::sks::{self, Protocol, ServerlessService, SksSpec, SksStatus};
use policy::compat::Compat;
use policy::decider::Status;
use policy::moment::Moment;
use policy::world::Path as Way;
use policy::zero::Target;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

const LONG_AGO: Moment = Moment::from_unix_millis(0);
const NOW: Moment = Moment::from_unix_millis(3_600_000);

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("vectors/knative-cluster")
}

/// The objects of one service at one step.
struct Step {
    name: String,
    objects: Vec<Value>,
}

fn steps() -> Vec<Step> {
    let mut steps = Vec::new();
    for entry in fs::read_dir(folder().join("objects")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let objects = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
        steps.push(Step { name, objects });
    }
    steps.sort_by(|a, b| a.name.cmp(&b.name));
    steps
}

impl Step {
    fn object(&self, kind: &str, name: &str) -> &Value {
        let is = |object: &&Value| object["kind"] == kind && object["metadata"]["name"] == name;
        self.objects.iter().find(is).unwrap_or_else(|| panic!("{}: no {kind} {name}", self.name))
    }

    fn only(&self, kind: &str) -> &Value {
        self.objects.iter().find(|object| object["kind"] == kind).unwrap()
    }

    /// Scaled by Knative, with all that belongs to it.
    fn is_ours(&self) -> bool {
        self.objects.iter().any(|object| object["kind"] == "ServerlessService")
    }

    fn pa(&self) -> PodAutoscaler {
        let object = self.only("PodAutoscaler");
        let (spec, status) = (&object["spec"], &object["status"]);
        PodAutoscaler {
            meta: meta(object),
            spec: PaSpec {
                container_concurrency: number(&spec["containerConcurrency"]).unwrap_or(0),
                reachability: Reachability::parse(&text(&spec["reachability"])),
                protocol: Protocol::parse(&text(&spec["protocolType"])),
                target: reference(&spec["scaleTargetRef"]),
            },
            status: PaStatus {
                desired_scale: number(&status["desiredScale"]),
                actual_scale: number(&status["actualScale"]),
                service_name: text(&status["serviceName"]),
                metrics_service_name: text(&status["metricsServiceName"]),
                observed_generation: number(&status["observedGeneration"]).unwrap_or(0),
                conditions: conditions(pa::NEEDED, status),
            },
        }
    }

    fn sks(&self) -> ServerlessService {
        let object = self.only("ServerlessService");
        let (spec, status) = (&object["spec"], &object["status"]);
        ServerlessService {
            meta: meta(object),
            spec: SksSpec {
                path: if spec["mode"] == "Serve" { Way::Direct } else { Way::Activator },
                num_activators: number(&spec["numActivators"]).unwrap_or(0),
                target: reference(&spec["objectRef"]),
                protocol: Protocol::parse(&text(&spec["protocolType"])),
            },
            status: SksStatus {
                service_name: text(&status["serviceName"]),
                private_service_name: text(&status["privateServiceName"]),
                observed_generation: number(&status["observedGeneration"]).unwrap_or(0),
                conditions: conditions(sks::NEEDED, status),
            },
        }
    }

    fn metric(&self) -> MetricSpec {
        let spec = &self.only("Metric")["spec"];
        let nanos = |key: &str| Duration::from_nanos(number(&spec[key]).unwrap());
        MetricSpec {
            stable_window: nanos("stableWindow"),
            panic_window: nanos("panicWindow"),
            scrape_target: text(&spec["scrapeTarget"]),
        }
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn number<T: TryFrom<i64>>(value: &Value) -> Option<T> {
    value.as_i64().and_then(|number| T::try_from(number).ok())
}

fn meta(object: &Value) -> Meta {
    let meta = &object["metadata"];
    let texts = |key: &str| serde_json::from_value(meta[key].clone()).unwrap_or_default();
    Meta {
        namespace: text(&meta["namespace"]),
        name: text(&meta["name"]),
        uid: String::new(),
        generation: number(&meta["generation"]).unwrap_or(0),
        labels: texts("labels"),
        annotations: texts("annotations"),
    }
}

fn reference(value: &Value) -> ObjectRef {
    ObjectRef { api_version: text(&value["apiVersion"]), kind: text(&value["kind"]), name: text(&value["name"]) }
}

fn conditions(needed: &'static [&'static str], status: &Value) -> Conditions {
    let condition = |value: &Value| Condition {
        kind: text(&value["type"]),
        truth: match value["status"].as_str() {
            Some("True") => Truth::True,
            Some("False") => Truth::False,
            _ => Truth::Unknown,
        },
        info: value["severity"] == "Info",
        reason: text(&value["reason"]),
        message: text(&value["message"]),
        since: LONG_AGO,
    };
    Conditions::restore(needed, status["conditions"].as_array().into_iter().flatten().map(condition))
}

fn owned<T>(is: T) -> Existing<T> {
    Existing { is, owned: true }
}

/// The recordings have no UIDs and no status of what is just made.
fn comparable(mut body: Value) -> Value {
    if let Some(owner) = body.pointer_mut("/metadata/ownerReferences/0") {
        owner.as_object_mut().unwrap().remove("uid");
    }
    body.as_object_mut().unwrap().remove("status");
    body
}

fn look(step: &Step, pa: &PodAutoscaler, sks: Option<&Existing<ServerlessService>>, metric: bool) -> pa::Outcome {
    let metric = metric.then(|| owned(step.metric()));
    let recorded = step.sks();
    // Nobody recorded the decision; the path shows on which side of zero it was.
    let excess_burst_capacity = if recorded.spec.path == Way::Direct { 0 } else { -1 };
    let decision = pa.status.desired_scale.map(|desired| Status { desired, excess_burst_capacity });
    let deployment = step.only("Deployment");
    let seen = pa::Seen {
        pa,
        config: &AutoscalerConfig::default(),
        progress_deadline: Duration::from_secs(600),
        sks,
        metric: metric.as_ref(),
        decision,
        pods: Counts { ready: pa.status.actual_scale.unwrap_or(0), ..Counts::default() },
        target: number(&deployment["spec"]["replicas"]).map_or(Target::Unset, Target::Pods),
        activator_answers: true,
    };
    pa::reconcile(&seen, NOW, Compat::Strict)
}

#[test]
fn what_was_at_rest_needs_no_write() {
    let mut looked_at = 0;
    for step in steps().iter().filter(|step| step.is_ours()) {
        let outcome = look(step, &step.pa(), Some(&owned(step.sks())), true);
        assert_eq!((outcome.writes, outcome.fault), (vec![], None), "{}", step.name);
        looked_at += 1;
    }
    assert_eq!(looked_at, 11);
}

#[test]
fn a_status_is_written_as_it_stood_there() {
    for step in steps().iter().filter(|step| step.is_ours()) {
        for (kind, mut status) in
            [("PodAutoscaler", step.pa().status.json()), ("ServerlessService", step.sks().status.json())]
        {
            for condition in status["conditions"].as_array_mut().unwrap() {
                condition.as_object_mut().unwrap().remove("lastTransitionTime");
            }
            assert_eq!(status, step.only(kind)["status"], "{}: {kind}", step.name);
        }
    }
}

#[test]
fn what_is_made_is_what_was_made_there() {
    let mut made = 0;
    for line in fs::read_to_string(folder().join("writes.jsonl")).unwrap().lines() {
        let write: Value = serde_json::from_str(line).unwrap();
        let resource = write["resource"].as_str().unwrap();
        if write["verb"] != "create" || !["serverlessservices", "metrics"].contains(&resource) {
            continue;
        }
        let first = format!("{}.1", write["name"].as_str().unwrap().trim_end_matches("-00001"));
        let step = steps().into_iter().find(|step| step.name.starts_with(&first)).unwrap();
        let pa = PodAutoscaler { status: PaStatus::default(), ..step.pa() };
        let sks = (resource == "metrics").then(|| owned(step.sks()));
        let outcome = look(&step, &pa, sks.as_ref(), false);
        assert_eq!(comparable(outcome.writes[0].body(&pa)), comparable(write["body"].clone()), "{line}");
        made += 1;
    }
    assert_eq!(made, 8);
}

#[test]
fn services_and_endpoints_are_those_that_were_there() {
    for step in steps().iter().filter(|step| step.is_ours()) {
        let sks = step.sks();
        let private = step.object("Service", &sks.status.private_service_name);
        let selector = serde_json::from_value(private["spec"]["selector"].clone()).unwrap();
        let seen = sks::Seen {
            sks: &sks,
            selector: &selector,
            private_service: None,
            public_service: None,
            private_endpoints: Some(&[]),
            public_endpoints: None,
            activator_endpoints: Some(&[]),
        };
        let outcome = sks::reconcile(&seen, NOW);
        assert_eq!(outcome.writes.len(), 3, "{}", step.name);
        for write in &outcome.writes {
            let made = comparable(write.body(&sks));
            let name = made["metadata"]["name"].as_str().unwrap();
            let there = step.object(made["kind"].as_str().unwrap(), name);
            assert_eq!(made["metadata"], comparable(there.clone())["metadata"], "{}: {name}", step.name);
            for key in ["ports", "selector"] {
                assert_eq!(made["spec"].get(key), there["spec"].get(key), "{}: {name}: {key}", step.name);
            }
        }
    }
}

#[test]
fn a_bucket_is_announced_as_it_was_there() {
    let (namespace, name) = ("knative-serving", "autoscaler-bucket-00-of-01");
    let service = bucket::service(name, namespace);
    let slice = bucket::endpoint_slice(name, namespace, "10.244.0.34".parse().unwrap());
    let mut announced = 0;
    for line in fs::read_to_string(folder().join("writes.jsonl")).unwrap().lines() {
        let mut write: Value = serde_json::from_str(line).unwrap();
        let body = write["body"].take();
        match write["resource"].as_str().unwrap() {
            "services" => assert_eq!(service["spec"]["ports"], body["spec"]["ports"]),
            "endpointslices" => {
                for key in ["apiVersion", "kind", "addressType", "endpoints", "ports"] {
                    assert_eq!(slice[key], body[key], "{key}");
                }
                assert_eq!(slice["metadata"]["labels"], body["metadata"]["labels"]);
            }
            _ => continue,
        }
        announced += 1;
    }
    assert_eq!(announced, 2);
}
