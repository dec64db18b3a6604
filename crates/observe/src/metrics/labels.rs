//! The labels of a request, packed into one number.

use super::names::OTHER;
use crate::facts::RequestFacts;

/// Methods that are labels; all others are one.
const METHODS: [&str; 9] = ["CONNECT", "DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "TRACE"];

/// The label of other methods.
const OTHER_METHOD: &str = "_OTHER";

/// A method as a label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Method(u8);

impl Method {
    pub(crate) fn of(method: &http::Method) -> Method {
        let known = METHODS.iter().position(|known| method.as_str().eq_ignore_ascii_case(known));
        Method(known.and_then(|at| u8::try_from(at).ok()).unwrap_or(u8::MAX))
    }
}

/// A method as a label's text.
pub(crate) fn method_name(method: Method) -> &'static str {
    METHODS.get(usize::from(method.0)).copied().unwrap_or(OTHER_METHOD)
}

/// A set of labels: method, HTTP version, scheme, status, route tag and host,
/// the last two by their numbers in the book of names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Labels(u64);

const VERSION_AT: u32 = 8;
const TLS_AT: u32 = 12;
const STATUS_AT: u32 = 16;
const TAG_AT: u32 = 32;
const HOST_AT: u32 = 48;

impl Labels {
    /// Of requests beyond the last label set that there is room for.
    pub(super) const OVERFLOW: Labels = Labels(u64::MAX);

    pub(super) fn new(method: Method, version: http::Version, tls: bool, tag: u16, host: u16) -> Labels {
        let version: u64 = match version {
            http::Version::HTTP_10 => 0,
            http::Version::HTTP_2 => 2,
            _ => 1,
        };
        let low = u64::from(method.0) | version << VERSION_AT | u64::from(tls) << TLS_AT;
        Labels(low | u64::from(tag) << TAG_AT | u64::from(host) << HOST_AT)
    }

    /// Of a request whose names are not numbered (yet).
    pub(super) fn nameless(facts: &RequestFacts<'_>) -> Labels {
        Labels::new(Method::of(&facts.parts.method), facts.parts.version, facts.tls, OTHER, OTHER)
    }

    pub(super) fn with_host(self, host: u16) -> Labels {
        Labels(self.0 & !(0xffff << HOST_AT) | u64::from(host) << HOST_AT)
    }

    pub(super) fn with_status(self, status: u16) -> Labels {
        Labels(self.0 & !(0xffff << STATUS_AT) | u64::from(status) << STATUS_AT)
    }

    /// Without what the app's side does not tell apart.
    pub(super) fn of_client(self) -> Labels {
        Labels(self.0 & !(0xffff << HOST_AT) & !(0xf << TLS_AT))
    }

    fn part(self, at: u32) -> u16 {
        // Sixteen bits are left by the mask.
        u16::try_from(self.0 >> at & 0xffff).unwrap_or(u16::MAX)
    }

    pub(super) fn method(self) -> &'static str {
        method_name(Method(self.0.to_le_bytes()[0]))
    }

    pub(super) fn version(self) -> &'static str {
        match self.part(VERSION_AT) & 0xf {
            0 => "1.0",
            2 => "2",
            _ => "1.1",
        }
    }

    pub(super) fn scheme(self) -> &'static str {
        if self.part(TLS_AT) & 1 == 1 { "https" } else { "http" }
    }

    /// 0: there is none.
    pub(super) fn status(self) -> u16 {
        self.part(STATUS_AT)
    }

    pub(super) fn tag(self) -> u16 {
        self.part(TAG_AT)
    }

    pub(super) fn host(self) -> u16 {
        self.part(HOST_AT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_do_not_touch_each_other() {
        let get = Method::of(&http::Method::GET);
        let labels = Labels::new(get, http::Version::HTTP_2, true, 7, 65_535).with_status(599).with_status(204);
        assert_eq!((labels.method(), labels.version(), labels.scheme()), ("GET", "2", "https"));
        assert_eq!((labels.status(), labels.tag(), labels.host()), (204, 7, 65_535));
        let client = labels.of_client();
        assert_eq!((client.method(), client.scheme(), client.status(), client.tag()), ("GET", "http", 204, 7));
        assert_eq!(client.host(), 0);
    }

    #[test]
    fn unknown_methods_are_one_label() {
        for (given, label) in [("get", "GET"), ("PROPFIND", "_OTHER"), ("X-1", "_OTHER"), ("TRACE", "TRACE")] {
            assert_eq!(method_name(Method::of(&given.parse().unwrap())), label);
        }
    }
}
