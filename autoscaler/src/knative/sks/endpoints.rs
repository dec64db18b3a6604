//! Who is behind the public service.

use super::{HTTPS_PORT, Protocol, SksSpec};
use policy::endpoints::Subset;
use policy::subset::choose;
use policy::world::Path;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Addresses that Kubernetes holds for ready, each once.
pub fn ready_addresses(subsets: &[Subset]) -> usize {
    subsets.iter().flat_map(|subset| &subset.ready).collect::<BTreeSet<_>>().len()
}

/// Whose addresses the public endpoints should have: where nobody is ready on
/// one side, those of the other, whatever was asked for.
pub(super) fn source(asked: Path, ready_pods: usize, ready_activators: usize) -> Path {
    match (ready_pods, ready_activators) {
        (_, 0) => Path::Direct,
        (0, _) => Path::Activator,
        _ => asked,
    }
}

/// The public endpoints: pods with those that are not ready, or some of the
/// activators; of each only the ports by which requests come.
pub(super) fn public(name: &str, spec: &SksSpec, source: Path, pods: &[Subset], activators: &[Subset]) -> Vec<Subset> {
    let from = match source {
        Path::Direct => pods.to_vec(),
        Path::Activator => chosen(name, spec.num_activators, activators),
    };
    from.into_iter().map(|subset| for_requests(subset, spec.protocol)).collect()
}

/// So many of the activators, the same whoever reckons.
fn chosen(name: &str, count: u32, activators: &[Subset]) -> Vec<Subset> {
    let all = activators.iter().flat_map(|subset| subset.ready.iter().map(|address| &**address));
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    if count == 0 || count >= ready_addresses(activators) {
        return activators.to_vec();
    }
    let chosen = choose(all, name, count);
    let keep = |subset: &Subset| {
        let ready = subset.ready.iter().filter(|address| chosen.contains(&***address)).cloned().collect();
        Subset { ready, ..subset.clone() }
    };
    activators.iter().map(keep).filter(|subset| !subset.ready.is_empty()).collect()
}

fn for_requests(mut subset: Subset, protocol: Protocol) -> Subset {
    subset.ports.retain(|port| [protocol.sidecar_port(), HTTPS_PORT].contains(&port.number));
    subset
}

/// As they stand in an Endpoints object.
pub fn subsets_json(subsets: &[Subset]) -> Value {
    let subset = |subset: &Subset| {
        let addresses = |list: &[std::sync::Arc<str>]| list.iter().map(|ip| json!({ "ip": &**ip })).collect::<Value>();
        let ports = subset.ports.iter();
        let ports: Value =
            ports.map(|port| json!({ "name": &*port.name, "port": port.number, "protocol": "TCP" })).collect();
        let mut json = json!({ "ports": ports });
        for (key, list) in [("addresses", &subset.ready), ("notReadyAddresses", &subset.not_ready)] {
            if !list.is_empty() {
                json[key] = addresses(list);
            }
        }
        json
    };
    subsets.iter().map(subset).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::knative::object::ObjectRef;
    use policy::endpoints::Port;

    fn subset(ready: &[&str]) -> Subset {
        let port = |number: u16| Port { name: number.to_string().into(), number };
        let ready = ready.iter().map(|&ip| ip.into()).collect();
        Subset { ports: vec![port(8012), port(9090), port(8112)], ready, not_ready: vec!["10.9.0.9".into()] }
    }

    fn spec(num_activators: u32) -> SksSpec {
        let target = ObjectRef::default();
        SksSpec { path: Path::Activator, num_activators, target, protocol: Protocol::Http1 }
    }

    #[test]
    fn where_nobody_is_ready_on_one_side_it_is_the_other() {
        assert_eq!(source(Path::Direct, 0, 3), Path::Activator);
        assert_eq!(source(Path::Activator, 2, 0), Path::Direct);
        assert_eq!(source(Path::Activator, 0, 0), Path::Direct);
        for asked in [Path::Activator, Path::Direct] {
            assert_eq!(source(asked, 1, 1), asked);
        }
    }

    #[test]
    fn activators_are_chosen_over_all_subsets() {
        let activators = [subset(&["10.1.0.1", "10.1.0.2"]), subset(&["10.1.0.3"]), subset(&["10.1.0.4", "10.1.0.1"])];
        assert_eq!(ready_addresses(&activators), 4);
        for count in [0, 4, 9] {
            let all = public("rev", &spec(count), Path::Activator, &[], &activators);
            assert_eq!(ready_addresses(&all), 4);
        }
        let two = public("rev", &spec(2), Path::Activator, &[], &activators);
        assert_eq!(ready_addresses(&two), 2);
        assert!(two.iter().all(|subset| !subset.ready.is_empty()));
    }

    #[test]
    fn only_ports_for_requests_are_left() {
        let pods = [subset(&["10.2.0.1"])];
        let got = public("rev", &spec(1), Path::Direct, &pods, &[]);
        let ports: Vec<u16> = got[0].ports.iter().map(|port| port.number).collect();
        assert_eq!((ports, got[0].not_ready.len()), (vec![8012, 8112], 1));
    }
}
