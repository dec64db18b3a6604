//! Which questions are under way. A pod has one at a time; so many are in all,
//! and those to pods that have cost much lately have few places of their own,
//! so that they hold up nobody else.

use super::answer::Fault;
use policy::revision::RevisionId;
use policy::scrape::Ask;
use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;

/// A question that waits.
pub(super) struct Waiting {
    pub(super) revision: RevisionId,
    /// Of this round.
    pub(super) round: u64,
    pub(super) ask: Ask,
    /// A single pod, if it goes to one.
    pub(super) pod: Option<SocketAddr>,
}

pub(super) struct Lanes {
    well: Lane,
    suspect: Lane,
    pods: HashMap<SocketAddr, Pod>,
    /// Revisions whose service is asked, as if each were one pod; but of that
    /// several questions are under way.
    services: HashMap<RevisionId, Pod>,
}

struct Lane {
    waiting: VecDeque<Waiting>,
    under_way: usize,
    most: usize,
}

#[derive(Clone, Copy, Default)]
struct Pod {
    /// A question is open.
    busy: bool,
    /// The last one cost much.
    suspect: bool,
    /// The last round in which it was to be asked.
    seen: u64,
}

/// Which lane a question runs in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Well,
    Suspect,
}

impl Lanes {
    pub(super) fn new(most: usize) -> Lanes {
        let lane = |most: usize| Lane { waiting: VecDeque::new(), under_way: 0, most: most.max(1) };
        Lanes { well: lane(most), suspect: lane(most / 8), pods: HashMap::new(), services: HashMap::new() }
    }

    /// Puts a question in line; false when the pod has one open.
    pub(super) fn put(&mut self, waiting: Waiting) -> bool {
        let pod = match waiting.pod {
            Some(address) => self.pods.entry(address).or_default(),
            None => self.services.entry(waiting.revision.clone()).or_default(),
        };
        pod.seen = waiting.round;
        if pod.busy {
            return false;
        }
        pod.busy = waiting.pod.is_some();
        let lane = if pod.suspect { &mut self.suspect } else { &mut self.well };
        lane.waiting.push_back(waiting);
        true
    }

    /// The next question to be asked, and the lane that it runs in. `is_open`:
    /// whether its round is; where that is over it is dropped.
    pub(super) fn next(&mut self, is_open: impl Fn(&Waiting) -> bool, late: &mut usize) -> Option<(Kind, Waiting)> {
        for kind in [Kind::Well, Kind::Suspect] {
            loop {
                let lane = self.lane(kind);
                if lane.under_way >= lane.most {
                    break;
                }
                let Some(waiting) = lane.waiting.pop_front() else { break };
                if is_open(&waiting) {
                    lane.under_way += 1;
                    return Some((kind, waiting));
                }
                *late += 1;
                if let Some(pod) = self.of(&waiting) {
                    pod.busy = false;
                }
            }
        }
        None
    }

    /// A question was answered, one way or another.
    pub(super) fn done(&mut self, kind: Kind, asked: &Waiting, fault: Option<Fault>) {
        let lane = self.lane(kind);
        lane.under_way = lane.under_way.saturating_sub(1);
        if let Some(pod) = self.of(asked) {
            pod.busy = false;
            pod.suspect = fault.is_some_and(Fault::is_costly);
        }
    }

    /// Forgets pods that were not to be asked since that round.
    pub(super) fn forget_before(&mut self, round: u64) {
        self.pods.retain(|_, pod| pod.busy || pod.seen >= round);
        self.services.retain(|_, service| service.seen >= round);
    }

    pub(super) fn under_way(&self) -> usize {
        self.well.under_way + self.suspect.under_way
    }

    fn of(&mut self, asked: &Waiting) -> Option<&mut Pod> {
        match asked.pod {
            Some(address) => self.pods.get_mut(&address),
            None => self.services.get_mut(&asked.revision),
        }
    }

    fn lane(&mut self, kind: Kind) -> &mut Lane {
        match kind {
            Kind::Well => &mut self.well,
            Kind::Suspect => &mut self.suspect,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn to(pod: u16) -> Waiting {
        let revision = RevisionId::new("ns", "rev");
        Waiting { revision, round: 1, ask: Ask::Pod(0), pod: Some(([10, 0, 0, 1], pod).into()) }
    }

    fn asked(lanes: &mut Lanes) -> Vec<(Kind, u16)> {
        let mut late = 0;
        let next = std::iter::from_fn(|| lanes.next(|_| true, &mut late));
        next.map(|(kind, waiting)| (kind, waiting.pod.unwrap().port())).collect()
    }

    #[test]
    fn no_more_are_under_way_than_may_be_and_none_twice_at_one_pod() {
        let mut lanes = Lanes::new(8);
        assert!((0..20).all(|pod| lanes.put(to(pod))));
        assert!((0..20).all(|pod| !lanes.put(to(pod))));
        assert_eq!((asked(&mut lanes).len(), lanes.under_way()), (8, 8));
        lanes.done(Kind::Well, &to(0), None);
        assert!(lanes.put(to(0)));
        assert_eq!(asked(&mut lanes), [(Kind::Well, 8)]);
    }

    #[test]
    fn who_cost_much_waits_apart_until_it_answers_well() {
        let mut lanes = Lanes::new(16);
        for pod in 0..5 {
            lanes.put(to(pod));
        }
        asked(&mut lanes).iter().for_each(|_| {});
        for pod in 0..5 {
            lanes.done(Kind::Well, &to(pod), (pod < 4).then_some(Fault::Timeout));
        }
        for pod in 0..5 {
            lanes.put(to(pod));
        }
        // 2 places for the suspect.
        assert_eq!(asked(&mut lanes), [(Kind::Well, 4), (Kind::Suspect, 0), (Kind::Suspect, 1)]);
        lanes.done(Kind::Suspect, &to(0), None);
        lanes.put(to(0));
        assert_eq!(asked(&mut lanes), [(Kind::Well, 0), (Kind::Suspect, 2)]);
    }

    #[test]
    fn a_service_has_several_questions_and_waits_apart_too_once_it_cost_much() {
        let mut lanes = Lanes::new(16);
        let service = |name: &str| Waiting { revision: RevisionId::new("ns", name), pod: None, ..to(0) };
        for _ in 0..3 {
            assert!(lanes.put(service("bad")));
        }
        let mut late = 0;
        assert_eq!(std::iter::from_fn(|| lanes.next(|_| true, &mut late)).count(), 3);
        for _ in 0..3 {
            lanes.done(Kind::Well, &service("bad"), Some(Fault::Connect));
        }
        for _ in 0..20 {
            lanes.put(service("bad"));
            lanes.put(service("good"));
        }
        let next = std::iter::from_fn(|| lanes.next(|_| true, &mut late)).map(|(kind, _)| kind);
        let kinds: Vec<Kind> = next.collect();
        assert_eq!(kinds.iter().filter(|kind| **kind == Kind::Suspect).count(), 2);
        assert_eq!(kinds.len(), 18);
    }

    #[test]
    fn what_is_too_late_is_dropped_and_its_pod_may_be_asked_again() {
        let mut lanes = Lanes::new(8);
        lanes.put(to(1));
        let mut late = 0;
        assert!(lanes.next(|_| false, &mut late).is_none());
        assert_eq!((late, lanes.under_way()), (1, 0));
        assert!(lanes.put(to(1)));
        assert_eq!(asked(&mut lanes).len(), 1);
        lanes.done(Kind::Well, &to(1), None);
        lanes.forget_before(2);
        assert!(lanes.pods.is_empty());
    }
}
