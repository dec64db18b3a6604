//! What the reference describes of reconciles, and no recording shows.

use super::*;
use crate::knative::conditions::{READY, Truth};
use crate::knative::object::Existing;
use policy::endpoints::{Port, Subset};
use std::collections::BTreeMap;

fn second(seconds: i64) -> Moment {
    Moment::from_unix_millis(seconds * 1000)
}

fn subset(ready: &[&str]) -> Vec<Subset> {
    let port = Port { name: "http".into(), number: 8012 };
    vec![Subset { ports: vec![port], ready: ready.iter().map(|&ip| ip.into()).collect(), not_ready: vec![] }]
}

/// All that a ServerlessService can find.
struct World {
    sks: ServerlessService,
    selector: BTreeMap<String, String>,
    private_service: Option<Existing<ServiceSpec>>,
    public_service: Option<Existing<ServiceSpec>>,
    private_endpoints: Option<Vec<Subset>>,
    public_endpoints: Option<Existing<Vec<Subset>>>,
    activators: Option<Vec<Subset>>,
}

impl World {
    /// In which nothing is to do.
    fn at_rest(path: Path) -> World {
        let selector = BTreeMap::from([("app".to_owned(), "rev".to_owned())]);
        let spec = SksSpec { path, num_activators: 2, target: ObjectRef::default(), protocol: Protocol::Http1 };
        let meta = Meta { name: "rev".into(), generation: 1, ..Meta::default() };
        let (pods, activators) = (subset(&["10.0.0.1"]), subset(&["10.1.0.1"]));
        let behind = if path == Path::Direct { pods.clone() } else { activators.clone() };
        let owned = |is| Existing { is, owned: true };
        World {
            private_service: Some(owned(ServiceSpec::private(&selector, Protocol::Http1))),
            public_service: Some(owned(ServiceSpec::public(Protocol::Http1))),
            sks: ServerlessService { meta, spec, status: SksStatus::default() },
            private_endpoints: Some(pods),
            public_endpoints: Some(Existing { is: behind, owned: true }),
            activators: Some(activators),
            selector,
        }
    }

    fn look(&self, now: i64) -> Outcome {
        let seen = Seen {
            sks: &self.sks,
            selector: &self.selector,
            private_service: self.private_service.as_ref(),
            public_service: self.public_service.as_ref(),
            private_endpoints: self.private_endpoints.as_deref(),
            public_endpoints: self.public_endpoints.as_ref(),
            activator_endpoints: self.activators.as_deref(),
        };
        reconcile(&seen, second(now))
    }

    fn turn(&mut self, now: i64) -> Outcome {
        let outcome = self.look(now);
        self.sks.status = outcome.status.clone();
        outcome
    }
}

fn words<'a>(outcome: &'a Outcome, kind: &str) -> (Truth, &'a str) {
    let condition = outcome.status.conditions.get(kind).unwrap();
    (condition.truth, &condition.reason)
}

#[test]
fn what_is_as_it_should_be_needs_no_write_and_keeps_its_times() {
    for path in [Path::Direct, Path::Activator] {
        let mut world = World::at_rest(path);
        let first = world.turn(10);
        assert_eq!((&first.writes[..], &first.fault), (&[][..], &None));
        assert!(world.sks.is_ready());
        let through = world.sks.status.through_activators_since();
        assert_eq!(through, (path == Path::Activator).then_some(second(10)));
        assert_eq!(world.turn(20), first);
    }
}

#[test]
fn a_service_that_differs_is_written_anew() {
    let mut world = World::at_rest(Path::Direct);
    world.selector.insert("more".into(), "labels".into());
    world.public_service.as_mut().unwrap().is.ports.clear();
    // The last word is that somebody serves.
    let outcome = world.look(10);
    assert!(
        matches!(&outcome.writes[..], [Write::UpdateService(private, _), Write::UpdateService(public, _)]
            if private == "rev-private" && public == "rev"),
        "{:?}",
        outcome.writes
    );
    assert_eq!(words(&outcome, READY), (Truth::True, ""));
    // Where it ends before that, it says what was written last.
    world.private_endpoints = None;
    assert_eq!(words(&world.look(10), READY), (Truth::Unknown, "UpdatingPrivateService"));
}

#[test]
fn a_public_service_of_somebody_else_is_a_fault() {
    let mut world = World::at_rest(Path::Direct);
    world.public_service.as_mut().unwrap().owned = false;
    let outcome = world.look(10);
    assert_eq!(outcome.fault.unwrap().to_string(), "SKS: rev does not own Service: rev");
    assert_eq!(outcome.status.private_service_name, "rev-private");
    assert_eq!(outcome.status.service_name, "");
}

#[test]
fn the_path_that_was_asked_for_is_told_even_where_pods_stand_in() {
    let mut world = World::at_rest(Path::Activator);
    world.activators = Some(vec![]);
    let outcome = world.look(10);
    let [Write::UpdateEndpoints(_, behind)] = &outcome.writes[..] else { panic!("{:?}", outcome.writes) };
    assert_eq!(*behind, subset(&["10.0.0.1"]));
    assert_eq!(words(&outcome, ACTIVATOR_ENDPOINTS_POPULATED).0, Truth::True);
}

#[test]
fn the_private_service_of_a_long_name_has_a_short_one() {
    let mut world = World::at_rest(Path::Direct);
    world.sks.meta.name = "r".repeat(60);
    world.private_service = None;
    let outcome = world.look(10);
    let Write::CreateService(name, _) = &outcome.writes[0] else { panic!() };
    assert!(name.len() <= 63 && name.ends_with("-private"), "{name}");
    assert_eq!(outcome.status.private_service_name, *name);
}
