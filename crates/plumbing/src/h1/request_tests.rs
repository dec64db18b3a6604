use super::*;

/// Parses input that comes in pieces of `step` bytes; what is left of it, too.
fn parse(input: &[u8], step: usize) -> Result<(Head, Vec<u8>), Malformed> {
    let (mut buffer, mut scan) = (BytesMut::new(), Scan::default());
    let mut pieces = input.chunks(step);
    loop {
        if let Some(head) = head(&mut buffer, &mut scan, 1 << 20)? {
            buffer.extend(pieces.flatten());
            return Ok((head, buffer.to_vec()));
        }
        let Some(piece) = pieces.next() else { panic!("unfinished: {}", input.escape_ascii()) };
        buffer.extend_from_slice(piece);
    }
}

fn show(head: &Head) -> String {
    let fields = head.fields.iter().map(|(name, value)| format!("{name}={}", value.as_bytes().escape_ascii()));
    let fields = fields.collect::<Vec<_>>().join("&");
    format!("{} {} {:?} {:?} {} [{fields}]", head.method, head.uri, head.version, head.decoder, head.keep_alive)
}

#[test]
fn valid_heads_are_read_the_same_however_they_are_cut() {
    for (input, shown) in [
        ("GET / HTTP/1.1\r\nHost: h\r\n\r\n", "GET / HTTP/1.1 Length(0) true [host=h]"),
        ("GET / HTTP/1.1\nHost: h\n\n", "GET / HTTP/1.1 Length(0) true [host=h]"),
        ("\r\n\r\nGET / HTTP/1.1\r\nHost: h\r\n\r\n", "GET / HTTP/1.1 Length(0) true [host=h]"),
        (
            "GET / HTTP/1.1\r\nHost:h\r\nConnection: Close\r\n\r\n",
            "GET / HTTP/1.1 Length(0) false [host=h&connection=Close]",
        ),
        ("GET / HTTP/1.0\r\n\r\n", "GET / HTTP/1.0 Length(0) false []"),
        ("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", "GET / HTTP/1.0 Length(0) true [connection=keep-alive]"),
        ("GET / HTTP/1.1\r\nHost: h\r\nX-A: 1\r\n  2\r\n\r\n", "GET / HTTP/1.1 Length(0) true [host=h&x-a=1 2]"),
        (
            "POST /p HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello",
            "POST /p HTTP/1.1 Length(5) true [host=h&content-length=5]",
        ),
        (
            "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nab",
            "POST / HTTP/1.1 Length(2) true [host=h&content-length=2]",
        ),
        (
            "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: \tChunked \r\n\r\n",
            "POST / HTTP/1.1 Chunked(Size) true [host=h&transfer-encoding=Chunked]",
        ),
        (
            "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\nConnection: keep-alive\r\n\r\n5\r\n",
            "POST / HTTP/1.0 Length(0) false [connection=keep-alive]",
        ),
        (
            "GET http://other.example.com:81/abs?q=1 HTTP/1.1\r\nHost: h.example.com\r\n\r\n",
            "GET /abs?q=1 HTTP/1.1 Length(0) true [host=other.example.com:81]",
        ),
        ("GET http://u:p@o HTTP/1.1\r\nHost: h\r\n\r\n", "GET / HTTP/1.1 Length(0) true [host=o]"),
        ("OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n", "OPTIONS * HTTP/1.1 Length(0) true [host=h]"),
        ("CONNECT h:443 HTTP/1.1\r\n\r\n", "CONNECT h:443 HTTP/1.1 Length(0) true []"),
        ("BREW /pot HTTP/1.1\r\nHost: \r\n\r\n", "BREW /pot HTTP/1.1 Length(0) true [host=]"),
        (
            "GET /a//b/../c/./%2e%2e/%2F%7Euser;p=1?a=b;c&d=%zz&e HTTP/1.1\r\nHost: h\r\n\r\n",
            "GET /a//b/../c/./%2e%2e/%2F%7Euser;p=1?a=b;c&d=%zz&e HTTP/1.1 Length(0) true [host=h]",
        ),
        ("GET //evil/x HTTP/1.1\r\nHost: h\r\n\r\n", "GET //evil/x HTTP/1.1 Length(0) true [host=h]"),
        ("GET / HTTP/1.1\r\nHost: [::1]:80\r\nX: \r\n\r\n", "GET / HTTP/1.1 Length(0) true [host=[::1]:80&x=]"),
    ] {
        for step in 1..=input.len() {
            let (head, left) = parse(input.as_bytes(), step).unwrap_or_else(|what| panic!("{input:?}: {what}"));
            assert_eq!(show(&head), shown, "{input:?} step {step}");
            let body = input.find("\r\n\r\nGET").map_or(0, |_| 4);
            let end = input[body..].find("\r\n\r\n").map_or(input.len(), |at| body + at + 4);
            assert_eq!(left, &input.as_bytes()[end..], "{input:?} step {step}");
        }
    }
    let latin = b"GET / HTTP/1.1\r\nHost: h\r\nX-L: caf\xe9\r\n\r\n";
    assert_eq!(parse(latin, 1).unwrap().0.fields["x-l"].as_bytes(), b"caf\xe9");
}

