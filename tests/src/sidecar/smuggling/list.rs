//! What is sent over HTTP/1.

use super::May::{Just, Nothing, One, Two};
use super::{Case, May};

/// What an attacker wants to slip through.
const INNER: &str = "GET /smuggled HTTP/1.1\r\nhost: shop.example\r\n\r\n";

/// All of them.
pub fn all() -> Vec<Case> {
    let mut all = controls();
    all.extend(both_framings());
    all.extend(transfer_encodings());
    all.extend(lengths());
    all.extend(chunks());
    all.extend(request_lines());
    all.extend(hosts());
    all.extend(fields());
    all
}

fn case(name: impl Into<String>, may: May, bytes: impl Into<Vec<u8>>) -> Case {
    Case { name: name.into(), bytes: bytes.into(), may, http2: false }
}

/// A POST with these lines in its head (each with its end), and what follows.
fn post(lines: &str, rest: &str) -> String {
    format!("POST /case HTTP/1.1\r\nhost: shop.example\r\n{lines}\r\n{rest}")
}

/// A GET with these lines in its head.
fn get(lines: &str) -> String {
    format!("GET /case HTTP/1.1\r\nhost: shop.example\r\n{lines}\r\n")
}

fn controls() -> Vec<Case> {
    let honest = post("content-length: 5\r\n", "hello");
    vec![
        case("control: an honest request", Just, honest.clone()),
        case("control: honest chunks", Just, post("transfer-encoding: chunked\r\n", "5\r\nhello\r\n0\r\n\r\n")),
        case("control: two honest requests", Two, format!("{honest}GET /two HTTP/1.1\r\nhost: shop.example\r\n\r\n")),
    ]
}

/// Both ways to say how long the body is.
fn both_framings() -> Vec<Case> {
    let chunks = format!("0\r\n\r\n{INNER}");
    let names = [
        ("content-length", "transfer-encoding"),
        ("Content-Length", "Transfer-Encoding"),
        ("CONTENT-LENGTH", "TRANSFER-ENCODING"),
    ];
    let mut all = Vec::new();
    for (length, encoding) in names {
        for size in [0, 5, chunks.len()] {
            let lines = format!("{length}: {size}\r\n{encoding}: chunked\r\n");
            all.push(case(format!("{length}: {size}, then {encoding}"), Nothing, post(&lines, &chunks)));
            let lines = format!("{encoding}: chunked\r\n{length}: {size}\r\n");
            all.push(case(format!("{encoding}, then {length}: {size}"), Nothing, post(&lines, &chunks)));
        }
    }
    for (name, encoding) in [
        ("another word", "transfer-encoding: xchunked\r\n"),
        ("identity", "transfer-encoding: identity\r\n"),
        ("in two lines", "transfer-encoding: identity\r\ntransfer-encoding: chunked\r\n"),
        ("a tab before", "transfer-encoding:\tchunked\r\n"),
        ("a blank before the colon", "transfer-encoding : chunked\r\n"),
        ("a tab before the colon", "transfer-encoding\t: chunked\r\n"),
        ("folded", "transfer-encoding:\r\n chunked\r\n"),
        ("behind a bare line feed", "x: y\ntransfer-encoding: chunked\r\n"),
        ("behind a bare carriage return", "x: y\rtransfer-encoding: chunked\r\n"),
        ("with a vertical tab", "transfer-encoding: \x0bchunked\r\n"),
        ("with NUL", "transfer-encoding: chunked\0\r\n"),
        ("in quotes", "transfer-encoding: \"chunked\"\r\n"),
        ("in capitals", "transfer-encoding: CHUNKED\r\n"),
        ("with a Kelvin sign", "transfer-encoding: chun\u{212a}ed\r\n"),
    ] {
        let lines = format!("content-length: 5\r\n{encoding}");
        all.push(case(format!("Content-Length and Transfer-Encoding, {name}"), Nothing, post(&lines, &chunks)));
    }
    // Nobody but a gateway interface takes these for the field; then by length.
    for encoding in ["transfer_encoding: chunked\r\n", "x-transfer-encoding: chunked\r\n", "te: chunked\r\n"] {
        let lines = format!("content-length: {}\r\n{encoding}", chunks.len());
        all.push(case(
            format!("a length, and {}", encoding.trim()),
            One,
            post(&lines, "0\r\n\r\n").replace("/smuggled", "/s"),
        ));
    }
    all
}

