//! The port of the busy lease (`ZEROSCALE_LEASE_PORT`): for the app alone, on
//! loopback.

use crate::lease;
use crate::sidecar::Sidecar;
use bytes::Bytes;
use http::header::{ALLOW, CONTENT_TYPE, HeaderValue};
use http::{Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use plumbing::body::Body;
use plumbing::shutdown::Shutdown;
use plumbing::side;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;

const LEASE: &str = "/v1/lease";
const METHODS: HeaderValue = HeaderValue::from_static("GET, HEAD, POST");
const JSON: HeaderValue = HeaderValue::from_static("application/json");
const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");

/// The one parameter.
const FOR: &str = "for";

/// Serves until `shutdown` drains.
pub(crate) async fn serve(sidecar: Arc<Sidecar>, listener: TcpListener, shutdown: Shutdown) {
    side::serve(listener, shutdown, move |request| {
        let answer = answer(&sidecar, &request);
        async move { answer }
    })
    .await;
}

fn answer(sidecar: &Sidecar, request: &Request<Incoming>) -> Response<Body> {
    if request.uri().path() != LEASE {
        return side::not_found();
    }
    match *request.method() {
        Method::GET | Method::HEAD => {}
        Method::POST => match asked(request.uri().query().unwrap_or_default()) {
            Ok(span) => sidecar.lease(span),
            Err(fault) => return text(StatusCode::BAD_REQUEST, fault),
        },
        _ => {
            let mut refused = text(StatusCode::METHOD_NOT_ALLOWED, "POST sets the lease, GET shows what is left of it");
            refused.headers_mut().insert(ALLOW, METHODS);
            return refused;
        }
    }
    let left = format!("{{\"left_ms\":{}}}\n", sidecar.leased().as_millis());
    let mut response = Response::new(Body::full(Bytes::from(left)));
    response.headers_mut().insert(CONTENT_TYPE, JSON);
    response
}

/// For how long, as the query of a request says.
fn asked(query: &str) -> Result<Duration, String> {
    let mut found = None;
    for part in query.split('&').filter(|part| !part.is_empty()) {
        match part.split_once('=').unwrap_or((part, "")) {
            (FOR, value) if found.is_none() => found = Some(value),
            (FOR, _) => return Err(format!("{FOR}: stands twice")),
            (other, _) => return Err(format!("{other}: there is no such parameter; there is `{FOR}`")),
        }
    }
    let text = found.ok_or_else(|| format!("{FOR}: is missing, as in {LEASE}?{FOR}=10m"))?;
    lease::span(text).map_err(|fault| format!("{FOR}: {fault}"))
}

fn text(status: StatusCode, text: impl Into<String>) -> Response<Body> {
    let mut response = Response::new(Body::full(Bytes::from(text.into() + "\n")));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, TEXT);
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_is_told_by_the_name_of_the_parameter() {
        assert_eq!(asked("for=10m&"), Ok(Duration::from_secs(600)));
        for (query, told) in [
            ("", "for: is missing"),
            ("for", "for: `` is no duration"),
            ("for=2h", "for: `2h` is more than 1h0m0s"),
            ("for=1s&for=2s", "for: stands twice"),
            ("until=1s", "until: there is no such parameter"),
        ] {
            let fault = asked(query).unwrap_err();
            assert!(fault.starts_with(told), "{query}: {fault}");
        }
    }
}
