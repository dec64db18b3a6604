//! Pods that get no new request but still have some: told to the platform, so
//! that it stops a pod only when nobody holds it.

use parking_lot::Mutex;
use policy::admit::PodKey;
use policy::world::{Holding, PodName};
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::watch;

/// A pod of one revision's limiter: keys are unique within one only.
type Seat = (u64, PodKey);

/// Shared by all revisions.
pub(crate) struct Retirement {
    state: Mutex<State>,
}

struct State {
    version: u64,
    pods: BTreeMap<Seat, PodName>,
    out: watch::Sender<Arc<Holding>>,
}

impl Retirement {
    pub(crate) fn new(out: watch::Sender<Arc<Holding>>) -> Arc<Retirement> {
        Arc::new(Retirement { state: Mutex::new(State { version: 0, pods: BTreeMap::new(), out }) })
    }

    /// Notes a pod before it is taken out of the choice.
    pub(crate) fn begin(&self, revision: u64, pod: PodKey, name: PodName) {
        self.state.lock().pods.insert((revision, pod), name);
    }

    /// The pod's last request has ended, or it had none.
    pub(crate) fn end(&self, revision: u64, pod: PodKey) {
        let mut state = self.state.lock();
        if state.pods.remove(&(revision, pod)).is_some() {
            state.publish();
        }
    }

    /// Snapshot `version` has been taken in.
    pub(crate) fn taken_in(&self, version: u64) {
        let mut state = self.state.lock();
        state.version = version;
        state.publish();
    }
}

impl State {
    fn publish(&self) {
        let pods = self.pods.values().cloned().collect();
        self.out.send_replace(Arc::new(Holding { version: self.version, pods }));
    }
}
