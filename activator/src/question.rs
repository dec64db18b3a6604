//! The question whether a pod is ready, as the reference's activator asks it,
//! and what its answer means.

use crate::passthrough;
use crate::revision::Revision;
use bytes::Bytes;
use http::header::{HOST, HeaderValue, USER_AGENT};
use http::{HeaderMap, Request};
use hyper::body::Body as _;
use plumbing::body::Body;
use plumbing::forward::{Received, Trip};
use plumbing::headers;
use plumbing::worker::Worker;
use policy::probing::Answer;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::pin::Pin;
use std::time::Duration;

/// Of an answer's body nothing beyond this is read: it is a word, or a mesh's
/// line of excuse.
const BODY_MAX: usize = 1024;

/// An answer, and the headers that came with it.
pub(crate) struct Heard {
    pub(crate) answer: Answer,
    pub(crate) fields: HeaderMap,
}

impl Heard {
    /// No answer.
    pub(crate) fn nothing() -> Heard {
        Heard { answer: Answer::Failed, fields: HeaderMap::new() }
    }
}

/// The question, to be sent to `address`.
pub(crate) fn of(revision: &Revision, address: SocketAddr) -> Request<Body> {
    let mut request = Request::new(Body::empty());
    *request.uri_mut() = http::Uri::from_static("/healthz");
    let fields = request.headers_mut();
    if let Ok(host) = HeaderValue::from_str(&address.to_string()) {
        fields.insert(HOST, host);
    }
    fields.insert(USER_AGENT, HeaderValue::from_static("Knative-Activator-Probe"));
    fields.insert(headers::NETWORK_PROBE, HeaderValue::from_static("queue"));
    if !revision.is_passed_through() {
        return request;
    }
    let (mut parts, body) = request.into_parts();
    passthrough::mark(&mut parts, &revision.id);
    Request::from_parts(parts, body)
}

/// Asks once; the answer may take so long.
pub(crate) async fn ask(revision: &Revision, address: SocketAddr, longest: Duration, worker: &Worker) -> Heard {
    let asked = async {
        let trip = Trip { repeatable: true, ..Trip::default() };
        let sent = worker.pool().send(address, of(revision, address), trip).await;
        let (parts, body) = sent.ok()?.into_parts();
        let body = read(body).await?;
        let answer = Answer::new(parts.status.as_u16(), &body, parts.headers.contains_key(headers::PROXY));
        Some(Heard { answer, fields: parts.headers })
    };
    let heard = tokio::select! {
        heard = asked => heard,
        () = worker.wheel().sleep(longest) => None,
    };
    heard.unwrap_or_else(Heard::nothing)
}

/// The beginning of a body. One that was read whole leaves its connection for
/// the first request.
async fn read(mut body: Received) -> Option<Bytes> {
    let mut seen = Vec::new();
    while !body.is_end_stream() && seen.len() < BODY_MAX {
        match poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
            Some(Ok(frame)) => seen.extend_from_slice(frame.data_ref().map_or(&[][..], |data| data)),
            Some(Err(_)) => return None,
            None => break,
        }
    }
    if body.is_end_stream() {
        body.put_back();
    }
    Some(seen.into())
}
