//! What is kept of a request until its line is written.

use crate::facts::RequestFacts;
use crate::identity::Identity;
use http::{HeaderName, HeaderValue, Method};
use std::borrow::Cow;
use std::net::SocketAddr;

/// Which headers a template reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// These.
    Some(Vec<HeaderName>),
    /// Names are worked out when it runs.
    All,
}

impl Wanted {
    fn has(&self, name: &HeaderName) -> bool {
        match self {
            Wanted::All => true,
            Wanted::Some(names) => names.contains(name),
        }
    }
}

/// Headers that Go's server takes out of the map.
const TAKEN_OUT: [&str; 3] = ["host", "transfer-encoding", "trailer"];

/// A request as its line shows it. Parts of it share memory with the request.
pub(crate) struct Captured {
    pub(super) method: Method,
    pub(super) target: String,
    pub(super) host: String,
    pub(super) protocol: &'static str,
    pub(super) peer: SocketAddr,
    pub(super) content_length: i64,
    pub(super) headers: Vec<(HeaderName, HeaderValue)>,
    /// The trace's id, where it is not to be read from the headers.
    pub(super) trace: Option<String>,
}

/// All that a line is made of.
pub(crate) struct Entry<'a> {
    pub(crate) request: &'a Captured,
    pub(crate) code: u16,
    pub(crate) size: u64,
    pub(crate) seconds: f64,
    pub(crate) who: &'a Identity,
}

impl Captured {
    pub(crate) fn of(facts: &RequestFacts<'_>, wanted: &Wanted) -> Captured {
        let parts = facts.parts;
        let kept = parts.headers.iter().filter(|(name, _)| !TAKEN_OUT.contains(&name.as_str()) && wanted.has(name));
        Captured {
            method: parts.method.clone(),
            target: facts.target().into_owned(),
            host: facts.host().to_owned(),
            protocol: facts.protocol(),
            peer: facts.peer(),
            content_length: facts.body_length.map_or(-1, |length| i64::try_from(length).unwrap_or(i64::MAX)),
            headers: kept.map(|(name, value)| (name.clone(), value.clone())).collect(),
            trace: None,
        }
    }

    /// Keeps a header beside those that came, if it is wanted.
    pub(super) fn add(&mut self, wanted: &Wanted, name: &HeaderName, value: &HeaderValue) {
        if wanted.has(name) {
            self.headers.retain(|(known, _)| known != name);
            self.headers.push((name.clone(), value.clone()));
        }
    }

    /// Values of a header, in their order.
    pub(super) fn values<'a>(&'a self, name: &'a str) -> impl Iterator<Item = Cow<'a, str>> + 'a {
        let same = move |known: &HeaderName| known.as_str().eq_ignore_ascii_case(name);
        self.headers.iter().filter(move |(known, _)| same(known)).map(|(_, value)| text(value))
    }

    /// A header's first value, else empty.
    pub(super) fn first<'a>(&'a self, name: &'a str) -> Cow<'a, str> {
        self.values(name).next().unwrap_or_default()
    }

    /// The second part of `traceparent`, else B3's id, else empty.
    pub(super) fn trace_id(&self) -> Cow<'_, str> {
        if let Some(trace) = &self.trace {
            return Cow::Borrowed(trace);
        }
        match self.first("traceparent") {
            parent if parent.is_empty() => self.first("x-b3-traceid"),
            parent => Cow::Owned(parent.split('-').nth(1).unwrap_or("").to_owned()),
        }
    }
}

/// Bytes outside of UTF-8 are shown as such.
fn text(value: &HeaderValue) -> Cow<'_, str> {
    String::from_utf8_lossy(value.as_bytes())
}
