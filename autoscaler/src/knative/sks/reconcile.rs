//! From one ServerlessService, and what there is of it, to what is to be
//! written: the private service, the public service, the public endpoints, in
//! this order. It ends at the first fault.

use super::{ACTIVATOR_ENDPOINTS_POPULATED, ENDPOINTS_POPULATED, ServerlessService, ServiceSpec, SksStatus};
use super::{endpoints, ready_addresses, subsets_json};
use crate::knative::object::{Child, ENDPOINTS, Existing, Kind, SERVERLESS_SERVICE, SERVICE};
use policy::endpoints::Subset;
use policy::moment::Moment;
use policy::names::private_service;
use policy::world::Path;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;

/// The service of all activators.
const ACTIVATORS: &str = "activator-service";

/// All that is known.
#[derive(Clone, Copy, Debug)]
pub struct Seen<'a> {
    /// The object.
    pub sks: &'a ServerlessService,
    /// Labels by which its target finds its pods.
    pub selector: &'a BTreeMap<String, String>,
    /// The service whose endpoints are the pods.
    pub private_service: Option<&'a Existing<ServiceSpec>>,
    /// The service by which the revision is reached.
    pub public_service: Option<&'a Existing<ServiceSpec>>,
    /// Endpoints of the private service.
    pub private_endpoints: Option<&'a [Subset]>,
    /// Endpoints of the public service.
    pub public_endpoints: Option<&'a Existing<Vec<Subset>>>,
    /// Endpoints of the activators.
    pub activator_endpoints: Option<&'a [Subset]>,
}

/// One thing to write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Write {
    /// A service of that name is to be made.
    CreateService(String, ServiceSpec),
    /// A service of that name is to become this.
    UpdateService(String, ServiceSpec),
    /// Endpoints of that name are to be made.
    CreateEndpoints(String, Vec<Subset>),
    /// Endpoints of that name are to become these.
    UpdateEndpoints(String, Vec<Subset>),
}

/// Why there is no more to do for now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// An object of that kind and name belongs to somebody else.
    NotOwned {
        /// Name of the ServerlessService.
        sks: String,
        /// Kind of the object.
        kind: &'static str,
        /// Its name.
        name: String,
    },
    /// There are no endpoints of that name.
    NoEndpoints {
        /// Whose they are.
        whose: &'static str,
        /// Their name.
        name: String,
    },
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::NotOwned { sks, kind, name } => write!(f, "SKS: {sks} does not own {kind}: {name}"),
            Fault::NoEndpoints { whose, name } => {
                write!(f, "failed to get {whose} endpoints: endpoints {name:?} not found")
            }
        }
    }
}

/// What comes of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The next status; to be written if it is not the one before.
    pub status: SksStatus,
    /// What is to be written besides, in order.
    pub writes: Vec<Write>,
    /// Why it ended early.
    pub fault: Option<Fault>,
}

/// Looks at one object once.
pub fn reconcile(seen: &Seen<'_>, now: Moment) -> Outcome {
    let before = &seen.sks.status;
    let generation = seen.sks.meta.generation;
    let mut step = Step { seen, now, status: before.clone(), writes: Vec::new() };
    step.status.conditions.begin(before.observed_generation != generation, now);
    let fault = step.run().err();
    let Step { mut status, writes, .. } = step;
    status.conditions.settle(&before.conditions, now);
    status.observed_generation = generation;
    Outcome { status, writes, fault }
}

struct Step<'a> {
    seen: &'a Seen<'a>,
    now: Moment,
    status: SksStatus,
    writes: Vec<Write>,
}