/// Spellings of `Transfer-Encoding` alone.
fn transfer_encodings() -> Vec<Case> {
    let chunks = format!("0\r\n\r\n{INNER}");
    let row = |may, value: &str| {
        let lines = format!("transfer-encoding: {value}\r\n");
        case(format!("transfer-encoding: {value:?}"), may, post(&lines, if may == One { "0\r\n\r\n" } else { &chunks }))
    };
    let mut all: Vec<Case> = [
        "xchunked",
        "chunked, identity",
        "identity",
        "gzip",
        "chunked, gzip",
        "\"chunked\"",
        "chunked;q=1",
        "ch unked",
        "\x0bchunked",
        "chunked\x0c",
        "chunked\0",
        "chun\u{212a}ed",
        "'chunked'",
        "chunked chunked",
        "chunkedx",
        "",
        "deflate, identity",
    ]
    .map(|value| row(Nothing, value))
    .into();
    all.extend(
        [
            "Chunked",
            "CHUNKED",
            " chunked ",
            "\tchunked",
            "chunked\t",
            "chunked,",
            ",chunked",
            "gzip, chunked",
            "identity, chunked",
            "chunked, chunked",
        ]
        .map(|value| row(One, value)),
    );
    let old = "POST /case HTTP/1.0\r\nhost: shop.example\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n";
    all.extend([
        case("two lines of it", One, post("transfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n", "0\r\n\r\n")),
        case(
            "two lines, the other first",
            Nothing,
            post("transfer-encoding: chunked\r\ntransfer-encoding: identity\r\n", &chunks),
        ),
        case("in HTTP/1.0", One, old),
        case(
            "as the first line, indented",
            Nothing,
            format!("POST /case HTTP/1.1\r\n transfer-encoding: chunked\r\nhost: a\r\n\r\n{chunks}"),
        ),
        case("folded", One, post("transfer-encoding:\r\n chunked\r\n", "0\r\n\r\n")),
        case(
            "hidden in a folded line",
            One,
            post("x: y\r\n\ttransfer-encoding: chunked\r\ncontent-length: 5\r\n", "hello"),
        ),
        case(
            "named in Connection",
            One,
            post("transfer-encoding: chunked\r\nconnection: transfer-encoding\r\n", "5\r\nhello\r\n0\r\n\r\n"),
        ),
        case("on GET", One, get("transfer-encoding: chunked\r\n") + "5\r\nhello\r\n0\r\n\r\n"),
    ]);
    all
}

/// Spellings of `Content-Length`.
fn lengths() -> Vec<Case> {
    let mut all: Vec<Case> = [
        "+5",
        "-5",
        "5, 6",
        "5,6",
        "0x5",
        "5;",
        "",
        "5 5",
        "5x",
        "x5",
        "1e1",
        "5.0",
        "\u{0665}",
        "5\0",
        "\x0b5",
        "5\x0c",
        "18446744073709551621",
        "99999999999999999999999",
        "9223372036854775808000",
        "0, 5",
        "5, 0",
        "'5'",
        "\"5\"",
        "5,",
        ",5",
        "_5",
        "5_0",
    ]
    .map(|value| {
        case(
            format!("content-length: {value:?}"),
            Nothing,
            post(&format!("content-length: {value}\r\n"), &format!("hello{INNER}")),
        )
    })
    .into();
    all.extend(["05", " 5 ", "\t5", "5\t", "5,5", "5, 5", "0000000000000000000000005"].map(|value| {
        case(format!("content-length: {value:?}"), One, post(&format!("content-length: {value}\r\n"), "hello"))
    }));
    let inner = INNER.len();
    all.extend([
        case("two lengths, alike", One, post("content-length: 5\r\ncontent-length: 5\r\n", "hello")),
        case(
            "two lengths, 5 and 0",
            Nothing,
            post("content-length: 5\r\ncontent-length: 0\r\n", &format!("hello{INNER}")),
        ),
        case(
            "two lengths, 0 and 5",
            Nothing,
            post("content-length: 0\r\ncontent-length: 5\r\n", &format!("hello{INNER}")),
        ),
        case("two lengths, by case", Nothing, post("Content-Length: 5\r\ncONTENT-lENGTH: 6\r\n", "hello!")),
        case("a blank before the colon", Nothing, post("content-length : 5\r\n", "hello")),
        case(
            "indented, as the first line",
            Nothing,
            "POST /case HTTP/1.1\r\n content-length: 5\r\nhost: a\r\n\r\nhello",
        ),
        case("folded", One, post("content-length:\r\n 5\r\n", "hello")),
        case("folded in two digits", Nothing, post("content-length: 5\r\n 0\r\n", "hello")),
        case("behind a bare carriage return", Nothing, post("x: y\rcontent-length: 5\r\n", "hello")),
        case("with an underscore", One, post("content_length: 5\r\ncontent-length: 5\r\n", "hello")),
        case("named in Connection", One, post("content-length: 5\r\nconnection: content-length\r\n", "hello")),
        case(
            "named in Connection, with close",
            One,
            post("content-length: 5\r\nconnection: close, content-length\r\n", "hello"),
        ),
        case(
            "a request as a body",
            Just,
            post(&format!("content-length: {inner}\r\n"), INNER).replace("/smuggled", "/body"),
        ),
        case(
            "on GET, a request as a body",
            One,
            (get(&format!("content-length: {inner}\r\n")) + INNER).replace("/smuggled", "/body"),
        ),
        case("on HEAD, a body", One, "HEAD /case HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\n\r\nhello"),
        case("on DELETE, a body", One, "DELETE /case HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\n\r\nhello"),
        case("less than it says", One, post("content-length: 50\r\n", "hello")),
        case("with an expectation", One, post("content-length: 5\r\nexpect: 100-continue\r\n", "hello")),
        case("with an odd expectation", One, post("content-length: 5\r\nexpect: 100-continue, x\r\n", "hello")),
    ]);
    all
}

