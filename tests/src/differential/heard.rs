//! What came of one input at one side.

use http::header::{CONTENT_LENGTH, HOST, HeaderMap};
use http::{Method, Version, request};
use plumbing::target::AsItCame;
use std::fmt;

/// A connection from its beginning to its end.
#[derive(Debug, Default)]
pub(super) struct Heard {
    /// What the handler got, in its order.
    pub(super) steps: Vec<Step>,
    /// The answer behind theirs, which no handler gave: its status, and its body.
    pub(super) refusal: Option<String>,
}

/// A request that reached the handler.
#[derive(Debug)]
pub(super) enum Step {
    /// It came whole.
    Served(Served),
    /// Its body broke off.
    Broken,
}

/// A request as a handler sees it.
#[derive(Debug)]
pub(super) struct Served {
    pub(super) method: Method,
    pub(super) target: String,
    pub(super) version: Version,
    /// Host fields that it came with.
    pub(super) hosts: usize,
    /// By name; those of one name in the order in which they came.
    pub(super) fields: Vec<(String, Vec<u8>)>,
    pub(super) body: Vec<u8>,
    pub(super) trailers: Vec<(String, Vec<u8>)>,
}

impl Heard {
    pub(super) fn step(&self, place: usize) -> Option<&Step> {
        self.steps.get(place)
    }

    /// Takes in what the client got: the handler's answers are 200, and 599
    /// where the body broke off.
    pub(super) fn answered(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        while let Some((head, behind)) = split(rest) {
            let status = head.get(9..12).unwrap_or_default();
            let length = length(head).min(behind.len());
            if !matches!(status, b"200" | b"599") && !status.starts_with(b"1") {
                let text = [status, b" ", behind[..length].trim_ascii()].concat();
                self.refusal = Some(String::from_utf8_lossy(&text).trim_end().to_owned());
                return;
            }
            rest = &behind[length..];
        }
    }
}

fn split(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let at = bytes.windows(4).position(|four| four == b"\r\n\r\n")?;
    Some((&bytes[..at], &bytes[at + 4..]))
}

fn length(head: &[u8]) -> usize {
    let head = String::from_utf8_lossy(head).to_ascii_lowercase();
    let value = head.lines().find_map(|line| line.strip_prefix("content-length:"));
    value.and_then(|value| value.trim().parse().ok()).unwrap_or(0)
}

/// Trailers that we drop, since whoever acts on them acts too late.
const TOO_LATE: [&str; 11] = [
    "transfer-encoding",
    "content-length",
    "host",
    "connection",
    "trailer",
    "te",
    "upgrade",
    "expect",
    "authorization",
    "proxy-authorization",
    "content-encoding",
];

impl Served {
    /// What is meant to be the same: a target in absolute form is in origin form
    /// by then, its authority the one host, and a length that is said twice is
    /// said once.
    pub(super) fn new(mut parts: request::Parts, body: Vec<u8>, trailers: Option<HeaderMap>) -> Served {
        let hosts = parts.headers.get_all(HOST).iter().count();
        let mut target = AsItCame::of(&parts).map_or_else(|| parts.uri.to_string(), str::to_owned);
        if let (Some(_), Some(authority)) = (parts.uri.scheme(), parts.uri.authority()) {
            let host = authority.as_str().rsplit('@').next().unwrap_or_default();
            if let Ok(host) = host.try_into() {
                parts.headers.insert(HOST, host);
            }
            target = parts.uri.path_and_query().map_or("/", |path| path.as_str()).to_owned();
            if !target.starts_with('/') {
                target.insert(0, '/');
            }
        }
        if let Some(length) = parts.headers.get(CONTENT_LENGTH).cloned() {
            parts.headers.insert(CONTENT_LENGTH, length);
        }
        let mut trailers = sorted(&trailers.unwrap_or_default());
        trailers.retain(|(name, _)| !TOO_LATE.contains(&&**name));
        let fields = sorted(&parts.headers);
        Served { method: parts.method, target, version: parts.version, hosts, fields, body, trailers }
    }

    /// What of it is not the same.
    pub(super) fn differs_from(&self, other: &Served) -> Option<&'static str> {
        let same = [
            (self.method == other.method, "the methods differ"),
            (self.target == other.target, "the targets differ"),
            (self.version == other.version, "the versions differ"),
            (self.fields == other.fields, "the fields differ"),
            (self.body == other.body, "the bodies differ"),
            (self.trailers == other.trailers, "the trailers differ"),
        ];
        same.into_iter().find(|(same, _)| !same).map(|(_, what)| what)
    }

    /// After a CONNECT that is granted there is no HTTP.
    pub(super) fn ends_http(&self) -> bool {
        self.method == Method::CONNECT
    }

    pub(super) fn shape(&self) -> (String, usize, usize, usize) {
        let about = |bytes: usize| (usize::BITS - bytes.leading_zeros()) as usize;
        (self.method.to_string(), self.fields.len(), about(self.body.len()), self.trailers.len())
    }

    pub(super) fn values<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a [u8]> {
        self.fields.iter().filter(move |field| field.0 == name).map(|field| &*field.1)
    }
}

fn sorted(fields: &HeaderMap) -> Vec<(String, Vec<u8>)> {
    let mut all: Vec<_> = fields.iter().map(|(name, value)| (name.to_string(), value.as_bytes().to_vec())).collect();
    all.sort_by(|a, b| a.0.cmp(&b.0));
    all
}

impl fmt::Display for Heard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for step in &self.steps {
            match step {
                Step::Served(served) => write!(f, "[{served}] ")?,
                Step::Broken => write!(f, "[a body that breaks off] ")?,
            }
        }
        write!(f, "{}", self.refusal.as_deref().unwrap_or("(no word)"))
    }
}

impl fmt::Display for Served {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {:?}", self.method, self.target.escape_debug(), self.version)?;
        for (name, value) in self.fields.iter().chain(&self.trailers) {
            write!(f, " {name}={}", value.escape_ascii())?;
        }
        write!(f, " {:?}", self.body.escape_ascii().to_string())
    }
}
