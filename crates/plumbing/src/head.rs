//! The small request head that chains decide on: what a request is, without
//! the HTTP library's types in the decisions.

use crate::headers;
use crate::marks::Marks;
use http::header::{self, HeaderMap, HeaderValue};
use http::{Method, request};

/// What a chain needs to know of a request before it forwards it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// A probe, if it is one.
    pub probe: Option<Probe>,
    /// True for what the reference's sidecar takes for a probe of the kubelet.
    pub kubelet_probe: bool,
    /// True when it came through an activator.
    pub proxied: bool,
    /// The nonce of an offer: serve at once, or hand back.
    pub offer: Option<HeaderValue>,
    /// True when the client asks for another protocol (websocket, say).
    pub upgrade: bool,
    /// Lower-case host without port; empty without one, and at a sidecar, where
    /// nobody asks for it.
    pub host: String,
    /// True when sending it twice does no harm: a safe or idempotent method.
    pub idempotent: bool,
}

/// The kinds of probe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Probe {
    /// Is the pod ready? (`K-Network-Probe: queue` from a prober's user agent)
    Readiness,
    /// Is the path programmed? (`K-Network-Probe: probe`; the hash is echoed)
    Ingress {
        /// What to echo; empty is a fault of the prober.
        hash: Option<HeaderValue>,
    },
    /// Are you the activator? (`K-Network-Probe: activator`)
    Activator,
    /// A prober with a value that nobody knows.
    Unexpected {
        /// The value.
        value: String,
    },
}

const KUBELET_AGENT: &[u8] = b"kube-probe/";
const PROBER_AGENTS: [&[u8]; 3] = [KUBELET_AGENT, b"Knative-Activator-Probe", b"Knative-Autoscaling-Probe"];

impl Head {
    /// Reads a head as a sidecar sees it. `by_agent`: probers are known by their
    /// user agent alone, so that one without the header is told what is missing.
    pub fn at_sidecar(parts: &request::Parts, by_agent: bool) -> Head {
        let marks = Marks::of(&parts.headers);
        let looks_so = marks.have(Marks::PROBE) || (by_agent && marks.have(Marks::AGENT));
        let probe = if looks_so { probe_at_sidecar(&parts.headers, by_agent) } else { None };
        Head { probe, ..Head::marked(parts, marks) }
    }

    /// Reads a head. Headers of untrusted peers must have been removed before
    /// ([`headers::receive`]).
    pub fn read(parts: &request::Parts) -> Head {
        Head { host: host(parts), ..Head::marked(parts, Marks::of(&parts.headers)) }
    }

    /// All but the host.
    fn marked(parts: &request::Parts, marks: Marks) -> Head {
        let fields = &parts.headers;
        let internal = marks.have(Marks::INTERNAL);
        let asks = |mark| marks.have(mark);
        Head {
            probe: if asks(Marks::PROBE) { probe(fields) } else { None },
            kubelet_probe: asks(Marks::PROBE.or(Marks::AGENT)) && is_kubelet_probe(fields),
            proxied: internal && fields.get(headers::PROXY_REQUEST).is_some_and(|value| value == "activator"),
            offer: if internal { fields.get(headers::OFFER).cloned() } else { None },
            upgrade: parts.method == Method::CONNECT
                || (asks(Marks::CONNECTION) && headers::upgrade_protocol(fields).is_some()),
            host: String::new(),
            idempotent: parts.method.is_idempotent(),
        }
    }
}

/// True for the kubelet's user agent, and for whatever is marked as its.
fn is_kubelet_probe(fields: &HeaderMap) -> bool {
    agent(fields).starts_with(KUBELET_AGENT) || fields.get(headers::KUBELET_PROBE).is_some_and(|mark| !mark.is_empty())
}

fn agent(fields: &HeaderMap) -> &[u8] {
    fields.get(header::USER_AGENT).map_or(&b""[..], HeaderValue::as_bytes)
}

fn is_prober(fields: &HeaderMap) -> bool {
    let agent = agent(fields);
    PROBER_AGENTS.iter().any(|name| agent.starts_with(name))
}

/// What a sidecar answers itself. The user agent is looked at first: a prober
/// that does not say the right word is told so, everybody else is served.
fn probe_at_sidecar(fields: &HeaderMap, by_agent: bool) -> Option<Probe> {
    let kind = fields.get(headers::NETWORK_PROBE).map(HeaderValue::as_bytes);
    if is_prober(fields) && (by_agent || kind.is_some()) {
        let kind = kind.unwrap_or_default();
        return Some(match kind {
            b"queue" => Probe::Readiness,
            other => Probe::Unexpected { value: String::from_utf8_lossy(other).into_owned() },
        });
    }
    let ingress = kind == Some(b"probe");
    ingress.then(|| Probe::Ingress { hash: fields.get(headers::NETWORK_HASH).cloned() })
}

