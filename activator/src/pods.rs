//! The pods of one revision: those that may be chosen, and those that have
//! left the choice with requests in progress.

use crate::condition::Condition;
use crate::retire::Retirement;
use parking_lot::RwLock;
use plumbing::limiter::Limiter;
use policy::admit::PodKey;
use policy::eject::{self, Sign};
use policy::world::PodName;
use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// A pod, or all of them behind one address.
#[derive(Clone)]
pub(crate) struct Pod {
    pub(crate) name: PodName,
    pub(crate) address: SocketAddr,
    pub(crate) condition: Arc<Condition>,
    /// True while somebody asks it for its readiness.
    doubted: bool,
    /// True while somebody asks it for a free slot.
    watched: bool,
}

impl Pod {
    pub(crate) fn new(name: PodName, address: SocketAddr, condition: Arc<Condition>) -> Pod {
        Pod { name, address, condition, doubted: false, watched: false }
    }
}

/// A pod that gets no new work until it has shown that it is ready.
pub(crate) struct Doubted {
    pub(crate) key: PodKey,
    pub(crate) pod: Pod,
    /// How long it is left alone first.
    pub(crate) rest: Duration,
}

pub(crate) struct Pods {
    limiter: Limiter,
    /// Of its revision, by which pods are told apart that have left the choice.
    number: u64,
    retirement: Arc<Retirement>,
    state: RwLock<State>,
}

#[derive(Default)]
struct State {
    chosen: BTreeMap<PodKey, Pod>,
    /// Those that may still have requests.
    departed: BTreeMap<PodKey, Pod>,
    /// Requests at a time at each.
    limit: Option<u32>,
    /// Nobody is chosen any more.
    retired: bool,
}

/// A pod is the same only at the same address.
type Identity = (PodName, SocketAddr);

fn keys(pods: &BTreeMap<PodKey, Pod>) -> HashMap<Identity, PodKey> {
    pods.iter().map(|(key, pod)| ((pod.name.clone(), pod.address), *key)).collect()
}

impl Pods {
    pub(crate) fn new(limiter: Limiter, number: u64, retirement: Arc<Retirement>) -> Pods {
        Pods { limiter, number, retirement, state: RwLock::default() }
    }

    /// These are the pods from now on, in the order in which they are chosen
    /// from, each with so many requests at a time. One that is known goes on as
    /// it is, and one that comes back has the requests that it had left with.
    ///
    /// The new ones come before the others go, so that a change of pods is
    /// not taken for none.
    pub(crate) fn choose(&self, wanted: Vec<Pod>, limit: Option<u32>) {
        let mut order = Vec::with_capacity(wanted.len());
        let (gone, resized) = {
            let mut state = self.state.write();
            if state.retired {
                return;
            }
            self.forget_idle(&mut state);
            let (mut chosen, departed) = (keys(&state.chosen), keys(&state.departed));
            let mut new = Vec::new();
            for pod in wanted {
                let identity = (pod.name.clone(), pod.address);
                let key = chosen.remove(&identity).unwrap_or_else(|| {
                    let key = self.add(&mut state, pod, departed.get(&identity).copied());
                    new.push(key);
                    key
                });
                order.push(key);
            }
            let gone: Vec<PodKey> = chosen.into_values().collect();
            let limit_changed = std::mem::replace(&mut state.limit, limit) != limit;
            (gone, if limit_changed { order.clone() } else { new })
        };
        self.limiter.update(|admission, woken| {
            admission.arrange(&order);
            resized.into_iter().for_each(|key| admission.resize_pod(key, limit, woken));
        });
        gone.into_iter().for_each(|key| self.remove(key));
    }

