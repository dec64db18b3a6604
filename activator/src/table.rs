//! All live revisions: swapped whole when a snapshot comes, read without a lock.

use crate::prober::{self, Prober};
use crate::retire::Retirement;
use crate::revision::Revision;
use crate::{Activator, Shared};
use arc_swap::ArcSwap;
use plumbing::head::Head;
use plumbing::worker::Workers;
use policy::revision::RevisionId;
use policy::world::{Routes, Snapshot};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::watch;

pub(crate) struct Table {
    current: ArcSwap<Contents>,
    retirement: Arc<Retirement>,
    next_number: AtomicU64,
}

#[derive(Default)]
struct Contents {
    revisions: HashMap<RevisionId, Arc<Revision>>,
    routes: Routes,
}

impl Table {
    pub(crate) fn new(retirement: Arc<Retirement>) -> Table {
        Table { current: ArcSwap::default(), retirement, next_number: AtomicU64::new(0) }
    }

    /// The revision that a request is for.
    pub(crate) fn lookup(&self, head: &Head) -> Option<Arc<Revision>> {
        let contents = self.current.load();
        let id = contents.routes.hosts.get(head.host.as_str()).or(contents.routes.fallback.as_ref())?;
        contents.revisions.get(id).cloned()
    }

    /// A revision by its name.
    pub(crate) fn revision(&self, id: &RevisionId) -> Option<Arc<Revision>> {
        self.current.load().revisions.get(id).cloned()
    }

    pub(crate) fn all(&self) -> Vec<Arc<Revision>> {
        let mut all: Vec<Arc<Revision>> = self.current.load().revisions.values().cloned().collect();
        all.sort_by(|a, b| a.id.cmp(&b.id));
        all
    }

    /// Takes a snapshot in. Only [`follow`] calls it, so there is one writer.
    fn apply(&self, snapshot: &Snapshot, activator: &Activator, workers: &Workers) {
        let before = self.current.load_full();
        let mut revisions = HashMap::with_capacity(snapshot.revisions.len());
        for (id, view) in &snapshot.revisions {
            let revision = before.revisions.get(id).cloned().unwrap_or_else(|| {
                let number = self.next_number.fetch_add(1, Ordering::Relaxed);
                let waiting_max = activator.shared.config.held_per_revision_max;
                let budget = activator.shared.budget.part(activator.shared.config.held_bytes_per_revision_max);
                let prober = prober(activator, id);
                let held = (waiting_max, budget);
                let revision = Revision::new(id.clone(), view, number, held, &self.retirement, prober.clone());
                let revision = Arc::new(revision);
                if let Some(prober) = prober {
                    let worker = workers.least_busy().clone();
                    worker.clone().spawn(prober::run(revision.clone(), prober, worker));
                }
                revision
            });
            revisions.insert(id.clone(), revision);
        }
        let live: Vec<(Arc<Revision>, _)> =
            snapshot.revisions.iter().filter_map(|(id, view)| Some((revisions.get(id)?.clone(), view))).collect();
        self.current.store(Arc::new(Contents { revisions, routes: snapshot.routes.clone() }));
        for (revision, view) in live {
            revision.apply(view, &activator.shared.metrics);
        }
        for (id, revision) in &before.revisions {
            if !snapshot.revisions.contains_key(id) {
                revision.retire();
            }
        }
        self.retirement.taken_in(snapshot.version);
    }
}

/// Who asks the pods of that revision; on a machine of its own the platform does.
fn prober(activator: &Activator, id: &RevisionId) -> Option<Arc<Prober>> {
    let Shared { config, crowd, metrics, .. } = &*activator.shared;
    let cluster = config.cluster.as_ref()?;
    Some(Arc::new(Prober::new(cluster, config.compat, id, crowd, metrics)))
}

/// Follows the platform until it ends.
pub(crate) async fn follow(activator: Activator, mut world: watch::Receiver<Arc<Snapshot>>, workers: Workers) {
    loop {
        let snapshot = world.borrow_and_update().clone();
        activator.shared.table.apply(&snapshot, &activator, &workers);
        if world.changed().await.is_err() {
            return;
        }
    }
}
