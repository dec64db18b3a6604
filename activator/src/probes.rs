//! What probes are answered: the kubelet's, an ingress's, an autoscaler's.
//! They are neither held nor counted, and a drain does not end them.

use crate::Activator;
use crate::health::Health;
use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderMap, HeaderValue, USER_AGENT, X_CONTENT_TYPE_OPTIONS};
use http::{Response, StatusCode};
use plumbing::body::Body;
use plumbing::conn::Caller;
use plumbing::reason::Reason;
use plumbing::refuse::Refusal;
use plumbing::{headers, probe};

/// A probe. The reference knows them in this order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Probe {
    /// The kubelet: should this process get requests, should it live?
    Health,
    /// An ingress: is the path programmed? The hash is echoed.
    Ingress(Option<HeaderValue>),
    /// An autoscaler: is the activator in the path?
    Activator,
    /// Nobody here answers this one.
    Unexpected(String),
}

impl Probe {
    /// Of these headers, of which those that the peer may not set have been
    /// removed. The kubelet is known in a cluster alone, and there as a peer
    /// that is trusted.
    pub(crate) fn of(fields: &HeaderMap, activator: &Activator, caller: &Caller) -> Option<Probe> {
        let config = &activator.shared.config;
        if config.cluster.is_some() && is_kubelet(fields) && config.trust.peers.contains(caller.ip()) {
            return Some(Probe::Health);
        }
        let kind = fields.get(headers::NETWORK_PROBE).filter(|kind| !kind.is_empty())?;
        Some(match kind.as_bytes() {
            b"probe" => Probe::Ingress(fields.get(headers::NETWORK_HASH).cloned()),
            b"activator" => Probe::Activator,
            other => Probe::Unexpected(String::from_utf8_lossy(other).into_owned()),
        })
    }

    pub(crate) fn answer(&self, health: &Health) -> Response<Body> {
        match self {
            Probe::Health => match health.fault() {
                None => Response::new(Body::empty()),
                Some(fault) => unhealthy(fault),
            },
            Probe::Ingress(hash) => probe::ingress(hash.as_ref()),
            Probe::Activator => {
                let mut response = Response::new(Body::full(Bytes::from_static(b"activator")));
                response.headers_mut().insert(CONTENT_TYPE, PLAIN);
                response
            }
            Probe::Unexpected(value) => {
                let text = format!("unexpected probe header value: {:?}", escaped(value));
                Refusal::because(Reason::Malformed, text).response()
            }
        }
    }
}

const PLAIN: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");

fn is_kubelet(fields: &HeaderMap) -> bool {
    let agent = fields.get(USER_AGENT).map_or(&b""[..], HeaderValue::as_bytes);
    agent.starts_with(b"kube-probe/") || fields.get(headers::KUBELET_PROBE).is_some_and(|mark| !mark.is_empty())
}

fn unhealthy(fault: &'static str) -> Response<Body> {
    let mut response = Response::new(Body::full(Bytes::from(format!("{fault}\n"))));
    *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
    let fields = response.headers_mut();
    fields.insert(CONTENT_TYPE, PLAIN);
    fields.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

/// As for a page of HTML, the reference's way to show what it was sent.
fn escaped(text: &str) -> String {
    text.chars().fold(String::new(), |mut out, char| {
        match char {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&#34;"),
            '\'' => out.push_str("&#39;"),
            other => out.push(other),
        }
        out
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_sent_is_shown_without_markup() {
        assert_eq!(escaped("<a href='x'>\"&"), "&lt;a href=&#39;x&#39;&gt;&#34;&amp;");
    }

    #[test]
    fn the_kubelet_is_known_by_its_agent_or_by_its_header() {
        let fields = |name: http::HeaderName, value: &'static str| -> HeaderMap {
            [(name, HeaderValue::from_static(value))].into_iter().collect()
        };
        assert!(is_kubelet(&fields(USER_AGENT, "kube-probe/1.30")));
        assert!(is_kubelet(&fields(headers::KUBELET_PROBE, "x")));
        assert!(!is_kubelet(&fields(headers::KUBELET_PROBE, "")));
        assert!(!is_kubelet(&fields(USER_AGENT, "Knative-Ingress-Probe")));
    }
}
