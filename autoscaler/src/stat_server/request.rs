//! What a request is answered.

use crate::forward::Owners;
use bytes::Bytes;
use http::header::{CONTENT_TYPE, HOST, HeaderMap, HeaderValue, SEC_WEBSOCKET_VERSION, USER_AGENT};
use http::{Request, Response, StatusCode};
use plumbing::body::Body;
use plumbing::websocket::accept::accept;

const KUBELET: &str = "kube-probe/";
const KUBELET_MARK: &str = "k-kubelet-probe";

pub(super) enum Answer {
    /// Its sender is the kubelet, which asks whether somebody is here; or
    /// means another replica, and tries again when it sees no switch.
    Empty,
    /// No websocket is asked for, or not rightly.
    Refused(StatusCode),
    /// From here on it is one.
    Switch(Response<()>),
}

/// The reference's order: whoever probes is answered, whatever the host.
pub(super) fn answer<B>(request: &Request<B>, owners: &Owners) -> Answer {
    let fields = request.headers();
    if is_of_kubelet(fields) {
        return Answer::Empty;
    }
    let host = fields.get(HOST).and_then(|host| host.to_str().ok());
    let host = host.or(request.uri().authority().map(|authority| authority.as_str())).unwrap_or_default();
    if owners.is_for_another(host) {
        return Answer::Empty;
    }
    match accept(request) {
        Ok(switch) => Answer::Switch(switch),
        Err(status) => Answer::Refused(status),
    }
}

fn is_of_kubelet(fields: &HeaderMap) -> bool {
    let agent = fields.get(USER_AGENT).is_some_and(|agent| agent.as_bytes().starts_with(KUBELET.as_bytes()));
    agent || fields.get(KUBELET_MARK).is_some_and(|mark| !mark.is_empty())
}

impl Answer {
    pub(super) fn into_response(self) -> Response<Body> {
        match self {
            Answer::Empty => Response::new(Body::empty()),
            Answer::Switch(response) => response.map(|()| Body::empty()),
            Answer::Refused(status) => {
                let words = status.canonical_reason().unwrap_or_default();
                let mut response = Response::new(Body::full(Bytes::from(format!("{words}\n"))));
                *response.status_mut() = status;
                let fields = response.headers_mut();
                fields.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
                fields.insert(SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13"));
                response
            }
        }
    }
}
