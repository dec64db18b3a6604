//! The revisions that are reported of: those with requests now or in the last
//! second. What happens each second looks at them alone, since of ten thousand
//! revisions most are idle.

use crate::revision::Revision;
use parking_lot::Mutex;
use std::sync::Arc;
use tokio::sync::Notify;

#[derive(Default)]
pub(crate) struct Tracked {
    revisions: Mutex<Vec<Arc<Revision>>>,
    came: Notify,
}

impl Tracked {
    /// A revision has its first request after idleness.
    pub(crate) fn begins(&self, revision: &Arc<Revision>) {
        {
            let mut revisions = self.revisions.lock();
            if !revision.list() {
                return;
            }
            revisions.push(revision.clone());
        }
        self.came.notify_one();
    }

    /// Those that are tracked now.
    pub(crate) fn all(&self) -> Vec<Arc<Revision>> {
        self.revisions.lock().clone()
    }

    /// Lets go of those that have become idle; false when none is left.
    pub(crate) fn prune(&self) -> bool {
        let mut revisions = self.revisions.lock();
        // One whose next request is about to call `begins` stays or comes back:
        // both happen under this lock.
        revisions.retain(|revision| revision.is_reported() || !revision.unlist());
        !revisions.is_empty()
    }

    /// Ready once one has begun since this was ready last.
    pub(crate) async fn some(&self) {
        self.came.notified().await;
    }
}
