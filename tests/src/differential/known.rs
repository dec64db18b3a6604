//! Where we differ from hyper, and mean it.

use super::heard::Served;

/// Hyper serves it, we do not.
pub(super) struct Stricter {
    /// What it is, and why.
    pub(super) what: &'static str,
    /// What we answer; nothing where the connection just ends.
    pub(super) answer: &'static str,
    /// Whether it is that, by what hyper makes of it, and what came.
    pub(super) of: fn(&Served, &[u8]) -> bool,
}

/// We serve it, hyper does not.
pub(super) struct Laxer {
    /// What it is, and why.
    pub(super) what: &'static str,
    /// Whether it is that, by what we make of it, and what came.
    pub(super) of: fn(&Served, &[u8]) -> bool,
}

/// Hyper serves it, we do not.
pub(super) const STRICTER: &[Stricter] = &[
    Stricter {
        what: "HTTP/1.1 without a host: a request must name it (RFC 9112, 3.2)",
        answer: "400 400 Bad Request: missing required Host header",
        of: |them, _| them.hosts == 0,
    },
    Stricter {
        what: "more than one host: two servers could take different ones",
        answer: "400 400 Bad Request",
        of: |them, _| them.hosts > 1,
    },
    Stricter {
        what: "a host with bytes that none has",
        answer: "400 400 Bad Request: malformed Host header",
        of: |_, _| true,
    },
    Stricter {
        what: "both a length and a coding: the classic of smuggling",
        answer: "400 400 Bad Request",
        of: |_, input| says(input, b"content-length") && says(input, b"transfer-encoding"),
    },
    Stricter {
        what: "a coding beside chunked: nothing behind us would decode it",
        answer: "501 Unsupported transfer encoding",
        of: |them, _| !them.values("transfer-encoding").all(|value| value.eq_ignore_ascii_case(b"chunked")),
    },
    Stricter {
        what: "chunked said twice",
        answer: "501 Unsupported transfer encoding",
        of: |them, _| them.values("transfer-encoding").count() > 1,
    },
    Stricter {
        what: "an expectation that nobody knows",
        answer: "417",
        of: |them, _| them.values("expect").next().is_some(),
    },
    Stricter {
        what: "a target in a form that its method has not",
        answer: "400 400 Bad Request",
        of: |them, _| !them.target.starts_with('/'),
    },
    Stricter {
        what: "control characters in a chunk's extension: a line end to somebody else",
        answer: "502 invalid byte in chunk extension",
        of: |them, _| is_chunked(them),
    },
    Stricter {
        what: "blanks before a chunk's extension, or within its size",
        answer: "502 invalid byte in chunk length",
        of: |them, _| is_chunked(them),
    },
    Stricter {
        what: "a chunk's size of more digits than 64 bits have",
        answer: "502 http chunk length too large",
        of: |them, _| is_chunked(them),
    },
    Stricter {
        what: "trailers that are no fields, or whose lines end in a bare LF",
        answer: "502 invalid trailer",
        of: |them, _| is_chunked(them),
    },
];

/// We serve it, hyper does not.
pub(super) const LAXER: &[Laxer] = &[
    Laxer {
        what: "folded fields: the reference reads them, and they go on unfolded",
        of: |_, input| input.windows(2).any(|two| matches!(two, b"\n " | b"\n\t")),
    },
    Laxer {
        what: "a target with bytes that a URI cannot hold: apps get them as they came",
        of: |us, _| us.target.bytes().any(|byte| byte >= 0x80 || b"\"<>\\^`{|}".contains(&byte)),
    },
    Laxer {
        what: "a coding in HTTP/1.0, which has none: the field goes, what follows is not read",
        of: |us, input| us.version == http::Version::HTTP_10 && says(input, b"transfer-encoding"),
    },
];

fn is_chunked(them: &Served) -> bool {
    them.values("transfer-encoding").next().is_some()
}

fn says(input: &[u8], name: &[u8]) -> bool {
    input.windows(name.len()).any(|part| part.eq_ignore_ascii_case(name))
}
