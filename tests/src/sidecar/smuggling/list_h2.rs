//! What is sent over HTTP/2.

use super::super::frames::{ACK, END_HEADERS, END_STREAM, PREFACE, fields, frame, kind};
use super::May::{Just, Nothing, One};
use super::{Case, May};

type Fields = Vec<(&'static str, &'static str)>;

const SMUGGLED: &str = "/x HTTP/1.1\r\nhost: a\r\n\r\nGET /smuggled HTTP/1.1\r\nx: ";

/// All of them.
pub fn all() -> Vec<Case> {
    let mut all = vec![head("control: an honest request", Just, get())];
    all.extend(values());
    all.extend(pseudo_fields());
    all.extend(connection_fields());
    all.extend(bodies());
    all.extend(streams());
    all
}

fn get() -> Fields {
    vec![(":method", "GET"), (":scheme", "http"), (":authority", "shop.example"), (":path", "/case")]
}

fn post() -> Fields {
    with(&[(":method", "POST")])
}

/// The honest one, with fields changed or added.
fn with(changes: &[(&'static str, &'static str)]) -> Fields {
    let mut all = get();
    for (name, value) in changes {
        match all.iter_mut().find(|(known, _)| known == name) {
            Some(known) => known.1 = value,
            None => all.push((name, value)),
        }
    }
    all
}

fn without(name: &str) -> Fields {
    get().into_iter().filter(|(known, _)| *known != name).collect()
}

fn case(name: impl Into<String>, may: May, all: &[Vec<u8>]) -> Case {
    let opening = [PREFACE, &frame(kind::SETTINGS, 0, 0, &[]), &frame(kind::SETTINGS, ACK, 0, &[])].concat();
    Case { name: format!("h2: {}", name.into()), bytes: [opening, all.concat()].concat(), may, http2: true }
}

/// A head, and nothing else.
fn head(name: impl Into<String>, may: May, all: Fields) -> Case {
    case(name, may, &[frame(kind::HEADERS, END_STREAM | END_HEADERS, 1, &fields(&all))])
}

/// A head, and a body in one piece.
fn body(name: &str, all: Fields, data: &[u8]) -> Case {
    let frames = [frame(kind::HEADERS, END_HEADERS, 1, &fields(&all)), frame(kind::DATA, END_STREAM, 1, data)];
    case(name, One, &frames)
}

/// Line ends and the like, wherever they can stand.
fn values() -> Vec<Case> {
    let mut all = Vec::new();
    for name in [":method", ":scheme", ":authority", ":path", "x", "host", "cookie", "content-type", "k-original-host"]
    {
        for (what, value) in [
            ("a request", SMUGGLED),
            ("CRLF", "/a\r\nx: y"),
            ("a line feed", "/a\nx: y"),
            ("a carriage return", "/a\rx"),
            ("NUL", "/a\0b"),
        ] {
            all.push(head(format!("{what} in {name}"), Nothing, with(&[(name, value)])));
        }
    }
    for name in
        ["x\r\ny", "x\ny", "x\ry", "x\0", "X", "Host", "x y", "x:y", "", "x: y\r\nz", "\u{e9}", "x(", " x", "x "]
    {
        all.push(head(format!("a field's name {name:?}"), Nothing, with(&[(name, "1")])));
    }
    for (name, value) in [("x", " a"), ("x", "a "), ("x", "\ta"), ("x", "\u{e9}")] {
        all.push(head(format!("{name}: {value:?}"), One, with(&[(name, value)])));
    }
    all
}

fn pseudo_fields() -> Vec<Case> {
    let mut all = Vec::new();
    for name in [":method", ":scheme", ":path"] {
        all.push(head(format!("no {name}"), Nothing, without(name)));
    }
    for pair in get() {
        all.push(head(format!("two of {}", pair.0), Nothing, [get(), vec![pair]].concat()));
        let mut late = without(pair.0);
        late.extend([("x", "y"), pair]);
        all.push(head(format!("{} after a field", pair.0), Nothing, late));
    }
    let two_paths = [get(), vec![(":path", "/smuggled")]].concat();
    all.push(head("two paths that differ", Nothing, two_paths));
    for name in [":x", ":status", ":Method", ":", ":host"] {
        all.push(head(format!("{name}, which there is not"), Nothing, [vec![(name, "200")], get()].concat()));
    }
    for (name, value) in [
        (":path", ""),
        (":path", "/a b"),
        (":path", "/ HTTP/1.1"),
        (":method", ""),
        (":method", "GET /smuggled"),
        (":method", "G:ET"),
        (":method", "GET "),
        (":scheme", "ht tp"),
        (":authority", "a b"),
    ] {
        all.push(head(format!("{name} {value:?}"), Nothing, with(&[(name, value)])));
    }
    for (name, value) in [
        (":path", "*"),
        (":path", "case"),
        (":path", "http://other.example/case"),
        (":path", "//evil.example/case"),
        (":path", "/case#part"),
        (":path", "/%0d%0ax"),
        (":path", "/\u{e9}"),
        (":method", "CONNECT"),
        (":method", "get"),
        (":method", "PRI"),
        (":scheme", "javascript"),
        (":scheme", "https"),
        (":scheme", ""),
        (":authority", ""),
        (":authority", "me@evil.example"),
        (":authority", "a/b"),
        (":authority", "a:b"),
    ] {
        all.push(head(format!("{name} {value:?}"), One, with(&[(name, value)])));
    }
    all.push(head("no :authority, and no host", One, without(":authority")));
    all.push(head("host instead of :authority", One, [without(":authority"), vec![("host", "a")]].concat()));
    all.push(head("host and :authority differ", One, with(&[("host", "other.example")])));
    all.push(head("two hosts", One, [without(":authority"), vec![("host", "a"), ("host", "b")]].concat()));
    all.push(head("extended CONNECT", One, with(&[(":method", "CONNECT"), (":protocol", "websocket")])));
    all
}

