//! Heads, keep-alive, pipelining, limits, draining.

use crate::raw::{Ended, Raw};
use crate::served::{full, server, server_with, text_of, with_status};
use http::Request;
use plumbing::h1::{Incoming, Settings};
use std::time::{Duration, Instant};

/// Says what it saw.
async fn echo(request: Request<Incoming>) -> http::Response<crate::served::Out> {
    let line = format!("{} {} {:?}", request.method(), request.uri(), request.version());
    match text_of(request.into_body()).await {
        Ok(text) => full(format!("{line} {text}")),
        Err(error) => with_status(400, error),
    }
}

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: ";

#[tokio::test]
async fn requests_follow_each_other_on_a_connection() {
    let server = server(echo).await;
    let mut client = Raw::connect(server.address).await;
    for number in 0..3 {
        client.say(format!("GET /{number} HTTP/1.1\r\nHost: h\r\n\r\n")).await;
        assert_eq!(client.head().await, format!("{OK}16\r\n\r\n"));
        assert_eq!(client.exactly(16).await, format!("GET /{number} HTTP/1.1 ").as_bytes());
    }
    client.say("POST /p HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello").await;
    let (text, ended) = client.rest().await;
    assert!(text.contains("Connection: close\r\n") && text.ends_with("POST /p HTTP/1.1 hello"), "{text}");
    assert_eq!(ended, Ended::Closed);
}

#[tokio::test]
async fn pipelined_requests_are_answered_in_order_bodies_and_all() {
    let server = server(|request: Request<Incoming>| async move {
        // The first takes longest.
        let wait = 60u64.saturating_sub(request.uri().path().len() as u64 * 20);
        tokio::time::sleep(Duration::from_millis(wait)).await;
        echo(request).await
    })
    .await;
    let mut client = Raw::connect(server.address).await;
    let all = "POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc\
        POST /bb HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\ndef\r\n0\r\nX-T: 1\r\n\r\n\r\n\
        GET /ccc HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n";
    client.say(all).await;
    let (text, ended) = client.rest().await;
    let bodies = ["POST /a HTTP/1.1 abc", "POST /bb HTTP/1.1 def|x-t=1", "GET /ccc HTTP/1.1 "];
    let places: Vec<_> = bodies.iter().map(|body| text.find(body).unwrap_or_else(|| panic!("{text}"))).collect();
    assert!(places.is_sorted(), "{text}");
    assert_eq!((text.matches("HTTP/1.1 200 OK").count(), ended), (3, Ended::Closed));
}

#[tokio::test]
async fn pipelined_requests_are_the_same_however_they_are_cut() {
    let server = server(echo).await;
    let all = "POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc\
        POST /b HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\ndef\r\n0\r\n\r\n\
        GET /c HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n";
    for cut in 1..all.len() {
        let mut client = Raw::connect(server.address).await;
        client.say(&all[..cut]).await;
        tokio::time::sleep(Duration::from_millis(1)).await;
        client.say(&all[cut..]).await;
        let (text, ended) = client.rest().await;
        let found =
            ["POST /a HTTP/1.1 abc", "POST /b HTTP/1.1 def", "GET /c HTTP/1.1 "].map(|body| text.contains(body));
        assert_eq!((found, ended), ([true; 3], Ended::Closed), "cut at {cut}: {text}");
    }
}

#[tokio::test]
async fn malformed_requests_are_answered_as_the_reference_does_and_the_connection_ends() {
    let server = server(echo).await;
    for (request, status, text) in [
        ("hello there\r\n\r\n", "400 Bad Request", "400 Bad Request"),
        ("GET / HTTP/1.1\r\n\r\n", "400 Bad Request", "400 Bad Request: missing required Host header"),
        ("GET / HTTP/1.1\r\nHost: a/\r\n\r\n", "400 Bad Request", "400 Bad Request: malformed Host header"),
        ("GET / HTTP/1.1\r\nHost: h\r\nX-Bad : 1\r\n\r\n", "400 Bad Request", "400 Bad Request: invalid header name"),
        (
            "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nX",
            "400 Bad Request",
            "400 Bad Request",
        ),
        (
            "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
            "501 Not Implemented",
            "Unsupported transfer encoding",
        ),
        (
            "GET / HTTP/3.0\r\nHost: h\r\n\r\n",
            "505 HTTP Version Not Supported",
            "505 HTTP Version Not Supported: unsupported protocol version",
        ),
        (
            "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
            "502 Bad Gateway",
            "invalid byte in chunk length\n",
        ),
    ] {
        let mut client = Raw::connect(server.address).await;
        // What comes behind must not be served.
        client.say(format!("{request}GET /smuggled HTTP/1.1\r\nHost: h\r\n\r\n")).await;
        let (got, ended) = client.rest().await;
        let length = text.len();
        let expected = format!(
            "HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nx-zeroscale-reason: malformed\r\n\
             Content-Length: {length}\r\nConnection: close\r\n\r\n{text}"
        );
        assert_eq!((got, ended), (expected, Ended::Closed), "{request:?}");
    }
    let mut client = Raw::connect(server.address).await;
    client.say("POST /e HTTP/1.1\r\nHost: h\r\nExpect: magic\r\nContent-Length: 0\r\n\r\n").await;
    let (got, ended) = client.rest().await;
    assert!(got.starts_with("HTTP/1.1 417 Expectation Failed\r\n") && got.contains("Content-Length: 0\r\n"), "{got}");
    assert_eq!(ended, Ended::Closed);
}

