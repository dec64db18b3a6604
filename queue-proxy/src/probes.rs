//! What probes are answered: kubelet's, the activator's, the ingress's.

use crate::sidecar::Sidecar;
use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{Response, StatusCode};
use plumbing::body::Body;
use plumbing::conn::Caller;
use plumbing::head::Probe;
use plumbing::headers;
use plumbing::probe;
use plumbing::reason::Reason;
use plumbing::refuse::Refusal;
use policy::compat::Compat;

/// Answers a probe; it is neither limited nor counted, and does not put the
/// end of a drain off.
pub(crate) async fn answer(sidecar: &Sidecar, caller: &Caller, asked: &Probe) -> Response<Body> {
    if sidecar.drain.is_draining() {
        // Whoever asks is to send no more requests here.
        return Refusal::new(Reason::Draining).response();
    }
    match asked {
        Probe::Readiness => readiness(sidecar, caller).await,
        Probe::Ingress { hash } => signed(probe::ingress(hash.as_ref()), sidecar),
        Probe::Activator => unexpected("activator"),
        Probe::Unexpected { value } => unexpected(value),
    }
}

async fn readiness(sidecar: &Sidecar, caller: &Caller) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    if sidecar.prober.ask(&caller.worker, &sidecar.closing).await {
        *response.body_mut() = Body::full(Bytes::from_static(b"queue"));
        let plain = HeaderValue::from_static("text/plain; charset=utf-8");
        response.headers_mut().insert(CONTENT_TYPE, plain);
    } else {
        *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    }
    signed(response, sidecar)
}

/// By this an activator of ours knows that it may make offers.
fn signed(mut response: Response<Body>, sidecar: &Sidecar) -> Response<Body> {
    if sidecar.config.compat == Compat::Better {
        let version = HeaderValue::from_static(env!("CARGO_PKG_VERSION"));
        response.headers_mut().insert(headers::PROXY, version);
    }
    response
}

fn unexpected(value: &str) -> Response<Body> {
    Refusal::because(Reason::Malformed, format!("unexpected probe header value: {value}")).response()
}
