//! What a file does not say: since when things are as they are.

use crate::file::resolve::{self, World};
use policy::moment::Moment;
use policy::world::{Pod, RevisionView, Snapshot, Trouble};
use std::sync::Arc;

/// The last snapshot.
#[derive(Debug, Default)]
pub(super) struct History {
    last: Arc<Snapshot>,
}

impl History {
    /// The snapshot of what a file says now; `None` when that is nothing new.
    pub(super) fn snapshot(&mut self, world: World, now: Moment) -> Option<Arc<Snapshot>> {
        let revisions = world.revisions.into_iter().map(|(id, said)| {
            let before = self.last.revisions.get(&id);
            let view = view(said, before, now);
            let view = match before {
                Some(before) if **before == view => before.clone(),
                _ => Arc::new(view),
            };
            (id, view)
        });
        let snapshot = Snapshot { version: self.last.version, revisions: revisions.collect(), routes: world.routes };
        // The first good file is news even when it says that nothing is there.
        if snapshot == *self.last && self.last.version > 0 {
            return None;
        }
        self.last = Arc::new(Snapshot { version: self.last.version + 1, ..snapshot });
        Some(self.last.clone())
    }

    pub(super) fn version(&self) -> u64 {
        self.last.version
    }
}

fn view(said: resolve::View, before: Option<&Arc<RevisionView>>, now: Moment) -> RevisionView {
    let pods = said.pods.into_iter().map(|pod| {
        let same = |known: &&Pod| known.name == pod.name && known.address == pod.address && known.phase == pod.phase;
        let since = before.and_then(|before| before.pods.iter().find(same)).map_or(now, |known| known.since);
        Pod { name: pod.name, address: pod.address, phase: pod.phase, since, start_took: pod.start_took }
    });
    let trouble = said.trouble.map(|(kind, text)| {
        let known = before.and_then(|before| before.trouble.as_ref()).filter(|known| known.kind == kind);
        Trouble { kind, text, since: known.map_or(now, |known| known.since) }
    });
    RevisionView {
        pods: pods.collect(),
        spec: match before {
            Some(before) if *before.spec == said.spec => before.spec.clone(),
            _ => Arc::new(said.spec),
        },
        path: said.path,
        path_since: before.filter(|before| before.path == said.path).map_or(now, |before| before.path_since),
        trouble,
        without_room: said.without_room,
        network: said.network,
    }
}
