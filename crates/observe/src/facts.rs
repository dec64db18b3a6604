//! What telemetry looks at in a request, before the chain changes its head.

use http::header::{self, AsHeaderName, HeaderMap, HeaderName, HeaderValue};
use http::request;
use plumbing::headers::{KUBELET_PROBE, NETWORK_PROBE};
use plumbing::marks::Marks;
use policy::compat::Compat;
use std::borrow::Cow;
use std::net::SocketAddr;

const KUBELET_AGENT: &[u8] = b"kube-probe/";
const TAG: &str = "knative-serving-tag";
/// The tag of requests that name no route.
pub(super) const NO_ROUTE: &str = "kn:disabled";
const DEFAULT_ROUTE: &str = "knative-serving-default-route";

/// A request as it came in; borrowed, and only while it begins.
#[derive(Clone, Copy)]
pub struct RequestFacts<'a> {
    /// Its head, before targets and headers are rewritten for the app.
    pub parts: &'a request::Parts,
    /// The target as it stood in the request line, where the parts' URI could
    /// not hold it; else `None`.
    pub target: Option<&'a str>,
    /// Who is at the other end of the connection.
    pub peer: SocketAddr,
    /// True when its user agent can make it a probe: whoever sent it is believed.
    pub by_agent: bool,
    /// True over TLS.
    pub tls: bool,
    /// Length of the body if it is known; 0 without one.
    pub body_length: Option<u64>,
}

impl<'a> RequestFacts<'a> {
    /// True for whatever any of the probers may have sent: left out of
    /// metrics, traces and (unless asked for) the request log.
    ///
    /// Wider than the test for probes that the sidecar answers: a request with
    /// `K-Network-Probe: queue` from an ordinary client is served like others
    /// and yet is in no telemetry, as in the reference.
    /// Not so `K-Kubelet-Probe`, which hides from counts whoever sends it, and
    /// does so in strict mode alone.
    pub fn is_any_probe(&self, compat: Compat) -> bool {
        let fields = &self.parts.headers;
        let marks = Marks::of(fields);
        let may_be = marks.have(Marks::PROBE) || (self.by_agent && marks.have(Marks::AGENT));
        if !may_be {
            return false;
        }
        let filled = |name: HeaderName| fields.get(name).is_some_and(|value| !value.is_empty());
        let agent = fields.get(header::USER_AGENT).map_or(&b""[..], HeaderValue::as_bytes);
        let hidden = compat == Compat::Strict && filled(KUBELET_PROBE);
        hidden || (self.by_agent && agent.starts_with(KUBELET_AGENT)) || filled(NETWORK_PROBE)
    }

    /// The host that the client named, with its port if it named one.
    pub fn host(&self) -> &'a str {
        let authority = self.parts.uri.authority().map(http::uri::Authority::as_str);
        let field = || text(&self.parts.headers, header::HOST);
        authority.unwrap_or_else(field)
    }

    /// The label by which traffic to tagged routes is told apart.
    pub fn route_tag(&self) -> &'a str {
        let fields = &self.parts.headers;
        if !Marks::of(fields).have(Marks::ROUTE) {
            return NO_ROUTE;
        }
        let default = fields.get(DEFAULT_ROUTE).map_or(&b""[..], HeaderValue::as_bytes);
        match (text(fields, TAG), default) {
            ("", b"") => NO_ROUTE,
            ("", _) => "kn:default",
            (_, b"true") => "kn:undefined",
            (tag, _) => tag,
        }
    }

    /// The target as it stood in the request line; of HTTP/2 the path.
    pub fn target(&self) -> Cow<'a, str> {
        if let Some(target) = self.target {
            return Cow::Borrowed(target);
        }
        let uri = &self.parts.uri;
        match uri.path_and_query() {
            None => Cow::Borrowed(self.host()),
            Some(_) if uri.scheme().is_some() && self.parts.version < http::Version::HTTP_2 => {
                Cow::Owned(uri.to_string())
            }
            Some(path) => Cow::Borrowed(path.as_str()),
        }
    }

    /// The protocol as `HTTP/1.1`.
    pub fn protocol(&self) -> &'static str {
        match self.parts.version {
            http::Version::HTTP_10 => "HTTP/1.0",
            http::Version::HTTP_2 => "HTTP/2.0",
            _ => "HTTP/1.1",
        }
    }

    /// The peer's address, IPv4 where it is one.
    pub fn peer(&self) -> SocketAddr {
        SocketAddr::new(self.peer.ip().to_canonical(), self.peer.port())
    }
}