/// Bodies in chunks. The head is well, so the app may see a beginning.
fn chunks() -> Vec<Case> {
    let encoding = "transfer-encoding: chunked\r\n";
    let size = |text: &str| {
        case(format!("chunk size {text:?}"), One, post(encoding, &format!("{text}\r\nhello\r\n0\r\n\r\n")))
    };
    let mut all: Vec<Case> = [
        "5;a=b",
        "5;a=\"b;c\"",
        "5 ;a",
        "5; a",
        "5;",
        "5;;",
        "5 ",
        "5\t",
        " 5",
        "05",
        "00000000000000000005",
        "000000000000005",
        "0x5",
        "0X5",
        "+5",
        "-5",
        "5_",
        "5h",
        "",
        " ",
        ";a",
        "ffffffffffffffff5",
        "10000000000000005",
        "ffffffffffffffff",
        "7fffffffffffffff",
        "5\0",
        "5\x0b",
        "5,5",
        "5 5",
        "5;a\nb",
        "5;a\rb",
        "5\n",
        "5\r",
        "5;\"\r\n\"",
        "\u{0665}",
    ]
    .map(size)
    .into();
    let row = |name: &str, rest: &str| case(name, One, post(encoding, rest));
    all.extend([
        row("an extension of 10,000 bytes", &format!("5;{}\r\nhello\r\n0\r\n\r\n", "a".repeat(10_000))),
        row("1,000 extensions of 1,000 bytes", &format!("1;{}\r\nx\r\n", "a".repeat(1_000)).repeat(1000)),
        row("a chunk longer than it says", "5\r\nhello!\r\n0\r\n\r\n"),
        row("a chunk shorter than it says", "6\r\nhello\r\n0\r\n\r\n"),
        row("a chunk that ends in a line feed", "5\r\nhello\n0\r\n\r\n"),
        row("a chunk that ends in a carriage return", "5\r\nhello\r0\r\n\r\n"),
        row("a chunk that ends in nothing", "5\r\nhello0\r\n\r\n"),
        row("a size that ends in a line feed", "5\nhello\r\n0\r\n\r\n"),
        row("a last chunk that ends in a line feed", "5\r\nhello\r\n0\n\n"),
        row("a last chunk of many zeros", "5\r\nhello\r\n00000\r\n\r\n"),
        row("a last chunk with an extension", "5\r\nhello\r\n0;x=y\r\n\r\n"),
        row("a last chunk, and no end", "5\r\nhello\r\n0\r\n"),
        row("an empty chunk in the middle of a line", "5\r\nhello\r\n\r\n0\r\n\r\n"),
        row("a request in a chunk's extension", "5;GET /body HTTP/1.1\r\nhello\r\n0\r\n\r\n"),
        row("a request in the trailers", "0\r\nGET /body HTTP/1.1\r\nhost: a\r\n\r\n"),
        row("a request in a trailer", "0\r\nx: y\r\n GET /body HTTP/1.1\r\n\r\n"),
        row("trailers that frame", "0\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n"),
        row("a trailer with another host", "0\r\nhost: evil.example\r\n\r\n"),
        row("a trailer with a bare line feed", "0\r\nx: y\nz: 1\r\n\r\n"),
        row("a trailer with a bare carriage return", "0\r\nx: y\rz: 1\r\n\r\n"),
        row("a trailer with NUL", "0\r\nx: \0\r\n\r\n"),
        row("a trailer without a colon", "0\r\nnonsense\r\n\r\n"),
        row("a trailer without a name", "0\r\n: y\r\n\r\n"),
        row("a trailer with a blank before the colon", "0\r\nx : y\r\n\r\n"),
        row("a folded trailer", "0\r\nx: y\r\n z\r\n\r\n"),
        row("100,000 bytes of trailers", &format!("0\r\n{}\r\n", format!("x: {}\r\n", "y".repeat(95)).repeat(1000))),
    ]);
    all
}