#[test]
fn malformed_heads_are_refused_as_the_reference_does_however_they_are_cut() {
    const PLAIN: Malformed = Malformed::Request("");
    const NAME: Malformed = Malformed::Request("invalid header name");
    for (input, what) in [
        ("hello there\r\n\r\n", PLAIN),
        ("GET /\r\n\r\n", PLAIN),
        ("GET / http/1.1\r\nHost: h\r\n\r\n", PLAIN),
        ("GET / HTTP/1.1 \r\nHost: h\r\n\r\n", PLAIN),
        ("GET  / HTTP/1.1\r\nHost: h\r\n\r\n", PLAIN),
        ("GET / x HTTP/1.1\r\nHost: h\r\n\r\n", PLAIN),
        ("G@T / HTTP/1.1\r\nHost: h\r\n\r\n", PLAIN),
        ("GET /\u{1} HTTP/1.1\r\nHost: h\r\n\r\n", PLAIN),
        ("GET path HTTP/1.1\r\nHost: h\r\n\r\n", PLAIN),
        ("GET h:443 HTTP/1.1\r\nHost: h\r\n\r\n", PLAIN),
        ("GET http:///x HTTP/1.1\r\nHost: h\r\n\r\n", PLAIN),
        ("GET / HTTP/3.0\r\nHost: h\r\n\r\n", Malformed::Version),
        ("GET / HTTP/2.0\r\nHost: h\r\n\r\n", Malformed::Version),
        ("GET / HTTP/0.9\r\nHost: h\r\n\r\n", Malformed::Version),
        ("GET / HTTP/1.1\r\n\r\n", Malformed::Request("missing required Host header")),
        ("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", PLAIN),
        ("GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", PLAIN),
        ("GET / HTTP/1.1\r\nHost: a b\r\n\r\n", Malformed::Request("malformed Host header")),
        ("GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", Malformed::Request("malformed Host header")),
        ("GET / HTTP/1.1\r\nHost: a@b\r\n\r\n", Malformed::Request("malformed Host header")),
        ("GET / HTTP/1.1\r\nHost: h\r\nX-Bad : 1\r\n\r\n", NAME),
        ("GET / HTTP/1.1\r\nHost: h\r\nX Bad: 1\r\n\r\n", NAME),
        ("GET / HTTP/1.1\r\nHost: h\r\nX-\u{e9}: 1\r\n\r\n", NAME),
        ("GET / HTTP/1.1\r\nHost: h\r\n: 1\r\n\r\n", NAME),
        ("GET / HTTP/1.1\r\nHost: h\r\nnothing\r\n\r\n", NAME),
        ("GET / HTTP/1.1\r\n Host: h\r\n\r\n", NAME),
        ("GET / HTTP/1.1\r\nHost: h\r\nX-A: a\0b\r\n\r\n", PLAIN),
        ("GET / HTTP/1.1\r\nHost: h\r\nX-A: a\rb\r\n\r\n", PLAIN),
        ("GET / HTTP/1.1\r\nHost: h\r\nX-A: a\u{7f}\r\n\r\n", PLAIN),
        ("GET / HTTP/1.1\r\nHost: h\r\nX-A: a\r\n b\rc\r\n\r\n", PLAIN),
        ("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: +2\r\n\r\nab", PLAIN),
        ("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: \r\n\r\nab", PLAIN),
        ("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 2, 2\r\n\r\nab", PLAIN),
        ("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nabc", PLAIN),
        ("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 99999999999999999999\r\n\r\n", PLAIN),
        ("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", Malformed::TransferEncoding),
        ("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: identity\r\n\r\n", Malformed::TransferEncoding),
        ("POST / HTTP/1.1\r\nHost: h\r\nExpect: magic\r\nContent-Length: 0\r\n\r\n", Malformed::Expectation),
    ] {
        for step in 1..=input.len() {
            match parse(input.as_bytes(), step) {
                Err(found) => assert_eq!(found, what, "{input:?} step {step}"),
                Ok((head, _)) => panic!("{input:?} step {step}: {}", show(&head)),
            }
        }
    }
}

