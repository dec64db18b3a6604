//! From what answers, and the own place among the activators of a revision, to
//! the pods that this one chooses from.

use crate::condition::Condition;
use crate::pods::Pod;
use policy::assign::{CAPACITY_MAX, Plan, Target, plan};
use policy::backends::{Backends, Destination};
use policy::compat::Compat;
use policy::endpoints::Place;
use policy::world::PodName;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What is known of a destination: the pod behind it.
pub(crate) type Known = BTreeMap<Destination, Pod>;

/// The pods to choose from, in their order, and how many requests at a time
/// each gets.
pub(crate) struct Share {
    pub(crate) pods: Vec<Pod>,
    pub(crate) limit: Option<u32>,
}

/// The share of the activator at `place` in what answers. `service` is what
/// stands for all pods behind one address.
pub(crate) fn of(
    limit: u32,
    backends: &Backends,
    place: Place,
    compat: Compat,
    known: &Known,
    service: &PodName,
) -> Share {
    let is_ours =
        |pod: &Destination| compat == Compat::Better && known.get(pod).is_some_and(|pod| pod.condition.is_ours());
    let Plan { to, capacity } = plan(limit, backends, place, is_ours);
    match to {
        Target::Pods { pods, limit: each } => {
            let own = own_first(pods, limit, backends, place, compat);
            Share { pods: own.iter().filter_map(|pod| known.get(pod).cloned()).collect(), limit: each }
        }
        Target::ClusterIp(address) => {
            let all =
                address.parse().ok().map(|address| Pod::new(service.clone(), address, Arc::new(Condition::of_many())));
            Share { pods: all.into_iter().collect(), limit: (limit > 0 || capacity < CAPACITY_MAX).then_some(capacity) }
        }
    }
}

/// Pods that are everybody's are chosen from the own share on, so that
/// activators that know nothing of each other begin at different pods.
fn own_first(
    pods: Vec<Destination>,
    limit: u32,
    backends: &Backends,
    place: Place,
    compat: Compat,
) -> Vec<Destination> {
    if compat == Compat::Strict || place.activators < 2 {
        return pods;
    }
    let Target::Pods { pods: share, .. } = plan(limit, backends, place, |_| false).to else { return pods };
    let (mut own, others): (Vec<_>, Vec<_>) = pods.into_iter().partition(|pod| share.binary_search(pod).is_ok());
    own.extend(others);
    own
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(count: usize, ours: &[usize]) -> Known {
        let pod = |n: usize| {
            let address: std::net::SocketAddr = ([10, 0, 0, n as u8], 8012).into();
            let condition = Arc::new(Condition::new(ours.contains(&n)));
            (Destination::from(address.to_string()), Pod::new(format!("pod-{n}").into(), address, condition))
        };
        (1..=count).map(pod).collect()
    }

    fn names(share: &Share) -> Vec<&str> {
        share.pods.iter().map(|pod| &*pod.name).collect()
    }

    const SECOND: Place = Place { activators: 2, index: Some(1), left: false };

    #[test]
    fn stock_pods_are_shared_out_and_ours_are_everybodys_the_own_ones_first() {
        let share = |ours: &[usize], compat| {
            let known = known(4, ours);
            let backends = Backends::Pods(known.keys().cloned().collect());
            names(&of(2, &backends, SECOND, compat, &known, &"all".into())).join(" ")
        };
        assert_eq!(share(&[], Compat::Better), "pod-3 pod-4");
        assert_eq!(share(&[1], Compat::Better), "pod-3 pod-4 pod-1");
        assert_eq!(share(&[1, 2, 3, 4], Compat::Better), "pod-3 pod-4 pod-1 pod-2");
        assert_eq!(share(&[1, 2, 3, 4], Compat::Strict), "pod-3 pod-4");
    }

    #[test]
    fn one_address_has_a_part_of_the_slots_of_all_or_no_limit() {
        let known = known(3, &[]);
        let of = |limit, ready: usize| {
            let ready = known.keys().take(ready).cloned().collect();
            let backends = Backends::ClusterIp { address: "172.16.0.9:80".into(), ready };
            let share = super::of(limit, &backends, SECOND, Compat::Better, &known, &"all".into());
            assert_eq!(names(&share), ["all"]);
            share.limit
        };
        assert_eq!([of(4, 3), of(4, 0), of(0, 3), of(0, 0)], [Some(6), Some(0), None, Some(0)]);
    }
}
