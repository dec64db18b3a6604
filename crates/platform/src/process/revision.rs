//! What the reconciler knows of one revision: what is wanted, which pods there
//! are, and how it is shown. No tasks and no processes here.

use super::config::Service;
use super::drain::Wish;
use super::pod::{Failure, Note};
use policy::moment::Moment;
use policy::world::{Network, Path, Pod, PodName, PodPhase, RevisionView, Trouble};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use tokio::sync::watch;

/// The address of a pod whose sidecar is not known yet.
pub(super) const NOWHERE: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// One revision.
pub(super) struct Revision {
    pub(super) service: Arc<Service>,
    pub(super) wanted: u32,
    path: Path,
    path_since: Moment,
    trouble: Option<Trouble>,
    pods: Vec<Entry>,
    view: Arc<RevisionView>,
}

/// One pod: what is shown of it, and how its task is told to stop.
struct Entry {
    pod: Pod,
    wish: watch::Sender<Wish>,
}

impl Revision {
    pub(super) fn new(service: Arc<Service>, now: Moment) -> Revision {
        let path = Path::Activator;
        let view = RevisionView {
            spec: Arc::clone(&service.spec),
            pods: Vec::new(),
            path,
            path_since: now,
            trouble: None,
            without_room: 0,
            network: Network::default(),
        };
        Revision {
            wanted: service.initial,
            path,
            path_since: now,
            trouble: None,
            pods: Vec::new(),
            view: Arc::new(view),
            service,
        }
    }

    /// All pods, terminating ones included.
    pub(super) fn len(&self) -> usize {
        self.pods.len()
    }

    /// Pods that are not on their way out.
    pub(super) fn staying(&self) -> u32 {
        let staying = self.pods.iter().filter(|entry| entry.pod.phase != PodPhase::Terminating);
        u32::try_from(staying.count()).unwrap_or(u32::MAX)
    }

    /// Pods that are wanted and not there.
    pub(super) fn missing(&self) -> u32 {
        self.wanted.saturating_sub(self.staying())
    }

    pub(super) fn want(&mut self, wanted: u32) {
        self.wanted = wanted;
        if wanted == 0 {
            self.trouble = None;
        }
    }

    /// Requests take this path from the next snapshot on; true when it is a change.
    pub(super) fn take_path(&mut self, path: Path, now: Moment) -> bool {
        let changed = self.path != path;
        if changed {
            self.path = path;
            self.path_since = now;
        }
        changed
    }

    /// Adds a pod that starts now; its task follows what is returned.
    pub(super) fn add(&mut self, name: PodName, now: Moment) -> watch::Receiver<Wish> {
        let (wish, seen) = watch::channel(Wish::Run);
        let pod = Pod { name, address: NOWHERE, phase: PodPhase::Starting, since: now, start_took: None };
        self.pods.push(Entry { pod, wish });
        seen
    }

    /// Nothing is left of a pod.
    pub(super) fn remove(&mut self, name: &PodName) {
        self.pods.retain(|entry| entry.pod.name != *name);
    }

    /// Sends away what is beyond the wanted number: the named ones first, then
    /// those that are not ready, then the youngest.
    pub(super) fn shrink(&mut self, go_first: &[PodName], now: Moment) {
        let excess = self.staying().saturating_sub(self.wanted);
        let mut leaving: Vec<usize> =
            (0..self.pods.len()).filter(|index| self.pods[*index].pod.phase != PodPhase::Terminating).collect();
        leaving.sort_by_key(|index| {
            let pod = &self.pods[*index].pod;
            let named = go_first.contains(&pod.name);
            (!named, pod.phase == PodPhase::Ready, std::cmp::Reverse(*index))
        });
        for index in leaving.into_iter().take(excess as usize) {
            self.pods[index].enter(PodPhase::Terminating, now);
        }
    }

    /// Takes in what a pod tells of itself; what a terminating one tells is past.
    pub(super) fn take_in(&mut self, name: &PodName, note: Note, now: Moment) {
        let found = self.pods.iter_mut().find(|entry| entry.pod.name == *name);
        let Some(entry) = found.filter(|entry| entry.pod.phase != PodPhase::Terminating) else {
            return;
        };
        match note {
            Note::Ready { address, start_took } => {
                entry.pod.address = address;
                entry.pod.start_took = Some(start_took);
                entry.enter(PodPhase::Ready, now);
                self.trouble = None;
            }
            Note::Unready => entry.enter(PodPhase::Starting, now),
            Note::Lost => {
                entry.pod.address = NOWHERE;
                entry.enter(PodPhase::Starting, now);
            }
            Note::Failed(failure) => self.fail(failure, now),
        }
    }

    /// The trouble keeps its beginning while its kind stays.
    fn fail(&mut self, failure: Failure, now: Moment) {
        // While another pod is ready, requests are served: no trouble.
        if self.pods.iter().any(|entry| entry.pod.phase == PodPhase::Ready) {
            return;
        }
        let Failure { kind, text } = failure;
        let same = self.trouble.as_ref().filter(|trouble| trouble.kind == kind);
        let since = same.map_or(now, |trouble| trouble.since);
        self.trouble = Some(Trouble { kind, text: text.into(), since });
    }

    /// As it is shown now, and whether that is new.
    pub(super) fn show(&mut self) -> (&Arc<RevisionView>, bool) {
        let view = RevisionView {
            spec: Arc::clone(&self.service.spec),
            pods: self.pods.iter().map(|entry| entry.pod.clone()).collect(),
            path: self.path,
            path_since: self.path_since,
            trouble: self.trouble.clone(),
            without_room: self.missing(),
            network: Network::default(),
        };
        let changed = *self.view != view;
        if changed {
            self.view = Arc::new(view);
        }
        (&self.view, changed)
    }

    /// Tells the tasks of terminating pods, which everybody can see by now.
    pub(super) fn dismiss(&self, wish: Wish) {
        let leaving = self.pods.iter().filter(|entry| entry.pod.phase == PodPhase::Terminating);
        for entry in leaving {
            entry.wish.send_if_modified(|current| {
                let on = *current == Wish::Run || wish == Wish::EndNow && *current != wish;
                if on {
                    *current = wish;
                }
                on
            });
        }
    }
}

impl Entry {
    fn enter(&mut self, phase: PodPhase, now: Moment) {
        if self.pod.phase != phase {
            self.pod.phase = phase;
            self.pod.since = now;
        }
    }
}