#[test]
fn what_could_hide_a_second_request_is_refused() {
    let heads = [
        "Content-Length: 6\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: chunked\r\nContent-Length: 6",
        "Transfer-Encoding: chunked\r\nX: 1\r\ncontent-length: 0",
        "CONTENT-LENGTH: 6\r\ntRANSFER-eNCODING: cHUNKED",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity",
        "Transfer-Encoding: identity\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: chunked, identity",
        "Transfer-Encoding: chunked,chunked",
        "Transfer-Encoding: ,chunked",
        "Transfer-Encoding: xchunked",
        "Transfer-Encoding: chunked;q=1",
        "Transfer-Encoding: \"chunked\"",
        "Transfer-Encoding: x",
        "Transfer-Encoding:",
        "Transfer-Encoding: chunked\u{b}",
        "Transfer-Encoding: \u{b}chunked",
        "Transfer-Encoding : chunked",
        " Transfer-Encoding: chunked",
        "X: 1\r\n\tTransfer-Encoding : chunked\r\nContent-Length : 1",
        "Transfer-Encoding:\r\n chunked",
        "Transfer-Encoding: chunked\r\n , identity",
        "Transfer-Encoding\r\n: chunked",
        "Transfer-Encoding\0: chunked",
        "Transfer\u{1}-Encoding: chunked",
        "X: 1\rTransfer-Encoding: chunked",
        "X: 1\n\rTransfer-Encoding: chunked",
        "Content-Length: 0\rContent-Length: 6",
        "Content-Length: 6\r\nContent-Length: 06\r\nContent-Length: 7",
        "Content-Length: 6\r\n ,7",
        "Content-Length : 6",
        "Content-Length: 0x6",
        "Content-Length: 6 6",
        "Content-Length: 6;",
        "Content-Length: -0",
        "Content-Length: 6.0",
        "Content-Length: 6\u{b}",
        "Content-Length: \u{ff16}",
        "Content-Length: 18446744073709551622",
    ];
    for fields in heads {
        let input = format!("POST / HTTP/1.1\r\nHost: h\r\n{fields}\r\n\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\n\r\n");
        for step in [1, 2, 3, 7, input.len()] {
            if let Ok((head, _)) = parse(input.as_bytes(), step) {
                panic!("{fields:?} step {step}: {}", show(&head));
            }
        }
    }
    // HTTP/1.0 with both: refused as well.
    let input = "POST / HTTP/1.0\r\nContent-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n";
    assert!(parse(input.as_bytes(), 1).is_err());
}

#[test]
fn a_head_is_bounded_in_bytes_and_fields() {
    let of = |fields: usize| {
        let fields: String = (0..fields).map(|number| format!("X-{number}: 1\r\n")).collect();
        format!("GET / HTTP/1.1\r\nHost: h\r\n{fields}\r\n")
    };
    for (fields, ok) in [(63, true), (64, true), (500, true), (1023, true), (1024, false), (40_000, false)] {
        let found = parse(of(fields).as_bytes(), 8192).map(|(head, _)| head.fields.len());
        assert_eq!(found, if ok { Ok(fields + 1) } else { Err(Malformed::HeadTooLarge) });
    }
    for (value, ok) in [(900_000, true), (1_200_000, false)] {
        let input = format!("GET / HTTP/1.1\r\nHost: h\r\nX-Big: {}\r\n\r\n", "a".repeat(value));
        let found = parse(input.as_bytes(), 65_536).map(|_| ());
        assert_eq!(found, if ok { Ok(()) } else { Err(Malformed::HeadTooLarge) });
    }
    let long = format!("GET /{} HTTP/1.1\r\nHost: h\r\n\r\n", "a".repeat(70_000));
    assert_eq!(parse(long.as_bytes(), 65_536).map(|_| ()), Err(Malformed::TargetTooLong));
}

#[test]
fn random_bytes_never_panic_and_mutated_heads_never_yield_two_requests() {
    let seed = b"POST /p?q HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nX-A: 1\r\n 2\r\n\r\n0\r\n\r\n";
    let mut random = fastrand::Rng::with_seed(7);
    for _ in 0..40_000 {
        let mut input = seed.to_vec();
        for _ in 0..random.usize(1..4) {
            let at = random.usize(..input.len());
            match random.u8(..4) {
                0 => input[at] = random.u8(..),
                1 => input.insert(at, *random.choice(b"\r\n \t:;,\0ac").unwrap_or(&0)),
                2 if input.len() > 1 => drop(input.remove(at)),
                _ => input.truncate(at.max(1)),
            }
        }
        let (mut buffer, mut scan) = (BytesMut::from(&input[..]), Scan::default());
        let once = head(&mut buffer, &mut scan, 1 << 20).map(|head| head.as_ref().map(show));
        // In pieces: the same outcome, but for what only the whole can show.
        let (mut buffer, mut scan) = (BytesMut::new(), Scan::default());
        let mut pieces = Ok(None);
        for byte in &input {
            buffer.extend_from_slice(&[*byte]);
            pieces = head(&mut buffer, &mut scan, 1 << 20).map(|head| head.as_ref().map(show));
            if !matches!(pieces, Ok(None)) {
                break;
            }
        }
        match (&once, &pieces) {
            (Ok(once), Ok(pieces)) => assert_eq!(once, pieces, "{}", input.escape_ascii()),
            (Err(_), Err(_)) => {}
            // An error behind an unfinished line shows only when that ends.
            (Err(_), Ok(None)) => {}
            _ => panic!("{}: {once:?} but {pieces:?}", input.escape_ascii()),
        }
    }
}
