//! Which pods an activator sends requests to, and how many at a time.
//!
//! Several activators may be in the path of one revision. Where a pod's
//! sidecar can only queue what it gets, they share the pods out among each
//! other, without talking: each reckons from the same list of pods and the
//! same order of activators (activator reference, sections 5.2 and 5.3; both
//! modes agree to the letter, since a fleet may be mixed). A pod whose sidecar
//! hands back what it has no room for is everybody's.
//!
//! With more activators than pods several have the same pod, each with its
//! whole limit, in both modes: divided, a limit of 1 would leave slots unused
//! while requests wait, and the pod's sidecar keeps the limit anyway.

use crate::backends::{Backends, Destination};
use crate::endpoints::Place;

/// Most slots of a revision, and what stands for no limit.
pub const CAPACITY_MAX: u32 = i32::MAX as u32;

/// Where requests may go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The pods, or the one address.
    pub to: Target,
    /// Requests at a time to all of them together: 0 = hold everything,
    /// [`CAPACITY_MAX`] = no limit.
    pub capacity: u32,
}

/// The destinations of a [`Plan`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// Pods, one by one.
    Pods {
        /// In the order in which they are chosen from.
        pods: Vec<Destination>,
        /// Requests at a time at each of them; `None` = no limit.
        limit: Option<u32>,
    },
    /// All pods behind one address.
    ClusterIp(Destination),
}

/// The plan of the activator at `place` for a revision with a container
/// concurrency of `limit` (0 = none). `hands_back` says of a pod whether its
/// sidecar hands back what it has no room for; for strict mode it says no.
pub fn plan(limit: u32, backends: &Backends, place: Place, hands_back: impl Fn(&Destination) -> bool) -> Plan {
    match backends {
        Backends::Pods(all) => {
            let share = Share::new(limit, all.len(), place);
            let assigned = all.iter().enumerate().filter(|(at, pod)| share.has(*at) || hands_back(pod));
            let pods: Vec<Destination> = assigned.map(|(_, pod)| pod.clone()).collect();
            let limit = (limit > 0).then(|| pod_limit(limit, place));
            let capacity = slots(limit, pods.len(), 1);
            Plan { to: Target::Pods { pods, limit }, capacity }
        }
        Backends::ClusterIp { address, ready } => {
            let limit = (limit > 0).then_some(limit);
            Plan { to: Target::ClusterIp(address.clone()), capacity: slots(limit, ready.len(), place.activators) }
        }
    }
}

/// One that has left the path has no share, and takes a part of each pod's
/// limit instead: the others use the rest.
fn pod_limit(limit: u32, place: Place) -> u32 {
    if place.left { (limit / place.activators.max(1)).max(1) } else { limit }
}

/// Slots of so many pods, divided by so many activators, at least one if
/// there is any.
fn slots(limit: Option<u32>, pods: usize, activators: u32) -> u32 {
    let pods = u64::try_from(pods).unwrap_or(u64::MAX);
    let all = match limit {
        _ if pods == 0 => return 0,
        None => return CAPACITY_MAX,
        Some(limit) => pods.saturating_mul(u64::from(limit)),
    };
    let own = (all / u64::from(activators.max(1))).max(1);
    u32::try_from(own).unwrap_or(CAPACITY_MAX).min(CAPACITY_MAX)
}

/// An activator's part of a list of pods, by position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Share {
    from: usize,
    to: usize,
    /// One of those that are left over when pods are divided.
    extra: Option<usize>,
}

impl Share {
    fn new(limit: u32, pods: usize, place: Place) -> Share {
        let whole = Share { from: 0, to: pods, extra: None };
        let activators = place.activators as usize;
        let index = match place.index {
            Some(index) if limit > 0 && pods > 1 && activators > 1 && index < place.activators => index as usize,
            _ => return whole,
        };
        if activators > pods {
            let only = index % pods;
            return Share { from: only, to: only + 1, extra: None };
        }
        let (each, over) = (pods / activators, pods % activators);
        Share { from: index * each, to: (index + 1) * each, extra: (index < over).then(|| pods - over + index) }
    }

