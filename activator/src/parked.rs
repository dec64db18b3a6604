//! A request that waits, made small: its head is one run of bytes of just its
//! length. A map of headers has three times that, and beside it keeps all that
//! was read of the head alive.

use crate::chain::Arrival;
use bytes::Bytes;
use http::header::{HeaderMap, HeaderName, HeaderValue};
use http::uri::PathAndQuery;
use http::{Extensions, Method, Request, Uri, Version, request};
use plumbing::h1::{Interim, OnUpgrade};
use plumbing::replay::Kept;

pub(crate) struct Parked {
    /// Path and query, unless `uri` is set; then the fields, name by name. Each
    /// piece has its length before it.
    bytes: Box<[u8]>,
    fields: u32,
    version: Version,
    idempotent: bool,
    method: Method,
    /// Where it is more than path and query.
    uri: Option<Box<Uri>>,
    extensions: Extensions,
    body: Option<Kept>,
    interim: Option<Interim>,
    switch: Option<OnUpgrade>,
}

/// Of a piece's length: it is not to be shown in logs. (Heads are bounded far
/// below this.)
const SENSITIVE: u32 = 1 << 31;
const LENGTH_BYTES: usize = size_of::<u32>();

impl Parked {
    pub(crate) fn new(arrival: Box<Arrival>) -> Box<Parked> {
        let Arrival { aim: _, idempotent, parts, body, interim, switch } = *arrival;
        let request::Parts { method, uri, version, headers, extensions, .. } = parts;
        let path = (uri.scheme().is_none() && uri.authority().is_none()).then(|| uri.path_and_query()).flatten();
        let mut length = path.map_or(0, |path| LENGTH_BYTES + path.as_str().len());
        for (name, value) in &headers {
            length += 2 * LENGTH_BYTES + name.as_str().len() + value.len();
        }
        let mut bytes = Vec::with_capacity(length);
        if let Some(path) = path {
            put(&mut bytes, path.as_str().as_bytes(), 0);
        }
        for (name, value) in &headers {
            put(&mut bytes, name.as_str().as_bytes(), 0);
            put(&mut bytes, value.as_bytes(), if value.is_sensitive() { SENSITIVE } else { 0 });
        }
        let uri = if path.is_some() { None } else { Some(Box::new(uri)) };
        let fields = headers.len() as u32;
        let bytes = bytes.into_boxed_slice();
        Box::new(Parked { bytes, fields, version, idempotent, method, uri, extensions, body, interim, switch })
    }

    /// The request as it was.
    pub(crate) fn resume(self) -> Box<Arrival> {
        let Parked { bytes, fields, version, idempotent, method, uri, extensions, body, interim, switch } = self;
        let mut pieces = Pieces(Bytes::from(bytes));
        let path = || Some(Uri::from(PathAndQuery::from_maybe_shared(pieces.next()?.0).ok()?));
        let uri = uri.map_or_else(path, |uri| Some(*uri)).unwrap_or_default();
        let mut headers = HeaderMap::with_capacity(fields as usize);
        while let Some((name, _)) = pieces.next()
            && let Some((value, mark)) = pieces.next()
        {
            // Both were names and values before.
            if let (Ok(name), Ok(mut value)) = (HeaderName::from_bytes(&name), HeaderValue::from_maybe_shared(value)) {
                value.set_sensitive(mark != 0);
                let _ = headers.try_append(name, value);
            }
        }
        let mut parts = Request::new(()).into_parts().0;
        (parts.method, parts.uri, parts.version) = (method, uri, version);
        (parts.headers, parts.extensions) = (headers, extensions);
        Box::new(Arrival { aim: None, idempotent, parts, body, interim, switch })
    }
}

fn put(bytes: &mut Vec<u8>, piece: &[u8], mark: u32) {
    bytes.extend_from_slice(&(piece.len() as u32 | mark).to_ne_bytes());
    bytes.extend_from_slice(piece);
}

struct Pieces(Bytes);

impl Iterator for Pieces {
    type Item = (Bytes, u32);

    fn next(&mut self) -> Option<(Bytes, u32)> {
        let length = u32::from_ne_bytes(*self.0.first_chunk()?);
        let mut piece = self.0.split_to(LENGTH_BYTES + (length & !SENSITIVE) as usize);
        Some((piece.split_off(LENGTH_BYTES), length & SENSITIVE))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrival(request: request::Builder) -> Box<Arrival> {
        let parts = request.body(()).unwrap().into_parts().0;
        Box::new(Arrival { aim: None, idempotent: true, parts, body: None, interim: None, switch: None })
    }

    #[test]
    fn a_request_is_after_its_wait_what_it_was_before() {
        let long = "v".repeat(70_000);
        let mut secret = HeaderValue::from_static("s");
        secret.set_sensitive(true);
        for uri in ["/", "/a/b?c=d&e", "*", "http://host:80/x?y", "/x?"] {
            let make = || {
                Request::builder()
                    .method("BREW")
                    .uri(uri)
                    .version(Version::HTTP_2)
                    .header("a", "1")
                    .header("x-own", "")
                    .header("a", HeaderValue::from_bytes(b"\xff 2").unwrap())
                    .header("host", "h")
                    .header("x-long", &long)
                    .header("authorization", secret.clone())
                    .extension(7_u8)
            };
            let (before, after) = (arrival(make()), Parked::new(arrival(make())).resume());
            let seen = |arrival: &Arrival| {
                let parts = &arrival.parts;
                let fields: Vec<_> =
                    parts.headers.iter().map(|(n, v)| (n.clone(), v.clone(), v.is_sensitive())).collect();
                let marked = parts.extensions.get::<u8>().copied();
                (parts.method.clone(), parts.uri.clone(), parts.version, fields, marked, arrival.idempotent)
            };
            assert_eq!(seen(&before), seen(&after), "{uri}");
        }
    }

    #[test]
    fn one_that_waits_is_hardly_longer_than_its_head() {
        let fields = [("host", "127.0.0.1:80"), ("user-agent", "agent"), ("accept", "*/*"), ("x-forwarded-for", "::1")];
        let request = fields.iter().fold(Request::get("/path"), |request, (name, value)| request.header(*name, *value));
        let head: usize = fields.iter().map(|(name, value)| name.len() + value.len()).sum();
        let parked = Parked::new(arrival(request));
        assert!(parked.bytes.len() < head + 64, "{} for {head}", parked.bytes.len());
        assert!(size_of::<Parked>() <= 128, "{}", size_of::<Parked>());
    }
}
