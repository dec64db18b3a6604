//! What probes are answered: kubelet's, the activator's, the ingress's.

use crate::sidecar::Sidecar;
use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{HeaderMap, Response, StatusCode};
use plumbing::body::Body;
use plumbing::conn::Caller;
use plumbing::head::Probe;
use plumbing::headers;
use plumbing::probe;
use plumbing::reason::Reason;
use plumbing::refuse::Refusal;
use policy::compat::Compat;
use std::time::Duration;

/// Longest that a question for a free slot is kept.
const SLOT_WAIT_MAX: Duration = Duration::from_secs(30);

/// Answers a probe; it is neither limited nor counted, and does not put the
/// end of a drain off.
pub(crate) async fn answer(sidecar: &Sidecar, caller: &Caller, asked: &Probe, fields: &HeaderMap) -> Response<Body> {
    if sidecar.drain.is_draining() {
        // Whoever asks is to send no more requests here.
        return Refusal::new(Reason::Draining).response();
    }
    match asked {
        Probe::Readiness => match slot_wait(sidecar, fields) {
            Some(longest) => free_slot(sidecar, caller, longest).await,
            None => readiness(sidecar, caller).await,
        },
        Probe::Ingress { hash } => probe::ingress(hash.as_ref()),
        Probe::Activator => unexpected("activator"),
        Probe::Unexpected { value } => unexpected(value),
    }
}

/// How long an activator that met this pod full will wait for a slot here.
fn slot_wait(sidecar: &Sidecar, fields: &HeaderMap) -> Option<Duration> {
    if sidecar.config.compat == Compat::Strict {
        return None;
    }
    let millis = fields.get(headers::AWAIT_SLOT)?.to_str().ok()?.parse().ok()?;
    Some(Duration::from_millis(millis).min(SLOT_WAIT_MAX))
}

/// Answers when a slot is free. So nobody has to ask again and again whether
/// one is; the app is not asked, since the next offer shows how it is.
async fn free_slot(sidecar: &Sidecar, caller: &Caller, longest: Duration) -> Response<Body> {
    if let Some(limiter) = &sidecar.limiter {
        tokio::select! {
            _ = limiter.some_free() => {}
            () = caller.worker.wheel().sleep(longest) => {}
            () = sidecar.closing.draining() => {}
        }
    }
    let mut response = Response::new(Body::full(Bytes::from_static(b"queue")));
    let told = response.headers_mut();
    told.insert(headers::PROXY, HeaderValue::from_static(env!("CARGO_PKG_VERSION")));
    told.insert(headers::FREE, HeaderValue::from(sidecar.free_slots()));
    response
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
    if sidecar.config.compat == Compat::Better {
        // By this an activator of ours knows that it may make offers.
        let version = HeaderValue::from_static(env!("CARGO_PKG_VERSION"));
        response.headers_mut().insert(headers::PROXY, version);
    }
    response
}

fn unexpected(value: &str) -> Response<Body> {
    Refusal::because(Reason::Malformed, format!("unexpected probe header value: {value}")).response()
}
