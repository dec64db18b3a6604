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
    /// The chosen ones, in the order in which they are chosen from.
    order: Vec<PodKey>,
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
            if !limit_changed && order == state.order {
                return;
            }
            state.order.clone_from(&order);
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

#[cfg(test)]
mod tests {
    use super::*;
    use plumbing::limiter::{Asked, Permit};
    use policy::admit::Bounds;
    use policy::pick::Rule;
    use policy::world::Holding;
    use tokio::sync::watch;

    struct Bench {
        pods: Pods,
        limiter: Limiter,
        holding: watch::Receiver<Arc<Holding>>,
    }

    fn bench() -> Bench {
        let (out, holding) = watch::channel(Arc::new(Holding::default()));
        let retirement = Retirement::new(out);
        let told = retirement.clone();
        let bounds = Bounds { waiting_max: 100, places_max: usize::MAX };
        let limiter = Limiter::new(bounds, Rule::FirstFree, Some(Box::new(move |pod| told.end(1, pod))));
        Bench { pods: Pods::new(limiter.clone(), 1, retirement.clone()), limiter, holding }
    }

    impl Bench {
        fn choose(&self, names: &[&str], limit: u32) {
            let address = |name: &str| SocketAddr::from(([127, 0, 0, 1], u16::from(name.as_bytes()[0])));
            let pod = |name: &&str| Pod::new((*name).into(), address(name), Arc::new(Condition::new(true)));
            self.pods.choose(names.iter().map(pod).collect(), Some(limit));
        }

        fn go(&self) -> (Permit, String) {
            let Asked::Go(permit) = self.limiter.ask() else { panic!("a slot is free") };
            let name = self.pods.get(permit.pod()).expect("it may be chosen").name.to_string();
            (permit, name)
        }

        fn is_full(&self) -> bool {
            matches!(self.limiter.ask(), Asked::Wait(_))
        }
    }

    #[test]
    fn pods_are_chosen_from_in_the_order_in_which_they_are_given() {
        let bench = bench();
        bench.choose(&["b", "a"], 1);
        assert_eq!(bench.go().1, "b");
        bench.choose(&["c", "a", "b"], 1);
        let chosen: Vec<_> = (0..3).map(|_| bench.go()).collect();
        assert_eq!(chosen.iter().map(|(_, name)| name.as_str()).collect::<Vec<_>>(), ["c", "a", "b"]);
        assert!(bench.is_full());
        bench.choose(&["c", "a", "b"], 2);
        assert_eq!(bench.go().1, "c");
    }

    #[test]
    fn a_pod_that_comes_back_while_it_has_requests_has_no_more_slots_for_that() {
        let bench = bench();
        bench.choose(&["a"], 2);
        let first = bench.go().0;
        bench.choose(&["b"], 2);
        bench.choose(&["a"], 2);
        assert!(bench.holding.borrow().pods.is_empty(), "it is no departed one any more");
        let (second, name) = bench.go();
        assert!(name == "a" && bench.is_full(), "the one that it left with is counted");
        drop(first);
        let _third = bench.go();
        drop(second);
        assert_eq!(bench.limiter.read(|admission| (admission.running(), admission.pod_count())), (1, 1));
    }

    #[test]
    fn a_pod_without_requests_is_let_go_of_at_once_and_one_with_some_later() {
        let bench = bench();
        bench.choose(&["a", "b"], 1);
        let first = bench.go().0;
        bench.choose(&["c"], 1);
        let state = bench.pods.state.read();
        assert_eq!((state.chosen.len(), state.departed.len()), (1, 1));
        drop(state);
        drop(first);
        assert!(bench.holding.borrow().pods.is_empty());
        bench.choose(&["c", "a"], 1);
        assert_eq!(bench.pods.state.read().departed.len(), 0);
        bench.pods.retire();
        bench.choose(&["a"], 1);
        assert!(bench.pods.is_empty(), "nothing comes after the end");
    }
}