fn request_lines() -> Vec<Case> {
    let line = |may, line: &str| case(format!("line {line:?}"), may, format!("{line}\r\nhost: shop.example\r\n\r\n"));
    let mut all: Vec<Case> = [
        "GET /case",
        "GET  HTTP/1.1",
        "GET HTTP/1.1",
        "GET /a b HTTP/1.1",
        "GET /case HTTP/1.1 HTTP/1.1",
        "GET /case HTTP/1.1 x",
        "GET /\0 HTTP/1.1",
        "GET /\r HTTP/1.1",
        "GET /case\rHTTP/1.1",
        "GET /case HTTP/2.0",
        "GET /case HTTP/3.0",
        "GET /case HTTP/0.9",
        "GET /case HTTP/01.1",
        "GET /case http/1.1",
        "GET /case HTTP/1.1.1",
        "GET /case HTTP/1,1",
        "GET /case HTTP/1.",
        "GET /case XTTP/1.1",
        "G:ET /case HTTP/1.1",
        "G(ET /case HTTP/1.1",
        "GET\0 /case HTTP/1.1",
        "GET\x0b/case HTTP/1.1",
        "\u{e9} /case HTTP/1.1",
        "/case GET HTTP/1.1",
        "HTTP/1.1 200 OK",
        "PRI * HTTP/2.0",
        "GET \t/case HTTP/1.1",
    ]
    .map(|text| line(Nothing, text))
    .into();
    all.extend(
        [
            "GET  /case HTTP/1.1",
            "GET /case  HTTP/1.1",
            "GET\t/case\tHTTP/1.1",
            "GET /case HTTP/1.1 ",
            " GET /case HTTP/1.1",
            "get /case HTTP/1.1",
            "GET /case HTTP/1.0",
            "GET /case HTTP/1.2",
            "GET /case HTTP/1.9",
            "GET case HTTP/1.1",
            "GET ?x HTTP/1.1",
            "GET /case#part HTTP/1.1",
            "GET //evil.example/case HTTP/1.1",
            "GET /../../case HTTP/1.1",
            "GET /%0d%0aGET%20/body HTTP/1.1",
            "GET /\u{e9} HTTP/1.1",
            "GET /\x7f HTTP/1.1",
            "GET /\"<>^`{|} HTTP/1.1",
            "GET /\\ HTTP/1.1",
            "OPTIONS * HTTP/1.1",
            "GET * HTTP/1.1",
            "CONNECT evil.example:80 HTTP/1.1",
            "CONNECT /case HTTP/1.1",
            "TRACE /case HTTP/1.1",
            "GET evil.example:80 HTTP/1.1",
            "GET http://other.example/case HTTP/1.1",
            "GET HTTP://other.example/case HTTP/1.1",
            "GET https://other.example/case HTTP/1.1",
            "GET http://other.example HTTP/1.1",
            "GET http://other.example?x HTTP/1.1",
            "GET http://shop.example@evil.example/case HTTP/1.1",
            "GET http:///case HTTP/1.1",
            "GET http://other.example:99999/case HTTP/1.1",
            "GET http:/case HTTP/1.1",
            "GET ftp://other.example/case HTTP/1.1",
            "GET javascript:case HTTP/1.1",
        ]
        .map(|text| line(One, text)),
    );
    let long = "a".repeat(70_000);
    all.extend([
        case("empty lines first", One, format!("\r\n\r\n{}", get(""))),
        case("line feeds first", One, format!("\n\n{}", get(""))),
        case("a method of 70,000 bytes", One, format!("{long} /case HTTP/1.1\r\nhost: a\r\n\r\n")),
        case("a path of 70,000 bytes", One, format!("GET /{long} HTTP/1.1\r\nhost: a\r\n\r\n")),
        case("line feeds alone", One, "GET /case HTTP/1.1\nhost: shop.example\n\n"),
        case("carriage returns alone", Nothing, "GET /case HTTP/1.1\rhost: shop.example\r\r"),
        case("the head ends in two line feeds", One, "GET /case HTTP/1.1\r\nhost: shop.example\n\n"),
        case(
            "the head ends in a lone carriage return",
            Nothing,
            "GET /case HTTP/1.1\r\nhost: shop.example\r\n\rX: y\r\n\r\n",
        ),
        case("two carriage returns", Nothing, "GET /case HTTP/1.1\r\r\nhost: shop.example\r\r\n\r\r\n"),
        case("a TLS hello", Nothing, &b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"[..]),
        case("nothing but NUL", Nothing, vec![0; 1000]),
        case("a body without a length is a second request", One, post("", "nonsense\r\n\r\n")),
    ]);
    all
}

fn hosts() -> Vec<Case> {
    let head = |lines: &str| format!("GET /case HTTP/1.1\r\n{lines}\r\n");
    let mut all: Vec<Case> = [
        ("none", ""),
        ("two", "host: a\r\nhost: b\r\n"),
        ("two alike", "host: a\r\nhost: a\r\n"),
        ("two, apart", "host: a\r\nx: y\r\nHOST: b\r\n"),
        ("a blank before the colon", "host : a\r\n"),
        ("two in one", "host: a, b\r\n"),
        ("a blank inside", "host: a b\r\n"),
        ("a path", "host: a/b\r\n"),
        ("NUL", "host: a\0b\r\n"),
        ("a bare carriage return", "host: a\rb\r\n"),
    ]
    .map(|(name, lines)| case(format!("Host: {name}"), Nothing, head(lines)))
    .into();
    all.extend(
        [
            ("empty", "host:\r\n"),
            ("a name of somebody", "host: me@a\r\n"),
            ("a port that is none", "host: a:b\r\n"),
            ("a folded one", "host: a\r\n b\r\n"),
            ("named in Connection", "host: a\r\nconnection: host\r\n"),
            ("beside ours", "host: a\r\nk-original-host: b\r\nk-original-host: c\r\n"),
            ("beside ours, with a blank", "host: a\r\nk-original-host: b c\r\n"),
            ("beside a forwarded one", "host: a\r\nx-forwarded-host: b\r\nforwarded: host=\"c\"\r\n"),
        ]
        .map(|(name, lines)| case(format!("Host: {name}"), One, head(lines))),
    );
    all
}

fn fields() -> Vec<Case> {
    let mut all: Vec<Case> = [
        ("no colon", "nonsense\r\n"),
        ("a request", "GET /smuggled HTTP/1.1\r\n"),
        ("no name", ": x\r\n"),
        ("a blank in the name", "x y: 1\r\n"),
        ("a blank before the colon", "x : 1\r\n"),
        ("a tab before the colon", "x\t: 1\r\n"),
        ("NUL in the name", "x\0: 1\r\n"),
        ("NUL in the value", "x: \0\r\n"),
        ("a bare carriage return in the value", "x: a\rb\r\n"),
        ("a bare carriage return in the name", "x\ry: 1\r\n"),
        ("a bracket in the name", "x(: 1\r\n"),
        ("DEL in the name", "x\x7f: 1\r\n"),
        ("a letter of elsewhere in the name", "\u{e9}: 1\r\n"),
        ("DEL in the value", "x: \x7f\r\n"),
        ("a control character in the value", "x: \x01\r\n"),
        ("a bell in the value", "x: \x07\r\n"),
    ]
    .map(|(name, lines)| case(format!("field: {name}"), Nothing, get(lines)))
    .into();
    all.extend(
        [
            ("folded", "x: a\r\n b\r\n"),
            ("folded with a tab", "x: a\r\n\tb\r\n"),
            ("a request, folded", "x: a\r\n GET /body HTTP/1.1\r\n"),
            ("folded to nothing", "x: a\r\n \r\ny: b\r\n"),
            ("a bare line feed", "x: a\ny: b\r\n"),
            ("a bare line feed and a blank", "x: a\n y: b\r\n"),
            (
                "Upgrade to HTTP/2",
                "connection: upgrade, http2-settings\r\nupgrade: h2c\r\nhttp2-settings: AAMAAABkAAQAAP__\r\n",
            ),
            ("Connection names everything", "connection: x, accept, te, trailer, upgrade\r\nx: y\r\n"),
            ("Connection with rubbish", "connection: \x22,;, =\r\n"),
            ("Trailer names the framing", "trailer: content-length, transfer-encoding, host\r\n"),
            ("letters of elsewhere in the value", "x: \u{e9}\u{fc}\r\n"),
            ("2,000 fields", &"x: y\r\n".repeat(2000)),
            ("a field of 100,000 bytes", &format!("x: {}\r\n", "y".repeat(100_000))),
        ]
        .map(|(name, lines)| case(format!("field: {name}"), One, get(lines))),
    );
    all
}
