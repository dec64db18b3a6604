//! Makes what runs equal to what is wanted: one task that owns all state, takes
//! orders and notes of pods in, and publishes snapshots.

use super::config::Config;
use super::drain::Wish;
use super::names::Names;
use super::pod::{PodTask, Told};
use super::revision::Revision;
use super::{HARD_MAX_PODS, Shared};
use policy::revision::RevisionId;
use policy::world::{Order, PodName, Routes, Snapshot};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use tokio::sync::{mpsc, watch};
use tokio::task::{Id, JoinError, JoinHandle, JoinSet};
use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};

/// Notes of pods that may wait; more, and the pods wait.
const NOTES: usize = 1024;

/// The reconciler's state.
pub(super) struct Reconciler {
    shared: Arc<Shared>,
    revisions: BTreeMap<RevisionId, Revision>,
    routes: Routes,
    max_pods: usize,
    names: Names,
    /// Tasks of pods, and whose they are.
    tasks: JoinSet<()>,
    owners: HashMap<Id, (RevisionId, PodName)>,
    told: mpsc::Sender<Told>,
    notes: mpsc::Receiver<Told>,
    world: watch::Sender<Arc<Snapshot>>,
    /// Pods that waited for room at last count.
    without_room: u32,
    version: u64,
    stopping: bool,
}

impl Reconciler {
    /// With its first pods and its first snapshot made.
    pub(super) fn new(config: Config, shared: Arc<Shared>) -> Reconciler {
        let now = (shared.links.now)();
        let limit = if config.max_pods == 0 { HARD_MAX_PODS } else { config.max_pods };
        let (told, notes) = mpsc::channel(NOTES);
        let services = config
            .services
            .into_iter()
            .map(|service| (service.revision.clone(), Revision::new(Arc::new(service), now)));
        let mut reconciler = Reconciler {
            shared,
            revisions: services.collect(),
            routes: config.routes,
            max_pods: limit.min(HARD_MAX_PODS) as usize,
            names: Names::new(),
            tasks: JoinSet::new(),
            owners: HashMap::new(),
            told,
            notes,
            world: watch::channel(Arc::default()).0,
            without_room: 0,
            version: 0,
            stopping: false,
        };
        reconciler.settle();
        reconciler
    }

    pub(super) fn world(&self) -> watch::Receiver<Arc<Snapshot>> {
        self.world.subscribe()
    }

    /// Serves until `shutdown`, then until every pod and the guard are gone.
    pub(super) async fn run(
        mut self,
        mut orders: mpsc::Receiver<Order>,
        shutdown: CancellationToken,
        guard: JoinHandle<()>,
    ) {
        while !(self.stopping && self.tasks.is_empty()) {
            tokio::select! {
                biased;
                () = shutdown.cancelled(), if !self.stopping => self.stop_all(),
                Some(told) = self.notes.recv() => {
                    let now = self.now();
                    if let Some(revision) = self.revisions.get_mut(&told.revision) {
                        revision.take_in(&told.pod, told.note, now);
                    }
                }
                Some(ended) = self.tasks.join_next_with_id() => {
                    self.forget(ended.map(|(id, ())| id));
                }
                Some(order) = orders.recv(), if !self.stopping => self.follow(order),
            }
            self.settle();
        }
        // The last of it: the guard ends when nobody can ask it any more.
        let Reconciler { shared, world, .. } = self;
        drop(shared);
        if let Err(error) = guard.await {
            error!(%error, "the guard's task failed");
        }
        drop(world);
        info!("all pods are gone");
    }

    fn now(&self) -> policy::moment::Moment {
        (self.shared.links.now)()
    }

    fn follow(&mut self, order: Order) {
        let now = self.now();
        let Order { revision: id, wanted, path, reason, go_first } = order;
        let Some(revision) = self.revisions.get_mut(&id) else {
            warn!(revision = %id, "order for an unknown revision");
            return;
        };
        if revision.wanted != wanted {
            info!(revision = %id, from = revision.wanted, to = wanted, %reason, "pods wanted");
        }
        revision.want(wanted);
        if revision.take_path(path, now) {
            info!(revision = %id, ?path, %reason, "path switched");
        }
        revision.shrink(&go_first, now);
    }

    fn stop_all(&mut self) {
        let now = self.now();
        self.stopping = true;
        for revision in self.revisions.values_mut() {
            revision.want(0);
            revision.shrink(&[], now);
        }
    }

    fn forget(&mut self, ended: Result<Id, JoinError>) {
        let id = ended.unwrap_or_else(|error| {
            error!(%error, "a pod's task failed");
            error.id()
        });
        if let Some((revision, pod)) = self.owners.remove(&id)
            && let Some(revision) = self.revisions.get_mut(&revision)
        {
            revision.remove(&pod);
        }
    }

    /// Starts what is missing, publishes, and tells those that leave.
    fn settle(&mut self) {
        if !self.stopping {
            self.grow();
        }
        self.publish();
        let wish = if self.stopping { Wish::EndNow } else { Wish::End(self.version) };
        for revision in self.revisions.values() {
            revision.dismiss(wish);
        }
    }

    /// One pod after the other to the revision that has the fewest, so that
    /// none waits for another's hundredth.
    fn grow(&mut self) {
        let mut room = self.max_pods.saturating_sub(self.revisions.values().map(Revision::len).sum());
        while room > 0 {
            let lacking = self.revisions.iter().filter(|(_, revision)| revision.missing() > 0);
            let Some((id, _)) = lacking.min_by_key(|(_, revision)| revision.staying()) else {
                break;
            };
            let id = id.clone();
            self.add_pod(&id);
            room -= 1;
        }
        let waiting = self.revisions.values().map(Revision::missing).sum();
        if waiting != self.without_room {
            self.without_room = waiting;
            info!(waiting, max_pods = self.max_pods, "pods that wait for room");
        }
    }

    fn add_pod(&mut self, id: &RevisionId) {
        let now = self.now();
        let Some(revision) = self.revisions.get_mut(id) else {
            return;
        };
        let name = self.names.next(&id.name);
        let task = PodTask {
            name: Arc::clone(&name),
            service: Arc::clone(&revision.service),
            shared: Arc::clone(&self.shared),
            wish: revision.add(Arc::clone(&name), now),
            notes: self.told.clone(),
            failures: 0,
            failed_starts: 0,
        };
        info!(pod = %name, "pod starts");
        let handle = self.tasks.spawn(task.run());
        self.owners.insert(handle.id(), (id.clone(), name));
    }

    fn publish(&mut self) {
        let mut changed = self.version == 0;
        let mut revisions = BTreeMap::new();
        for (id, revision) in &mut self.revisions {
            let (view, is_new) = revision.show();
            changed |= is_new;
            revisions.insert(id.clone(), Arc::clone(view));
        }
        if changed {
            self.version += 1;
            let routes = self.routes.clone();
            let snapshot = Snapshot { version: self.version, revisions, routes };
            self.world.send_replace(Arc::new(snapshot));
        }
    }
}
