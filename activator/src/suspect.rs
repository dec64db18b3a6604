//! A pod that failed is passed over and asked for its readiness, at the steps
//! of a start-up, before it gets new work; so is a new one in a cluster, whose
//! answer also says whose sidecar it has.

use crate::revision::{Doubted, Pod, Revision};
use http::header::{HOST, HeaderValue, USER_AGENT};
use http::{HeaderMap, Request, StatusCode};
use hyper::body::Body as _;
use plumbing::body::Body;
use plumbing::forward::Trip;
use plumbing::headers;
use plumbing::worker::Worker;
use policy::admit::PodKey;
use policy::eject::Sign;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// Longest one attempt may take.
const ATTEMPT_MAX: Duration = Duration::from_secs(1);

/// Asks a doubted pod until it is ready, then gives it work again; ends when
/// the pod is taken out. Run once for each pod that is doubted.
pub(crate) async fn watch(revision: Arc<Revision>, doubted: Doubted, worker: Worker) {
    let Doubted { key, pod, rest } = doubted;
    if !rest.is_zero() {
        worker.wheel().sleep(rest).await;
    }
    let began = Instant::now();
    loop {
        if revision.pod(key).is_none() {
            return;
        }
        if is_ready(&pod, &worker).await {
            tracing::debug!(revision = %revision.id, pod = %pod.name, "a doubted pod is ready again");
            revision.trust_again(key);
            return;
        }
        worker.wheel().sleep(step(began.elapsed())).await;
    }
}

/// Notes that a pod failed, and has it watched unless that is done already.
pub(crate) fn doubt(revision: &Arc<Revision>, key: PodKey, sign: Sign, worker: &Worker) {
    if let Some(doubted) = revision.doubt(key, sign) {
        tracing::debug!(revision = %revision.id, pod = %doubted.pod.name, ?sign, rest = ?doubted.rest, "a pod is doubted");
        worker.spawn(watch(revision.clone(), doubted, worker.clone()));
    }
}

/// 1 ms for the first 2 s, 10 ms to 10 s, then 100 ms (performance, section 6).
fn step(since: Duration) -> Duration {
    let millis = match since.as_secs() {
        0..2 => 1,
        2..10 => 10,
        _ => 100,
    };
    Duration::from_millis(millis)
}

/// Asks once.
pub(crate) async fn is_ready(pod: &Pod, worker: &Worker) -> bool {
    match ask(pod, worker).await {
        Some((StatusCode::OK, fields)) => {
            pod.condition.heard(&fields);
            true
        }
        _ => false,
    }
}

async fn ask(pod: &Pod, worker: &Worker) -> Option<(StatusCode, HeaderMap)> {
    let mut request = Request::new(Body::empty());
    *request.uri_mut() = http::Uri::from_static("/healthz");
    let fields = request.headers_mut();
    if let Ok(host) = HeaderValue::from_str(&pod.address.to_string()) {
        fields.insert(HOST, host);
    }
    fields.insert(USER_AGENT, HeaderValue::from_static("Knative-Activator-Probe"));
    fields.insert(headers::NETWORK_PROBE, HeaderValue::from_static("queue"));
    let sent = tokio::select! {
        sent = worker.pool().send(pod.address, request, Trip { repeatable: true, ..Trip::default() }) => sent,
        () = worker.wheel().sleep(ATTEMPT_MAX) => return None,
    };
    let (parts, body) = sent.ok()?.into_parts();
    if body.is_end_stream() {
        body.put_back();
    }
    Some((parts.status, parts.headers))
}