#[tokio::test]
async fn a_head_may_be_large_but_not_too_large() {
    let server = server(echo).await;
    for (bytes, start) in [(900_000, "HTTP/1.1 200 OK"), (1_200_000, "HTTP/1.1 431 ")] {
        let mut client = Raw::connect(server.address).await;
        client.say(format!("GET / HTTP/1.1\r\nHost: h\r\nX-Big: {}\r\n\r\n", "a".repeat(bytes))).await;
        assert!(client.head().await.starts_with(start));
    }
}

#[tokio::test]
async fn a_slow_head_ends_the_connection_and_an_idle_connection_stays() {
    let settings = Settings { head_timeout: Duration::from_millis(150), ..Settings::default() };
    let server = server_with(settings, |_| false, echo).await;
    for beginning in ["", "GET / HTTP/1.1\r\nX-A: "] {
        let began = Instant::now();
        let mut client = Raw::connect(server.address).await;
        client.say(beginning).await;
        assert_eq!(client.rest().await, (String::new(), Ended::Closed));
        let took = began.elapsed();
        assert!(took >= Duration::from_millis(150) && took < Duration::from_millis(400), "{took:?}");
    }
    let mut client = Raw::connect(server.address).await;
    client.say("GET / HTTP/1.1\r\nHost: h\r\n\r\n").await;
    client.until("GET / HTTP/1.1 ").await;
    client.silent(400).await;
    // From the first byte on, the limit runs again; bytes that drip do not stop it.
    let began = Instant::now();
    for byte in "GET /".chars() {
        client.say(byte.to_string()).await;
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(client.rest().await, (String::new(), Ended::Closed));
    assert!(began.elapsed() < Duration::from_millis(300));
}

#[tokio::test]
async fn draining_ends_idle_connections_and_finishes_what_is_served() {
    let server = server(|request: Request<Incoming>| async move {
        tokio::time::sleep(Duration::from_millis(150)).await;
        echo(request).await
    })
    .await;
    let (mut fresh, mut idle) = (Raw::connect(server.address).await, Raw::connect(server.address).await);
    idle.say("GET /1 HTTP/1.1\r\nHost: h\r\n\r\n").await;
    idle.until("GET /1 HTTP/1.1 ").await;
    let mut busy = Raw::connect(server.address).await;
    busy.say("GET /2 HTTP/1.1\r\nHost: h\r\n\r\n").await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    server.drain.send(true).unwrap();
    let soon = Duration::from_millis(60);
    assert_eq!(idle.rest_within(soon).await, (String::new(), Ended::Closed));
    assert_eq!(fresh.rest_within(soon).await, (String::new(), Ended::Closed));
    let (text, ended) = busy.rest().await;
    assert!(text.contains("Connection: close\r\n") && text.ends_with("GET /2 HTTP/1.1 "), "{text}");
    assert_eq!(ended, Ended::Closed);
}

#[tokio::test]
async fn http10_is_answered_as_such() {
    let server = server(echo).await;
    let mut client = Raw::connect(server.address).await;
    client.say("GET / HTTP/1.0\r\n\r\n").await;
    let (text, ended) = client.rest().await;
    assert!(text.starts_with("HTTP/1.0 200 OK\r\n") && !text.contains("Connection:"), "{text}");
    assert_eq!(ended, Ended::Closed);
    let mut client = Raw::connect(server.address).await;
    for _ in 0..2 {
        client.say("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n").await;
        assert!(client.head().await.contains("Connection: keep-alive\r\n"));
        client.until("HTTP/1.0 ").await;
    }
    client.silent(100).await;
    // A coding is ignored; what would be its chunks is never a request.
    client.say("POST / HTTP/1.0\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /s HTTP/1.1\r\nHost: h\r\n\r\n").await;
    let (text, ended) = client.rest().await;
    assert_eq!(
        (text.matches("HTTP/1.0 200 OK").count(), text.contains("/s"), ended),
        (1, false, Ended::Closed),
        "{text}"
    );
}

#[tokio::test]
async fn the_preface_of_http2_is_handed_back_with_what_was_read() {
    let mut server = server(echo).await;
    let mut client = Raw::connect(server.address).await;
    for piece in ["PRI * HT", "TP/2.0\r\n\r\nSM", "\r\n\r\nframes"] {
        client.say(piece).await;
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let how = server.ended.recv().await.unwrap();
    assert!(how.starts_with("http2 PRI * HTTP/2.0\\r\\n\\r\\nSM\\r\\n\\r\\n"), "{how}");
    // Only at the beginning, and only whole.
    let mut client = Raw::connect(server.address).await;
    client.say("PRI / HTTP/1.1\r\nHost: h\r\n\r\n").await;
    client.until("PRI / HTTP/1.1 ").await;
    client.say("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await;
    assert!(client.head().await.starts_with("HTTP/1.1 505 "));
}
