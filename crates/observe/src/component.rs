//! Which component tells: the names that differ between them.

use crate::metrics::Scope;

/// Who is observed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Component {
    /// In front of one app.
    Sidecar,
    /// In front of the pods of all revisions.
    Activator,
}

impl Component {
    /// Its name in resources and user agents.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Component::Sidecar => "queue-proxy",
            Component::Activator => "activator",
        }
    }

    /// The scope of its own instruments and spans.
    pub(crate) fn scope(self) -> Scope {
        match self {
            Component::Sidecar => Scope::Queue,
            Component::Activator => Scope::Activator,
        }
    }

    /// The field of `OBSERVABILITY_CONFIG` that says where its metrics go.
    pub(crate) fn metrics_field(self) -> &'static str {
        match self {
            Component::Sidecar => "requestMetrics",
            Component::Activator => "metrics",
        }
    }

    /// Where its metrics are served when nobody says.
    pub(crate) fn metrics_port(self) -> u16 {
        match self {
            Component::Sidecar => 9091,
            Component::Activator => 9090,
        }
    }

    /// The span of the time that a request waits for its place.
    pub(crate) fn wait_span(self) -> &'static str {
        match self {
            Component::Sidecar => "kn.queueproxy.wait",
            Component::Activator => "throttler_try",
        }
    }

    /// The span of the time that it is proxied; at a sidecar the wait is a part of it.
    pub(crate) fn proxy_span(self) -> &'static str {
        match self {
            Component::Sidecar => "kn.queueproxy.proxy",
            Component::Activator => "activator_proxy",
        }
    }
}