/// Fields that belong to a connection of HTTP/1.
fn connection_fields() -> Vec<Case> {
    let mut all = Vec::new();
    for (name, value) in [
        ("connection", "close"),
        ("connection", "keep-alive"),
        ("connection", "content-length"),
        ("keep-alive", "5"),
        ("proxy-connection", "close"),
        ("transfer-encoding", "chunked"),
        ("transfer-encoding", "identity"),
        ("upgrade", "h2c"),
        ("te", "gzip"),
        ("te", "chunked"),
    ] {
        all.push(head(format!("{name}: {value}"), Nothing, with(&[(name, value)])));
    }
    all.push(head("te: trailers", Just, with(&[("te", "trailers")])));
    let chunks = b"0\r\n\r\nGET /smuggled HTTP/1.1\r\nhost: a\r\n\r\n";
    let mut framed = post();
    framed.push(("transfer-encoding", "chunked"));
    all.push(Case { may: Nothing, ..body("chunks in a body", framed, chunks) });
    all
}

/// Bodies that are not as long as they say.
fn bodies() -> Vec<Case> {
    let length = |value: &'static str| [post(), vec![("content-length", value)]].concat();
    let inner = b"hello\r\nGET /smuggled HTTP/1.1\r\nhost: a\r\n\r\n";
    let mut all: Vec<Case> = ["0", "5", "500", "+5", "-5", "5, 5", "5,6", "0x5", "", "18446744073709551621"]
        .map(|value| body(&format!("content-length {value:?}"), length(value), inner))
        .into();
    let two = [post(), vec![("content-length", "5"), ("content-length", "43")]].concat();
    all.push(body("two lengths", two, inner));
    all.push(head("a length, and no body", One, length("5")));
    for (what, trailer) in [
        ("a length", ("content-length", "5")),
        ("an encoding", ("transfer-encoding", "chunked")),
        ("a pseudo field", (":path", "/smuggled")),
        ("a host", ("host", "evil.example")),
        ("a request", ("x", SMUGGLED)),
        ("a name with a line end", ("x: y\r\nz", "1")),
    ] {
        let frames = [
            frame(kind::HEADERS, END_HEADERS, 1, &fields(&post())),
            frame(kind::DATA, 0, 1, b"hello"),
            frame(kind::HEADERS, END_HEADERS | END_STREAM, 1, &fields(&[trailer])),
        ];
        all.push(case(format!("trailers with {what}"), One, &frames));
    }
    all
}

/// Frames where none may be.
fn streams() -> Vec<Case> {
    let whole = |stream: u32| frame(kind::HEADERS, END_HEADERS | END_STREAM, stream, &fields(&get()));
    vec![
        case("a head on stream 0", Nothing, &[whole(0)]),
        case("a head on a stream of the server's", Nothing, &[whole(2)]),
        case("a body on a stream that there is not", Nothing, &[frame(kind::DATA, END_STREAM, 1, b"hello")]),
        case("a second head on a stream that has ended", One, &[whole(1), whole(1)]),
        case("a head on an older stream", One, &[whole(3), whole(1)]),
        case("more of a head, without a head", Nothing, &[frame(kind::CONTINUATION, END_HEADERS, 1, &fields(&get()))]),
        case(
            "a body in the middle of a head",
            Nothing,
            &[frame(kind::HEADERS, 0, 1, &fields(&get())), frame(kind::DATA, END_STREAM, 1, b"x")],
        ),
        case("rubbish in place of a head", Nothing, &[frame(kind::HEADERS, END_HEADERS | END_STREAM, 1, &[0xff; 50])]),
        case("HTTP/1 behind the preface", Nothing, &[b"GET /smuggled HTTP/1.1\r\nhost: a\r\n\r\n".to_vec()]),
    ]
}