impl Step<'_> {
    fn run(&mut self) -> Result<(), Fault> {
        self.private_service()?;
        self.public_service()?;
        self.public_endpoints()
    }

    fn name(&self) -> &str {
        &self.seen.sks.meta.name
    }

    fn private_service(&mut self) -> Result<(), Fault> {
        let name = private_service(self.name());
        let wanted = ServiceSpec::private(self.seen.selector, self.seen.sks.spec.protocol);
        match self.seen.private_service {
            None => {
                self.not_ready("CreatingPrivateService");
                self.writes.push(Write::CreateService(name.clone(), wanted));
            }
            Some(existing) if !existing.owned => return Err(self.not_owned(SERVICE, &name)),
            Some(existing) if existing.is != wanted => {
                self.not_ready("UpdatingPrivateService");
                self.writes.push(Write::UpdateService(name.clone(), wanted));
            }
            Some(_) => {}
        }
        self.status.private_service_name = name;
        Ok(())
    }

    fn public_service(&mut self) -> Result<(), Fault> {
        let name = self.name().to_owned();
        let wanted = ServiceSpec::public(self.seen.sks.spec.protocol);
        match self.seen.public_service {
            None => {
                self.not_ready("CreatingPublicService");
                self.writes.push(Write::CreateService(name.clone(), wanted));
            }
            Some(existing) if !existing.owned => return Err(self.not_owned(SERVICE, &name)),
            Some(existing) if existing.is != wanted => self.writes.push(Write::UpdateService(name.clone(), wanted)),
            Some(_) => {}
        }
        self.status.service_name = name;
        Ok(())
    }

    fn public_endpoints(&mut self) -> Result<(), Fault> {
        let missing = |whose, name: &str| Fault::NoEndpoints { whose, name: name.to_owned() };
        let activators = self.seen.activator_endpoints.ok_or_else(|| missing("activator service", ACTIVATORS))?;
        let pods = self.seen.private_endpoints;
        let pods = pods.ok_or_else(|| missing("private K8s Service", &self.status.private_service_name))?;

        let (name, spec) = (self.name().to_owned(), &self.seen.sks.spec);
        let ready_pods = ready_addresses(pods);
        let source = endpoints::source(spec.path, ready_pods, ready_addresses(activators));
        let wanted = endpoints::public(&name, spec, source, pods, activators);
        match self.seen.public_endpoints {
            None => {
                self.not_ready("CreatingPublicEndpoints");
                self.writes.push(Write::CreateEndpoints(name, wanted));
            }
            Some(existing) if !existing.owned => return Err(self.not_owned(ENDPOINTS, &name)),
            Some(existing) if existing.is != wanted => self.writes.push(Write::UpdateEndpoints(name, wanted)),
            Some(_) => {}
        }
        if ready_pods > 0 {
            self.status.conditions.mark_true(ENDPOINTS_POPULATED, self.now);
        } else {
            self.not_ready("NoHealthyBackends");
        }
        let through_activators = ready_pods == 0 || spec.path == Path::Activator;
        self.told_of_activators(through_activators);
        Ok(())
    }

    /// The words are the same whether it holds or not.
    fn told_of_activators(&mut self, through: bool) {
        let message = "Revision is backed by Activator";
        let kind = ACTIVATOR_ENDPOINTS_POPULATED;
        self.status.conditions.tell(kind, through, ACTIVATOR_ENDPOINTS_POPULATED, message, self.now);
    }

    fn not_ready(&mut self, reason: &str) {
        let message = "K8s Service is not ready";
        self.status.conditions.mark_unknown(ENDPOINTS_POPULATED, reason, message, self.now);
    }

    fn not_owned(&mut self, kind: Kind, name: &str) -> Fault {
        let message = format!("Resource {name} of type {} is not owned by SKS", kind.name);
        self.status.conditions.mark_false(ENDPOINTS_POPULATED, "NotOwned", &message, self.now);
        Fault::NotOwned { sks: self.name().to_owned(), kind: kind.name, name: name.to_owned() }
    }
}

impl Write {
    /// What is to be sent: an object to make, or a merge patch.
    pub fn body(&self, sks: &ServerlessService) -> Value {
        let object = |kind, name: &str, body, value| {
            let private = name != sks.meta.name;
            let labels = [
                ("networking.internal.knative.dev/serverlessservice", sks.meta.name.as_str()),
                ("networking.internal.knative.dev/serviceType", if private { "Private" } else { "Public" }),
            ];
            let owner_kind = SERVERLESS_SERVICE;
            Child { kind, name, owner_kind, owner: &sks.meta, labels: &labels, without: None }.json(body, value)
        };
        match self {
            Write::CreateService(name, spec) => object(SERVICE, name, "spec", spec.json()),
            Write::UpdateService(_, spec) => serde_json::json!({ "spec": spec.json() }),
            Write::CreateEndpoints(name, subsets) => object(ENDPOINTS, name, "subsets", subsets_json(subsets)),
            Write::UpdateEndpoints(_, subsets) => serde_json::json!({ "subsets": subsets_json(subsets) }),
        }
    }
}
