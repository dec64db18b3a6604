//! A pod that failed is passed over and asked for its readiness, at the steps
//! of a start-up, before it gets new work.

use crate::pods::{Doubted, Pod};
use crate::question::{self, Heard};
use crate::revision::Revision;
use plumbing::worker::Worker;
use policy::admit::PodKey;
use policy::eject::Sign;
use policy::probing::{self, Answer};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// Longest one attempt may take.
pub(crate) const ATTEMPT_MAX: Duration = Duration::from_secs(1);

/// Asks a doubted pod until it is ready, then gives it work again; ends when
/// the pod is taken out. Run once for each pod that is doubted.
async fn watch(revision: Arc<Revision>, doubted: Doubted, worker: Worker) {
    let Doubted { key, pod, rest } = doubted;
    if !rest.is_zero() {
        worker.wheel().sleep(rest).await;
    }
    let began = Instant::now();
    loop {
        if revision.pods.get(key).is_none() {
            return;
        }
        if is_ready(&revision, &pod, &worker).await {
            tracing::debug!(revision = %revision.id, pod = %pod.name, "a doubted pod is ready again");
            revision.pods.trust_again(key);
            return;
        }
        worker.wheel().sleep(probing::step(began.elapsed())).await;
    }
}

/// Notes that a pod failed, and has it watched unless that is done already.
pub(crate) fn doubt(revision: &Arc<Revision>, key: PodKey, sign: Sign, worker: &Worker) {
    if let (Some(prober), Sign::Unreachable) = (&revision.prober, sign) {
        // No part of the share either, so that the pods that can be reached are
        // shared out anew.
        return prober.doubt(revision, key);
    }
    if let Some(doubted) = revision.pods.doubt(key, sign) {
        tracing::debug!(revision = %revision.id, pod = %doubted.pod.name, ?sign, rest = ?doubted.rest, "a pod is doubted");
        worker.spawn(watch(revision.clone(), doubted, worker.clone()));
    }
}

/// Asks once.
pub(crate) async fn is_ready(revision: &Revision, pod: &Pod, worker: &Worker) -> bool {
    let Heard { answer, fields } = question::ask(revision, pod.address, ATTEMPT_MAX, worker).await;
    let passed = answer == Answer::Passed;
    if passed {
        pod.condition.heard(&fields);
    }
    passed
}
