//! Who a component is, and whom its requests are for, as telemetry says it.

use crate::component::Component;
use crate::metrics::Attribute;
use policy::compat::Compat;
use std::sync::Arc;

/// Of a sidecar: the names that stand in every metric, span and log line. Of
/// an activator: its own namespace and pod; those of a revision go with each
/// request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// `SERVING_NAMESPACE`.
    pub namespace: Arc<str>,
    /// `SERVING_SERVICE`; may be empty.
    pub service: Arc<str>,
    /// `SERVING_CONFIGURATION`.
    pub configuration: Arc<str>,
    /// `SERVING_REVISION`.
    pub revision: Arc<str>,
    /// `SERVING_POD`.
    pub pod: Arc<str>,
    /// `SERVING_POD_IP`.
    pub pod_ip: Arc<str>,
}

impl Identity {
    /// The revision's names, as series and spans of its requests have them; sorted.
    pub fn attributes(&self) -> Vec<(&'static str, Attribute)> {
        let text = |text: &Arc<str>| Attribute::Text(text.to_string());
        vec![
            ("k8s.namespace.name", text(&self.namespace)),
            ("kn.configuration.name", text(&self.configuration)),
            ("kn.revision.name", text(&self.revision)),
            ("kn.service.name", text(&self.service)),
        ]
    }
}

/// What the process's environment adds to an [`Identity`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resource {
    /// `OTEL_SERVICE_NAME`.
    pub service_name: Option<String>,
    /// `POD_NAME`, else `HOSTNAME`.
    pub pod_name: Option<String>,
    /// `OTEL_RESOURCE_ATTRIBUTES`; they win over ours.
    pub attributes: Vec<(String, String)>,
}

impl Resource {
    /// The resource's attributes by their dotted names, sorted.
    pub fn resolve(&self, component: Component, who: &Identity, compat: Compat) -> Vec<(String, String)> {
        let pod = match (&self.pod_name, compat) {
            (Some(pod), _) => pod.as_str(),
            // Neither variable is set by the controller, so the reference
            // leaves it empty although it knows the pod's name.
            (None, Compat::Strict) => "",
            (None, Compat::Better) => &who.pod,
        };
        let names = [&*who.service, &who.configuration, &who.revision, pod];
        let (service, served) = match component {
            Component::Sidecar => (
                names.into_iter().find(|name| !name.is_empty()).unwrap_or(""),
                &[
                    ("container.name", component.name()),
                    ("kn.configuration.name", &who.configuration),
                    ("kn.revision.name", &who.revision),
                    ("kn.service.name", &who.service),
                ][..],
            ),
            Component::Activator => (component.name(), &[][..]),
        };
        let ours = [
            ("k8s.namespace.name", &*who.namespace),
            ("k8s.pod.name", pod),
            ("service.instance.id", pod),
            ("service.name", self.service_name.as_deref().unwrap_or(service)),
            ("service.version", env!("CARGO_PKG_VERSION")),
            ("telemetry.sdk.language", "rust"),
            ("telemetry.sdk.name", "zeroscale"),
            ("telemetry.sdk.version", env!("CARGO_PKG_VERSION")),
        ];
        let mut all: Vec<(String, String)> = self.attributes.clone();
        for &(name, value) in ours.iter().chain(served) {
            if !all.iter().any(|(known, _)| known == name) {
                all.push((name.to_owned(), value.to_owned()));
            }
        }
        all.sort();
        all.dedup_by(|later, first| later.0 == first.0);
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn who() -> Identity {
        let text = |text: &str| text.into();
        Identity {
            namespace: text("ns1"),
            service: text("svc1"),
            configuration: text("cfg1"),
            revision: text("rev1"),
            pod: text("pod-1"),
            pod_ip: text("10.0.0.7"),
        }
    }

    fn value(all: &[(String, String)], name: &str) -> String {
        all.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone()).unwrap()
    }

    #[test]
    fn the_pods_name_is_known_without_further_variables_but_in_strict_mode() {
        let strict = Resource::default().resolve(Component::Sidecar, &who(), Compat::Strict);
        assert_eq!(value(&strict, "k8s.pod.name"), "");
        assert_eq!(value(&strict, "service.instance.id"), "");
        let better = Resource::default().resolve(Component::Sidecar, &who(), Compat::Better);
        assert_eq!(value(&better, "k8s.pod.name"), "pod-1");
    }

    #[test]
    fn the_service_is_named_by_the_first_name_there_is() {
        let named = |resource: Resource, who: Identity| {
            value(&resource.resolve(Component::Sidecar, &who, Compat::Strict), "service.name")
        };
        assert_eq!(named(Resource::default(), who()), "svc1");
        assert_eq!(named(Resource::default(), Identity { service: "".into(), ..who() }), "cfg1");
        let told = Resource { service_name: Some("other".to_owned()), ..Resource::default() };
        assert_eq!(named(told, who()), "other");
    }

    #[test]
    fn attributes_of_the_environment_win() {
        let attributes = vec![("team".to_owned(), "a".to_owned()), ("kn.service.name".to_owned(), "x".to_owned())];
        let all = Resource { attributes, ..Resource::default() }.resolve(Component::Sidecar, &who(), Compat::Better);
        assert_eq!(value(&all, "team"), "a");
        assert_eq!(value(&all, "kn.service.name"), "x");
    }

    #[test]
    fn an_activator_is_named_as_such_and_has_no_revision() {
        let all = Resource::default().resolve(Component::Activator, &who(), Compat::Better);
        assert_eq!(value(&all, "service.name"), "activator");
        assert!(all.iter().all(|(name, _)| !name.starts_with("kn.")));
    }
}
