//! The first request at zero is told again until something is seen to come of
//! it: a pod is made, or the platform says why there is none. What tells it
//! may be lost on the way, and nobody else would ask for the pod.

use crate::{Activator, report};
use policy::revision::RevisionId;
use policy::world::{PodPhase, RevisionView, Snapshot};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

/// From the first telling to the second; each later pause is twice as long,
const PAUSE: Duration = Duration::from_millis(100);
/// and no longer than this.
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// When a revision is told of next.
struct Due {
    at: Instant,
    pause: Duration,
}

/// Tells again, all revisions that are due in one message; sleeps while
/// nobody waits at zero.
pub(crate) async fn run(activator: Activator, world: watch::Receiver<Arc<Snapshot>>) {
    let mut unheard: HashMap<RevisionId, Due> = HashMap::new();
    loop {
        if unheard.is_empty() {
            activator.shared.waits.notified().await;
        }
        tokio::time::sleep(PAUSE).await;
        let snapshot = world.borrow().clone();
        let now = Instant::now();
        // Whoever waits is counted, so that its revision is a tracked one.
        let waiting: HashSet<RevisionId> = activator
            .shared
            .tracked
            .all()
            .into_iter()
            .filter(|revision| revision.is_waited_for())
            .map(|revision| revision.id.clone())
            .filter(|id| snapshot.revisions.get(id).is_none_or(|view| is_unheard(view)))
            .collect();
        unheard.retain(|revision, _| waiting.contains(revision));
        let mut again = Vec::new();
        for revision in waiting {
            let due = unheard.entry(revision.clone()).or_insert(Due { at: now, pause: PAUSE });
            if due.at <= now {
                due.pause = (due.pause * 2).min(PAUSE_MAX);
                due.at = now + due.pause;
                again.push(revision);
            }
        }
        if !again.is_empty() {
            report::poke_again(&activator, again);
        }
    }
}

/// Nothing shows that a pod is wanted.
fn is_unheard(view: &RevisionView) -> bool {
    let made = view.pods.iter().any(|pod| pod.phase != PodPhase::Terminating);
    !made && view.without_room == 0 && view.trouble.is_none()
}
