//! A pod that handed a request back, or could not be reached, is asked for
//! its readiness, at the steps of a start-up, before it gets new work.

use crate::revision::{Pod, Revision, Sidecar};
use http::header::{HOST, HeaderValue, USER_AGENT};
use http::{Request, StatusCode};
use plumbing::body::Body;
use plumbing::forward::Trip;
use plumbing::headers;
use plumbing::worker::Worker;
use policy::admit::PodKey;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// Longest one attempt may take.
const ATTEMPT_MAX: Duration = Duration::from_secs(1);

/// Asks until the pod is ready, then gives it work again; ends when the pod is
/// taken out. Run once for each pod that is doubted.
pub(crate) async fn watch(revision: Arc<Revision>, key: PodKey, pod: Pod, worker: Worker) {
    let began = Instant::now();
    loop {
        if revision.pod(key).is_none() {
            return;
        }
        let answer = ask(&pod, &worker).await;
        revision.learn_sidecar(key, answer.sidecar);
        if answer.ready {
            tracing::debug!(revision = %revision.id, pod = %pod.name, "a doubted pod is ready again");
            revision.trust_again(key);
            return;
        }
        tokio::time::sleep(step(began.elapsed())).await;
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

/// Asks a pod once whose sidecar it has.
pub(crate) async fn learn(revision: Arc<Revision>, key: PodKey, pod: Pod, worker: Worker) {
    let answer = ask(&pod, &worker).await;
    revision.learn_sidecar(key, answer.sidecar);
}

/// What a pod said of itself.
struct Answer {
    ready: bool,
    sidecar: Sidecar,
}

async fn ask(pod: &Pod, worker: &Worker) -> Answer {
    let mut request = Request::new(Body::empty());
    *request.uri_mut() = http::Uri::from_static("/healthz");
    let fields = request.headers_mut();
    if let Ok(host) = HeaderValue::from_str(&pod.address.to_string()) {
        fields.insert(HOST, host);
    }
    fields.insert(USER_AGENT, HeaderValue::from_static("Knative-Activator-Probe"));
    fields.insert(headers::NETWORK_PROBE, HeaderValue::from_static("queue"));
    tokio::select! {
        sent = worker.pool().send(pod.address, request, Trip { repeatable: true, ..Trip::default() }) => {
            let Ok(response) = sent else { return Answer { ready: false, sidecar: pod.sidecar } };
            let ours = response.headers().contains_key(headers::PROXY);
            let ready = response.status() == StatusCode::OK;
            Answer { ready, sidecar: if ours { Sidecar::Ours } else { Sidecar::Stock } }
        }
        () = worker.wheel().sleep(ATTEMPT_MAX) => Answer { ready: false, sidecar: pod.sidecar },
    }
}
