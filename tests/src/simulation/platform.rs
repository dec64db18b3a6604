//! The platform: pods that start after a while, are ready, and stop when
//! nobody holds them any more.

use super::setup::MILLI;
use super::world::{Event, World};
use policy::admit::PodKey;
use policy::timeline::Timeline;
use std::collections::BTreeSet;

/// How far a pod is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Starting,
    /// With the key under which the core knows it.
    Ready(PodKey),
    /// Was ready; will be again.
    Unready,
    /// Gets no new request; goes with its last one.
    Terminating,
}

/// A pod of the revision.
#[derive(Debug)]
pub(super) struct Pod {
    pub(super) phase: Phase,
    /// All its keys that were not let go of. A pod that was ready twice has
    /// two, while a request of the first time goes on.
    pub(super) keys: BTreeSet<PodKey>,
    pub(super) timeline: Timeline,
}

impl Pod {
    /// The key under which it gets work.
    pub(super) fn ready(&self) -> Option<PodKey> {
        match self.phase {
            Phase::Ready(key) => Some(key),
            _ => None,
        }
    }
}

impl World {
    pub(super) fn take_order(&mut self, wanted: u32) {
        self.wanted = wanted;
        self.log(format_args!("{wanted} pods are ordered"));
        self.reconcile();
    }

    /// As many pods as wanted; the youngest go first, those that start before
    /// those that are ready.
    pub(super) fn reconcile(&mut self) {
        let rank = |phase: Phase| match phase {
            Phase::Ready(_) => 0,
            Phase::Unready => 1,
            Phase::Starting => 2,
            Phase::Terminating => 3,
        };
        let mut kept: Vec<(i32, u32)> = self
            .pods
            .iter()
            .filter(|(_, pod)| pod.phase != Phase::Terminating)
            .map(|(&number, pod)| (rank(pod.phase), number))
            .collect();
        kept.sort_unstable();
        let wanted = self.wanted as usize;
        for &(_, number) in kept.iter().skip(wanted).rev() {
            self.terminate(number);
        }
        for _ in kept.len()..wanted {
            self.start_pod();
        }
    }

    fn start_pod(&mut self) {
        let number = self.next_pod;
        self.next_pod += 1;
        let timeline = Timeline::new(self.moment());
        self.pods.insert(number, Pod { phase: Phase::Starting, keys: BTreeSet::new(), timeline });
        let takes = self.draw.between(self.setup.start_most / 2, self.setup.start_most);
        self.after(takes, Event::PodStarted(number));
    }

    pub(super) fn pod_started(&mut self, number: u32) {
        if self.pods.get(&number).is_none_or(|pod| pod.phase != Phase::Starting) {
            return;
        }
        if self.trouble {
            return self.after(500 * MILLI, Event::PodStarted(number));
        }
        self.saw("pod started");
        self.ready(number);
    }

    pub(super) fn pod_back(&mut self, number: u32) {
        if self.pods.get(&number).is_some_and(|pod| pod.phase == Phase::Unready) {
            self.saw("pod back");
            self.ready(number);
        }
    }

    /// The pod takes work from now on; sometimes in two steps, as the activator
    /// does it: without a slot first, until its address is written down.
    fn ready(&mut self, number: u32) {
        let capacity = self.capacity;
        let two_steps = self.draw.one_in(2);
        let first = if two_steps { Some(0) } else { capacity };
        let key = self.seam.core_mut().add_pod(first, &mut self.woken);
        if let Some(pod) = self.pods.get_mut(&number) {
            pod.phase = Phase::Ready(key);
            pod.keys.insert(key);
        }
        self.shadow.pod_added(key, number, first);
        self.log(format_args!("p{number} is ready"));
        self.settle(None);
        if two_steps {
            self.resize(key, capacity);
        }
    }

    pub(super) fn resize(&mut self, key: PodKey, capacity: Option<u32>) {
        self.seam.core_mut().resize_pod(key, capacity, &mut self.woken);
        self.shadow.pod_resized(key, capacity);
        self.log(format_args!("{} may have {capacity:?}", self.name(key)));
        self.settle(None);
    }

    /// Stops the pod when its last request is gone.
    fn terminate(&mut self, number: u32) {
        let Some(pod) = self.pods.get_mut(&number) else { return };
        let key = pod.ready();
        pod.phase = Phase::Terminating;
        self.saw("pod terminated");
        match key {
            Some(key) => self.take_out(key),
            None => self.stop_if_free(number),
        }
    }

    /// The pod gets no new request from now on.
    pub(super) fn take_out(&mut self, key: PodKey) {
        let idle = self.seam.core_mut().remove_pod(key);
        self.shadow.pod_removed(key);
        self.log(format_args!("{} is removed", self.name(key)));
        if !idle {
            self.saw("removed with requests");
        }
        self.settle(idle.then_some(key));
    }

    /// The last request under that key is gone.
    pub(super) fn pod_let_go(&mut self, key: PodKey) {
        let number = self.pods.iter().find(|(_, pod)| pod.keys.contains(&key)).map(|(&number, _)| number);
        if let Some(number) = number {
            if let Some(pod) = self.pods.get_mut(&number) {
                pod.keys.remove(&key);
            }
            self.saw("let go");
            self.stop_if_free(number);
        }
    }

    fn stop_if_free(&mut self, number: u32) {
        let free = |pod: &Pod| pod.phase == Phase::Terminating && pod.keys.is_empty();
        if self.pods.get(&number).is_some_and(free) {
            self.pods.remove(&number);
        }
    }

    pub(super) fn doubt(&mut self, key: PodKey) {
        self.seam.core_mut().suspend_pod(key);
        self.shadow.pod_suspended(key);
        self.saw("doubted");
        self.log(format_args!("{} is doubted", self.name(key)));
        self.settle(None);
        let probe = self.draw.between(5, 700) * MILLI;
        self.after(probe, Event::Trust(key));
    }

    pub(super) fn trust(&mut self, key: PodKey) {
        if self.shadow.is_suspended(key) {
            self.seam.core_mut().resume_pod(key, &mut self.woken);
            self.shadow.pod_resumed(key);
            self.log(format_args!("{} is trusted again", self.name(key)));
            self.settle(None);
        }
    }

    /// Keys of the pods that get work, in the order of their numbers.
    pub(super) fn ready_keys(&self) -> Vec<PodKey> {
        self.pods.values().filter_map(Pod::ready).collect()
    }

    pub(super) fn pod_of(&mut self, key: PodKey) -> Option<&mut Pod> {
        self.pods.values_mut().find(|pod| pod.keys.contains(&key))
    }

    /// The pod's name in the trace.
    pub(super) fn name(&self, key: PodKey) -> String {
        self.shadow.place(key).map_or_else(|| "no pod".to_owned(), |place| format!("p{}", place.number))
    }
}