    /// Without slots at first, so that nobody is sent to a pod whose address is
    /// not written down yet.
    fn add(&self, state: &mut State, pod: Pod, before: Option<PodKey>) -> PodKey {
        let back =
            before.filter(|&key| self.limiter.update(|admission, woken| admission.restore_pod(key, Some(0), woken)));
        let key = match back {
            Some(key) => {
                state.departed.remove(&key);
                self.retirement.end(self.number, key);
                key
            }
            None => self.limiter.update(|admission, woken| admission.add_pod(Some(0), woken)),
        };
        state.chosen.insert(key, pod);
        key
    }

    fn forget_idle(&self, state: &mut State) {
        if !state.departed.is_empty() {
            self.limiter.read(|admission| state.departed.retain(|key, _| admission.holds(*key)));
        }
    }

    fn remove(&self, key: PodKey) {
        let Some(pod) = self.get(key) else { return };
        self.retirement.begin(self.number, key, pod.name.clone());
        let idle = self.limiter.update(|admission, _| admission.remove_pod(key));
        let mut state = self.state.write();
        state.chosen.remove(&key);
        if idle {
            drop(state);
            self.retirement.end(self.number, key);
        } else {
            state.departed.insert(key, Pod { doubted: false, watched: false, ..pod });
        }
    }

    /// There will be none any more.
    pub(crate) fn retire(&self) {
        let pods: Vec<PodKey> = {
            let mut state = self.state.write();
            state.retired = true;
            state.chosen.keys().copied().collect()
        };
        pods.into_iter().for_each(|key| self.remove(key));
    }

    /// True while none may be chosen.
    pub(crate) fn is_empty(&self) -> bool {
        self.state.read().chosen.is_empty()
    }

    /// One that may be chosen.
    pub(crate) fn get(&self, key: PodKey) -> Option<Pod> {
        self.state.read().chosen.get(&key).cloned()
    }

    /// Notes that a pod has failed; what to watch, when that begins its doubt.
    /// It gets no new work then, if so many may be passed over.
    pub(crate) fn doubt(&self, key: PodKey, sign: Sign) -> Option<Doubted> {
        let mut state = self.state.write();
        let pod = state.chosen.get_mut(&key)?;
        let failures = pod.condition.failed();
        if pod.doubted {
            return None;
        }
        // One that handed a request back is out already.
        let out = self.limiter.update(|admission, _| admission.eject_pod(key, sign) || admission.is_suspended(key));
        pod.doubted = out;
        out.then(|| Doubted { key, pod: pod.clone(), rest: eject::rest(sign, failures) })
    }

    /// Ends [`Pods::doubt`].
    pub(crate) fn trust_again(&self, key: PodKey) {
        if let Some(pod) = self.state.write().chosen.get_mut(&key) {
            pod.doubted = false;
        }
        self.limiter.update(|admission, woken| admission.resume_pod(key, woken));
    }

    /// Pods that others have filled and for which requests wait; they are
    /// watched from now on, by the caller.
    pub(crate) fn begin_watch(&self) -> Vec<(PodKey, Pod)> {
        let full: Vec<PodKey> = {
            let state = self.state.read();
            let unwatched = state.chosen.iter().filter(|(_, pod)| !pod.watched).map(|(key, _)| *key);
            self.limiter.read(|admission| unwatched.filter(|key| admission.is_worth_asking(*key)).collect())
        };
        if full.is_empty() {
            return Vec::new();
        }
        let mut state = self.state.write();
        let mut begin = |key: PodKey| {
            let pod = state.chosen.get_mut(&key).filter(|pod| !pod.watched)?;
            pod.watched = true;
            Some((key, pod.clone()))
        };
        full.into_iter().filter_map(&mut begin).collect()
    }

    /// True while a watched pod is to be watched on. When not, it is not
    /// watched any more, and whoever waits next may begin again.
    pub(crate) fn watch_on(&self, key: PodKey) -> bool {
        let mut state = self.state.write();
        let Some(pod) = state.chosen.get_mut(&key) else { return false };
        // Under the lock: whoever comes to wait looks after it has taken its place.
        pod.watched = self.limiter.read(|admission| admission.is_worth_asking(key));
        pod.watched
    }
}
