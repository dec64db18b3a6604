//! What the user metrics port answers.

use super::{Metrics, text};
use bytes::Bytes;
use http::header::{ALLOW, CONTENT_LENGTH, CONTENT_TYPE, HeaderName, HeaderValue};
use http::{Method, Response, StatusCode};

const PATH: &str = "/metrics";

const TEXT_FORM: HeaderValue =
    HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8; escaping=underscores");

const PLAIN: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");

const CONTENT_TYPE_OPTIONS: HeaderName = HeaderName::from_static("x-content-type-options");

/// Answers a request. The answer to HEAD has its length and no body.
pub fn answer(metrics: &Metrics, method: &Method, path: &str) -> Response<Bytes> {
    if path != PATH {
        return refuse(StatusCode::NOT_FOUND, "404 page not found\n");
    }
    if method != Method::GET && method != Method::HEAD {
        let mut response = refuse(StatusCode::METHOD_NOT_ALLOWED, "Method Not Allowed\n");
        response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        return response;
    }
    let page = text::page(metrics);
    let length = HeaderValue::from(page.len());
    let body = if method == Method::HEAD { Bytes::new() } else { Bytes::from(page) };
    let mut response = Response::new(body);
    response.headers_mut().insert(CONTENT_TYPE, TEXT_FORM);
    response.headers_mut().insert(CONTENT_LENGTH, length);
    response
}

fn refuse(status: StatusCode, text: &'static str) -> Response<Bytes> {
    let mut response = Response::new(Bytes::from_static(text.as_bytes()));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, PLAIN);
    response.headers_mut().insert(CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}
