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

/// By names that the platform has given, so that nobody can make them collide.
type Names<T> = HashMap<Arc<str>, T, foldhash::fast::RandomState>;

#[derive(Default)]
struct Contents {
    /// By namespace, and by name there: what a request says of them is looked
    /// up as it stands there.
    revisions: Names<Names<Arc<Revision>>>,
    /// `None`: there is no such revision.
    hosts: Names<Option<Arc<Revision>>>,
    fallback: Option<Arc<Revision>>,
}

impl Contents {
    fn of(revisions: Vec<Arc<Revision>>, routes: &Routes) -> Contents {
        let mut contents = Contents::default();
        for revision in revisions {
            let namespace = contents.revisions.entry(revision.id.namespace.clone()).or_default();
            namespace.insert(revision.id.name.clone(), revision);
        }
        let of = |id: &RevisionId| contents.revision(&id.namespace, &id.name).cloned();
        let hosts = routes.hosts.iter().map(|(host, id)| (host.clone(), of(id))).collect();
        let fallback = routes.fallback.as_ref().and_then(of);
        Contents { hosts, fallback, ..contents }
    }

    fn revision(&self, namespace: &str, name: &str) -> Option<&Arc<Revision>> {
        self.revisions.get(namespace)?.get(name)
    }

    fn all(&self) -> impl Iterator<Item = &Arc<Revision>> {
        self.revisions.values().flat_map(HashMap::values)
    }
}

impl Table {
    pub(crate) fn new(retirement: Arc<Retirement>) -> Table {
        Table { current: ArcSwap::default(), retirement, next_number: AtomicU64::new(0) }
    }

    /// The revision that a request is for.
    pub(crate) fn lookup(&self, head: &Head) -> Option<Arc<Revision>> {
        let contents = self.current.load();
        contents.hosts.get(head.host.as_str()).unwrap_or(&contents.fallback).clone()
    }

    /// A revision by its name.
    pub(crate) fn revision(&self, namespace: &str, name: &str) -> Option<Arc<Revision>> {
        self.current.load().revision(namespace, name).cloned()
    }

    pub(crate) fn all(&self) -> Vec<Arc<Revision>> {
        let mut all: Vec<Arc<Revision>> = self.current.load().all().cloned().collect();
        all.sort_by(|a, b| a.id.cmp(&b.id));
        all
    }

    /// Takes a snapshot in. Only [`follow`] calls it, so there is one writer.
    fn apply(&self, snapshot: &Snapshot, activator: &Activator, workers: &Workers) {
        let before = self.current.load_full();
        let mut live = Vec::with_capacity(snapshot.revisions.len());
        for (id, view) in &snapshot.revisions {
            let revision = before.revision(&id.namespace, &id.name).cloned().unwrap_or_else(|| {
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
            live.push(revision);
        }
        self.current.store(Arc::new(Contents::of(live.clone(), &snapshot.routes)));
        for (revision, view) in live.iter().zip(snapshot.revisions.values()) {
            revision.apply(view, &activator.shared.metrics);
        }
        let gone = before.all().filter(|revision| !snapshot.revisions.contains_key(&revision.id));
        gone.for_each(|revision| revision.retire());
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