    fn has(self, position: usize) -> bool {
        (self.from..self.to).contains(&position) || self.extra == Some(position)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn pods(count: usize) -> BTreeSet<Destination> {
        (1..=count).map(|n| format!("10.0.0.{n}:8012").into()).collect()
    }

    fn at(activators: u32, index: u32) -> Place {
        Place { activators, index: Some(index), left: false }
    }

    fn assigned(plan: Plan) -> Vec<Destination> {
        match plan.to {
            Target::Pods { pods, .. } => pods,
            Target::ClusterIp(_) => panic!("no cluster IP was given"),
        }
    }

    fn share(limit: u32, count: usize, place: Place) -> Vec<Destination> {
        assigned(plan(limit, &Backends::Pods(pods(count)), place, |_| false))
    }

    #[test]
    fn shares_cover_all_pods_once_and_differ_by_one_at_most() {
        for count in 2..30 {
            for activators in 1..=count as u32 {
                let shares: Vec<_> = (0..activators).map(|index| share(3, count, at(activators, index))).collect();
                let union: BTreeSet<Destination> = shares.iter().flatten().cloned().collect();
                assert_eq!(union, pods(count));
                assert_eq!(shares.iter().map(Vec::len).sum::<usize>(), count, "no pod is shared");
                let sizes = shares.iter().map(Vec::len);
                assert!(sizes.clone().max().unwrap() - sizes.min().unwrap() <= 1);
            }
        }
    }

    #[test]
    fn with_more_activators_than_pods_each_has_one() {
        let first = share(2, 3, at(7, 0));
        assert_eq!((first.len(), &first), (1, &share(2, 3, at(7, 3))));
        assert_eq!(share(2, 3, at(7, 5)), ["10.0.0.3:8012".into()]);
    }

    #[test]
    fn without_a_limit_or_a_known_place_all_pods_are_ones_own() {
        assert_eq!(share(0, 5, at(3, 1)).len(), 5);
        assert_eq!(share(2, 5, Place { activators: 3, ..Place::default() }).len(), 5);
        assert_eq!(share(2, 5, Place::default()).len(), 5);
        assert_eq!(share(2, 1, at(3, 1)).len(), 1);
    }

    #[test]
    fn pods_are_in_the_order_of_their_text() {
        let plan = plan(0, &Backends::Pods(pods(10)), Place::default(), |_| false);
        assert_eq!(assigned(plan)[..3], ["10.0.0.10:8012".into(), "10.0.0.1:8012".into(), "10.0.0.2:8012".into()]);
    }

    #[test]
    fn a_pod_that_hands_back_is_everybodys() {
        let ours: Destination = "10.0.0.1:8012".into();
        for index in 0..2 {
            let plan = plan(2, &Backends::Pods(pods(4)), at(2, index), |pod| *pod == ours);
            assert_eq!(plan.capacity, if index == 0 { 4 } else { 6 });
            assert!(assigned(plan).contains(&ours));
        }
    }

    #[test]
    fn the_capacity_is_that_of_the_own_pods_or_a_part_of_the_cluster_ips() {
        let cluster_ip = |count| Backends::ClusterIp { address: "172.16.0.9:80".into(), ready: pods(count) };
        let capacity = |limit, backends: &Backends, place| plan(limit, backends, place, |_| false).capacity;
        assert_eq!(capacity(10, &Backends::Pods(pods(5)), at(2, 0)), 30);
        assert_eq!(capacity(10, &cluster_ip(5), at(2, 0)), 25);
        assert_eq!(capacity(1, &cluster_ip(2), at(5, 4)), 1, "at least one");
        assert_eq!(capacity(1, &cluster_ip(2), Place::default()), 2);
        for nothing in [Backends::default(), cluster_ip(0)] {
            assert_eq!(capacity(0, &nothing, at(2, 0)), 0);
            assert_eq!(capacity(7, &nothing, at(2, 0)), 0);
        }
        assert_eq!(capacity(0, &cluster_ip(1), at(2, 0)), CAPACITY_MAX);
        assert_eq!(capacity(u32::MAX, &Backends::Pods(pods(5)), at(2, 0)), CAPACITY_MAX);
    }

    #[test]
    fn one_that_left_the_path_has_a_little_of_each_pod() {
        let left = Place { activators: 3, index: None, left: true };
        let of = |limit| plan(limit, &Backends::Pods(pods(4)), left, |_| false);
        assert_eq!(of(10).capacity, 12);
        assert_eq!(of(2).capacity, 4, "at least one each");
        assert!(matches!(of(0).to, Target::Pods { limit: None, .. }));
    }
}