/// A header's first value; empty without one, or when it is not text.
pub(crate) fn text(fields: &HeaderMap, name: impl AsHeaderName) -> &str {
    fields.get(name).and_then(|value| value.to_str().ok()).unwrap_or("")
}

/// Splits `host:port`. Without a valid port the whole is the host; brackets
/// of IPv6 addresses fall.
pub(crate) fn split_host(host: &str) -> (&str, Option<u16>) {
    let bare = |host: &str| -> (usize, usize) {
        let inner = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
        if inner.is_some() { (1, host.len() - 1) } else { (0, host.len()) }
    };
    let (name, port) = match host.rsplit_once(':') {
        Some((name, port)) if !port.ends_with(']') && (!name.contains(':') || name.ends_with(']')) => {
            (name, port.parse().ok().filter(|port| *port > 0))
        }
        _ => (host, None),
    };
    let (from, to) = bare(name);
    (&name[from..to], port)
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::Request;

    fn parts(lines: &[(&str, &str)]) -> request::Parts {
        let request = lines.iter().fold(Request::get("/x"), |request, (name, value)| request.header(*name, *value));
        request.body(()).unwrap().into_parts().0
    }

    fn facts(parts: &request::Parts) -> RequestFacts<'_> {
        RequestFacts {
            parts,
            target: None,
            peer: "127.0.0.1:1".parse().unwrap(),
            by_agent: true,
            tls: false,
            body_length: Some(0),
        }
    }

    #[test]
    fn route_tags_follow_the_two_headers() {
        let tag = |lines: &[(&str, &str)]| facts(&parts(lines)).route_tag().to_owned();
        assert_eq!(tag(&[]), "kn:disabled");
        assert_eq!(tag(&[("knative-serving-default-route", "true")]), "kn:default");
        assert_eq!(tag(&[("knative-serving-tag", "blue")]), "blue");
        let both = [("knative-serving-tag", "blue"), ("knative-serving-default-route", "true")];
        assert_eq!(tag(&both), "kn:undefined");
        let other = [("knative-serving-tag", "blue"), ("knative-serving-default-route", "false")];
        assert_eq!(tag(&other), "blue");
    }

    #[test]
    fn any_of_three_headers_makes_a_probe() {
        let probe = |name: &str, value: &str| facts(&parts(&[(name, value)])).is_any_probe(Compat::Strict);
        assert!(probe("user-agent", "kube-probe/1.30"));
        assert!(probe("k-network-probe", "queue"));
        assert!(probe("k-kubelet-probe", "x"));
        assert!(!probe("k-kubelet-probe", ""));
        assert!(!probe("user-agent", "Knative-Activator-Probe"));
        let header = parts(&[("k-kubelet-probe", "x")]);
        assert!(!facts(&header).is_any_probe(Compat::Better), "nobody hides by a header");
        let agent = parts(&[("user-agent", "kube-probe/1")]);
        let stranger = RequestFacts { by_agent: false, ..facts(&agent) };
        assert!(facts(&agent).is_any_probe(Compat::Better) && !stranger.is_any_probe(Compat::Better));
    }

    #[test]
    fn a_host_is_split_from_its_port() {
        assert_eq!(split_host("app.example.com"), ("app.example.com", None));
        assert_eq!(split_host("app:8080"), ("app", Some(8080)));
        assert_eq!(split_host("[::1]:80"), ("::1", Some(80)));
        assert_eq!(split_host("[::1]"), ("::1", None));
        assert_eq!(split_host("::1"), ("::1", None));
        assert_eq!(split_host("app:x"), ("app", None));
        assert_eq!(split_host(""), ("", None));
        assert_eq!(split_host("]:["), ("]", None));
    }
}
