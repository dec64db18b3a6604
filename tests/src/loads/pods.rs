//! Pods that start after a while and go when they are told.

use policy::moment::Moment;
use policy::world::{Order, Pod as Seen, PodPhase};
use std::collections::HashSet;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

/// Time in the model, in its steps.
pub(super) type Steps = u64;

#[derive(Clone, Debug)]
struct Pod {
    name: Arc<str>,
    phase: PodPhase,
    /// When it leaves its phase.
    until: Steps,
    since: Moment,
}

/// All pods, the oldest first.
#[derive(Debug, Default)]
pub(super) struct Pods {
    list: Vec<Pod>,
    made: u64,
    /// How many serve.
    serving: usize,
    /// When something happens next.
    next: Steps,
}

impl Pods {
    /// With so many that are ready.
    pub(super) fn ready_from_the_start(count: u32, now: Moment) -> Pods {
        let mut pods = Pods::default();
        for _ in 0..count {
            pods.make(0, now);
        }
        pods.advance(0, now);
        pods
    }

    fn make(&mut self, until: Steps, now: Moment) {
        self.made += 1;
        let name = format!("p{}", self.made).into();
        self.list.push(Pod { name, phase: PodPhase::Starting, until, since: now });
    }

    /// Takes an order in; true when something changed.
    pub(super) fn follow(&mut self, order: &Order, step: Steps, start: Steps, drain: Steps, now: Moment) -> bool {
        let wanted = order.wanted as usize;
        let there = self.list.iter().filter(|pod| pod.phase != PodPhase::Terminating).count();
        for _ in there..wanted {
            self.make(step + start, now);
        }
        if wanted < there {
            let named: HashSet<&Arc<str>> = order.go_first.iter().collect();
            let staying = self.list.iter().enumerate().filter(|(_, pod)| pod.phase != PodPhase::Terminating);
            let rank = |(at, pod): (usize, &Pod)| (named.contains(&pod.name), pod.phase == PodPhase::Starting, at);
            let mut leaving: Vec<(bool, bool, usize)> = staying.map(rank).collect();
            leaving.sort_unstable();
            for (.., at) in leaving.into_iter().rev().take(there - wanted) {
                let pod = &mut self.list[at];
                (pod.phase, pod.until, pod.since) = (PodPhase::Terminating, step + drain, now);
            }
        }
        self.next = step;
        self.advance(step, now) || there != wanted
    }

    /// Pods whose time has come; true when something changed.
    pub(super) fn advance(&mut self, step: Steps, now: Moment) -> bool {
        if self.next > step {
            return false;
        }
        let mut changed = false;
        for pod in self.list.iter_mut().filter(|pod| pod.phase == PodPhase::Starting && pod.until <= step) {
            (pod.phase, pod.since) = (PodPhase::Ready, now);
            changed = true;
        }
        let before = self.list.len();
        self.list.retain(|pod| pod.phase != PodPhase::Terminating || pod.until > step);
        self.serving = self.list.iter().filter(|pod| pod.phase == PodPhase::Ready).count();
        let waiting = self.list.iter().filter(|pod| pod.phase != PodPhase::Ready);
        self.next = waiting.map(|pod| pod.until).min().unwrap_or(Steps::MAX);
        changed || self.list.len() != before
    }

    /// Those that exist.
    pub(super) fn count(&self) -> usize {
        self.list.len()
    }

    /// How many serve.
    pub(super) fn serving(&self) -> usize {
        self.serving
    }

    /// Names of those that serve.
    pub(super) fn ready(&self) -> impl Iterator<Item = &Arc<str>> {
        self.list.iter().filter(|pod| pod.phase == PodPhase::Ready).map(|pod| &pod.name)
    }

    /// As a platform tells of them.
    pub(super) fn seen(&self) -> Vec<Seen> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 1));
        let seen =
            |pod: &Pod| Seen { name: pod.name.clone(), address, phase: pod.phase, since: pod.since, start_took: None };
        self.list.iter().map(seen).collect()
    }
}