fn probe(fields: &HeaderMap) -> Option<Probe> {
    // Without the header it is no probe of ours: on the public listener it has
    // been removed, so a client cannot pose as a prober by its user agent.
    let kind = fields.get(headers::NETWORK_PROBE)?;
    match (kind.as_bytes(), is_prober(fields)) {
        (b"queue", true) => Some(Probe::Readiness),
        (b"probe", _) => Some(Probe::Ingress { hash: fields.get(headers::NETWORK_HASH).cloned() }),
        (b"activator", _) => Some(Probe::Activator),
        (other, true) => Some(Probe::Unexpected { value: String::from_utf8_lossy(other).into_owned() }),
        (_, false) => None,
    }
}

fn host(parts: &request::Parts) -> String {
    let authority = parts.uri.authority().map(|authority| authority.as_str());
    let field = parts.headers.get(header::HOST).and_then(|value| value.to_str().ok());
    without_port(authority.or(field).unwrap_or("")).to_ascii_lowercase()
}

fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        // The colons of an IPv6 address stand in brackets.
        Some((name, port)) if !port.ends_with(']') => name,
        _ => host,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::Request;

    fn head(lines: &[(&str, &str)]) -> Head {
        let request = lines.iter().fold(Request::get("/x"), |request, (name, value)| request.header(*name, *value));
        Head::read(&request.body(()).unwrap().into_parts().0)
    }

    #[test]
    fn only_a_prober_with_the_header_is_a_readiness_probe() {
        let agent = ("user-agent", "Knative-Activator-Probe");
        assert_eq!(head(&[agent, ("k-network-probe", "queue")]).probe, Some(Probe::Readiness));
        assert_eq!(head(&[agent]).probe, None);
        assert_eq!(head(&[("k-network-probe", "queue")]).probe, None);
        let odd = head(&[agent, ("k-network-probe", "x")]).probe;
        assert_eq!(odd, Some(Probe::Unexpected { value: "x".into() }));
    }

    #[test]
    fn a_sidecar_knows_probers_by_their_user_agent_first() {
        let at_sidecar = |lines: &[(&str, &str)], by_agent: bool| {
            let request = lines.iter().fold(Request::get("/x"), |request, (name, value)| request.header(*name, *value));
            Head::at_sidecar(&request.body(()).unwrap().into_parts().0, by_agent).probe
        };
        let kubelet = ("user-agent", "kube-probe/1.30");
        let unexpected = |value: &str| Some(Probe::Unexpected { value: value.into() });
        assert_eq!(at_sidecar(&[kubelet, ("k-network-probe", "queue")], true), Some(Probe::Readiness));
        assert_eq!(at_sidecar(&[kubelet], true), unexpected(""));
        assert_eq!(at_sidecar(&[kubelet, ("k-network-probe", "probe")], true), unexpected("probe"));
        assert_eq!(at_sidecar(&[kubelet, ("k-network-probe", "Queue")], true), unexpected("Queue"));
        // Behind a front, the user agent alone says nothing.
        assert_eq!(at_sidecar(&[kubelet], false), None);
        for (agent, kind) in [("Kube-Probe/1", "queue"), ("curl/8", "queue"), ("curl/8", "activator"), ("a", "Probe")] {
            assert_eq!(at_sidecar(&[("user-agent", agent), ("k-network-probe", kind)], true), None);
        }
        let ingress = Some(Probe::Ingress { hash: Some(HeaderValue::from_static("h")) });
        assert_eq!(at_sidecar(&[("k-network-probe", "probe"), ("k-network-hash", "h")], true), ingress);
    }

    #[test]
    fn the_kubelets_mark_is_its_user_agent_or_its_header() {
        assert!(head(&[("user-agent", "kube-probe/1")]).kubelet_probe);
        assert!(head(&[("k-kubelet-probe", "x")]).kubelet_probe);
        assert!(!head(&[("k-kubelet-probe", ""), ("user-agent", "Knative-Activator-Probe")]).kubelet_probe);
    }

    #[test]
    fn the_host_is_compared_without_case_and_port() {
        for (given, host) in
            [("Shop.Example:8080", "shop.example"), ("[::1]:80", "[::1]"), ("[::1]", "[::1]"), ("a", "a")]
        {
            assert_eq!(head(&[("host", given)]).host, host);
        }
    }
}
