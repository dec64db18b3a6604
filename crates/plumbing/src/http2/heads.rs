//! Heads as they go out by HTTP/2: without what belongs to a connection, and
//! with what the message's length and time are.

use crate::h1;
use http::header::{CONNECTION, CONTENT_LENGTH, DATE, TE, TRANSFER_ENCODING, UPGRADE};
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use http_body::Body;
use std::cell::RefCell;

const KEEP_ALIVE: HeaderName = HeaderName::from_static("keep-alive");
const PROXY_CONNECTION: HeaderName = HeaderName::from_static("proxy-connection");
const OF_CONNECTIONS: [HeaderName; 5] = [CONNECTION, KEEP_ALIVE, PROXY_CONNECTION, TRANSFER_ENCODING, UPGRADE];

/// A request's head on its way to a server.
pub(crate) fn for_server(method: &Method, fields: &mut HeaderMap, body: &impl Body) {
    strip(fields, true);
    if let Some(length) = body.size_hint().exact()
        && (length > 0 || !matches!(*method, Method::GET | Method::HEAD | Method::DELETE | Method::CONNECT))
    {
        say_length(fields, length);
    }
}

/// An answer's head on its way to a client.
pub(super) fn for_client(fields: &mut HeaderMap, body: &impl Body) {
    strip(fields, false);
    if !fields.contains_key(DATE) {
        fields.insert(DATE, date());
    }
    if !body.is_end_stream()
        && let Some(length) = body.size_hint().exact()
    {
        say_length(fields, length);
    }
}

fn say_length(fields: &mut HeaderMap, length: u64) {
    if !fields.contains_key(CONTENT_LENGTH) {
        fields.insert(CONTENT_LENGTH, HeaderValue::from(length));
    }
}

/// Most heads have none of them, and one look at each field says so.
fn strip(fields: &mut HeaderMap, to_server: bool) {
    let wrong = |name: &HeaderName| match name.as_str() {
        "connection" | "keep-alive" | "proxy-connection" | "transfer-encoding" | "upgrade" => true,
        "te" => !to_server || fields.get(TE).is_some_and(|te| te != "trailers"),
        _ => false,
    };
    if !fields.keys().any(wrong) {
        return;
    }
    let named: Vec<HeaderName> = match fields.get(CONNECTION).and_then(|line| line.to_str().ok()) {
        Some(line) => line.split(',').filter_map(|name| name.trim().parse().ok()).collect(),
        None => Vec::new(),
    };
    named.iter().chain(&OF_CONNECTIONS).for_each(|name| {
        fields.remove(name);
    });
    if !to_server || fields.get(TE).is_some_and(|te| te != "trailers") {
        fields.remove(TE);
    }
}

thread_local! {
    static LAST: RefCell<Option<([u8; 29], HeaderValue)>> = const { RefCell::new(None) };
}

/// The current date, made once a second on each thread.
fn date() -> HeaderValue {
    let now = h1::date();
    LAST.with_borrow_mut(|last| match last {
        Some((at, value)) if *at == now => value.clone(),
        _ => {
            let value = HeaderValue::from_bytes(&now).unwrap_or(HeaderValue::from_static(""));
            *last = Some((now, value.clone()));
            value
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::body::Body as OurBody;

    fn fields(lines: &[(&'static str, &'static str)]) -> HeaderMap {
        let line = |(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value));
        lines.iter().copied().map(line).collect()
    }

    #[test]
    fn what_belongs_to_a_connection_goes() {
        let wrong = [
            ("connection", "close, x-once"),
            ("x-once", "1"),
            ("keep-alive", "5"),
            ("proxy-connection", "close"),
            ("transfer-encoding", "chunked"),
            ("upgrade", "h2c"),
        ];
        for one in wrong {
            let mut head = fields(&[wrong[0], wrong[1], one, ("accept", "*/*"), ("te", "trailers")]);
            for_server(&Method::GET, &mut head, &OurBody::empty());
            assert_eq!(head, fields(&[("accept", "*/*"), ("te", "trailers")]));
        }
        let mut head = fields(&[("te", "gzip")]);
        for_server(&Method::GET, &mut head, &OurBody::empty());
        assert!(head.is_empty());
        let mut head = fields(&[("te", "trailers"), ("date", "then")]);
        for_client(&mut head, &OurBody::empty());
        assert_eq!(head, fields(&[("date", "then")]));
    }

    #[test]
    fn lengths_that_are_known_are_said_and_answers_have_a_date() {
        let of = |method: Method, body: OurBody| {
            let mut head = HeaderMap::new();
            for_server(&method, &mut head, &body);
            head.remove(CONTENT_LENGTH)
        };
        let five = || OurBody::full(bytes::Bytes::from_static(b"hello"));
        assert_eq!(of(Method::POST, five()).unwrap(), "5");
        assert_eq!(of(Method::GET, five()).unwrap(), "5");
        assert_eq!(of(Method::POST, OurBody::empty()).unwrap(), "0");
        assert_eq!(of(Method::GET, OurBody::empty()), None);
        let mut head = fields(&[("content-length", "5")]);
        for_client(&mut head, &five());
        assert_eq!((head.len(), &head[CONTENT_LENGTH]), (2, &HeaderValue::from_static("5")));
        assert!(head[DATE].to_str().unwrap().ends_with(" GMT"));
    }
}
