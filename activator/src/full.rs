//! Pods that others have filled: each is asked, by one question that it
//! answers when a slot is free, while requests wait here. So a request that
//! met a full pod gets the slot that frees there, whoever frees it, without
//! waiting in that pod's line and without asking again and again.

use crate::pods::Pod;
use crate::question;
use crate::revision::Revision;
use http::StatusCode;
use http::header::HeaderValue;
use plumbing::forward::Trip;
use plumbing::headers;
use plumbing::worker::Worker;
use policy::admit::PodKey;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// How long the sidecar may keep the question.
const ASK_FOR: Duration = Duration::from_secs(5);
/// How much longer the answer may take.
const GRACE: Duration = Duration::from_secs(1);
/// The first pause before asking again; it doubles while answers come at once
/// and others are faster than we are.
const PAUSE_FIRST: Duration = Duration::from_millis(1);
/// The longest.
const PAUSE_MAX: Duration = Duration::from_millis(8);
/// The pause after a question without an answer.
const PAUSE_SILENT: Duration = Duration::from_millis(50);
/// An answer that took longer was waited for.
const AT_ONCE: Duration = Duration::from_millis(2);

/// Looks out for slots at full pods. To be called by each request that has
/// begun to wait; whoever finds a pod unwatched watches it for all.
pub(crate) fn look_out(revision: &Arc<Revision>, worker: &Worker) {
    for (key, pod) in revision.pods.begin_watch() {
        worker.spawn(watch(revision.clone(), key, pod, worker.clone()));
    }
}

async fn watch(revision: Arc<Revision>, key: PodKey, pod: Pod, worker: Worker) {
    let mut pause = PAUSE_FIRST;
    while revision.pods.watch_on(key) {
        let asked = Instant::now();
        let free = free_slots(&revision, &pod, &worker).await;
        let Some(free) = free else {
            worker.wheel().sleep(PAUSE_SILENT).await;
            continue;
        };
        let free = u32::try_from(free).unwrap_or(u32::MAX);
        revision.limiter.update(|admission, woken| admission.note_free(key, free, woken));
        if asked.elapsed() > AT_ONCE {
            pause = PAUSE_FIRST;
            // What was handed out must have had its chance.
            tokio::task::yield_now().await;
            continue;
        }
        worker.wheel().sleep(pause).await;
        pause = (pause * 2).min(PAUSE_MAX);
    }
}

/// What the pod's sidecar says, when it says something.
async fn free_slots(revision: &Revision, pod: &Pod, worker: &Worker) -> Option<u64> {
    let mut request = question::of(revision, pod.address);
    request.headers_mut().insert(headers::AWAIT_SLOT, HeaderValue::from(ASK_FOR.as_millis() as u64));
    let trip = Trip { repeatable: true, ..Trip::default() };
    let answer = tokio::select! {
        sent = worker.pool().send(pod.address, request, trip) => sent.ok()?,
        () = worker.wheel().sleep(ASK_FOR + GRACE) => return None,
    };
    if answer.status() != StatusCode::OK {
        return None;
    }
    answer.headers().get(headers::FREE)?.to_str().ok()?.parse().ok()
}
