//! Which revision a request is for.
//!
//! In a cluster an ingress says so by two headers, or the host is the name of
//! the revision's service. Where neither leads to a revision, and always on a
//! machine of its own, the platform's routes decide by host.

use crate::Activator;
use crate::revision::Revision;
use http::HeaderName;
use http::request::Parts;
use plumbing::head::Head;
use plumbing::headers::{SERVING_NAMESPACE, SERVING_REVISION};
use plumbing::reason::Reason;
use plumbing::refuse::Refusal;
use plumbing::target;
use policy::compat::Compat;
use policy::revision::RevisionId;
use std::sync::Arc;

/// What a request says of its revision, whether there is one or not.
pub(crate) fn named(parts: &Parts, domain: &str) -> RevisionId {
    let field = |name: &HeaderName| parts.headers.get(name).map(|value| String::from_utf8_lossy(value.as_bytes()));
    let (name, namespace) =
        (field(&SERVING_REVISION).unwrap_or_default(), field(&SERVING_NAMESPACE).unwrap_or_default());
    if !name.is_empty() && !namespace.is_empty() {
        return RevisionId::new(&*namespace, &*name);
    }
    let host = target::host_of(parts);
    let by_host = host.as_ref().and_then(|host| of_service(host.to_str().ok()?, domain));
    by_host.unwrap_or_else(|| RevisionId::new(&*namespace, &*name))
}

/// `NAME.NAMESPACE.svc.DOMAIN`, all of it, with or without a port.
fn of_service(host: &str, domain: &str) -> Option<RevisionId> {
    let mut parts = host.splitn(4, '.');
    let (name, namespace, svc, rest) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    let rest = rest.split_once(':').map_or(rest, |(rest, _)| rest);
    (svc == "svc" && rest == domain).then(|| RevisionId::new(namespace, name))
}

/// The revision, or what the client is told.
pub(crate) fn find(
    activator: &Activator,
    head: &Head,
    named: Option<&RevisionId>,
) -> Result<Arc<Revision>, Box<Refusal>> {
    let table = &activator.shared.table;
    let Some(id) = named else {
        return table.lookup(head).ok_or_else(|| Box::new(Refusal::new(Reason::NoRoute)));
    };
    let by_route = || match activator.shared.config.compat {
        Compat::Better => table.lookup(head),
        Compat::Strict => None,
    };
    table.revision(&id.namespace, &id.name).or_else(by_route).ok_or_else(|| {
        let text = format!("Error getting active endpoint: revision.serving.knative.dev {:?} not found", &*id.name);
        Box::new(Refusal::because(Reason::NoRoute, text))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::Request;

    fn of(lines: &[(&str, &str)]) -> String {
        let request = lines.iter().fold(Request::get("/x"), |request, (name, value)| request.header(*name, *value));
        named(&request.body(()).unwrap().into_parts().0, "cluster.local").to_string()
    }

    #[test]
    fn both_headers_together_win_over_the_host() {
        let host = ("host", "other.ns.svc.cluster.local");
        let (revision, namespace) = (("knative-serving-revision", "rev"), ("knative-serving-namespace", "ns"));
        assert_eq!(of(&[host, revision, namespace]), "ns/rev");
        for one in [revision, namespace] {
            assert_eq!(of(&[host, one]), "ns/other");
        }
        assert_eq!(of(&[("host", "app.example"), revision]), "/rev");
        assert_eq!(of(&[("host", "app.example"), revision, ("knative-serving-namespace", "")]), "/rev");
        // The first of two counts, as in the reference.
        assert_eq!(of(&[revision, ("knative-serving-revision", "late"), namespace]), "ns/rev");
    }

    #[test]
    fn a_host_names_a_revision_only_in_full_and_in_this_cluster() {
        for host in ["rev.ns.svc.cluster.local", "rev.ns.svc.cluster.local:80"] {
            assert_eq!(of(&[("host", host)]), "ns/rev");
        }
        for host in ["rev.ns", "rev.ns.svc", "rev.ns.svc.cluster.example", "rev.ns.pod.cluster.local", "a.b.c.d.e", ""]
        {
            assert_eq!(of(&[("host", host)]), "/", "{host}");
        }
    }
}
