//! Answers that come before their requests have.

use crate::raw::{Ended, Raw, SOON};
use crate::served::{full, server, server_with, streamed, text_of, with_status};
use http::{Request, Response};
use http_body_util::BodyExt;
use plumbing::h1::{Incoming, Settings};
use std::time::{Duration, Instant};
use tokio::io::AsyncWriteExt;

#[tokio::test]
async fn an_early_answer_is_given_at_once_and_the_connection_goes_on_when_the_rest_has_come() {
    for reuse_after_early_answer in [true, false] {
        let settings = Settings { reuse_after_early_answer, ..Settings::default() };
        let server = server_with(settings, |_| false, |_| async { full("early") }).await;
        let mut client = Raw::connect(server.address).await;
        client.say("POST /d HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\nabc").await;
        assert_eq!(client.head().await, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n");
        assert_eq!(client.exactly(5).await, b"early");
        client.silent(120).await;
        client.say("defghij").await;
        if reuse_after_early_answer {
            client.say("GET / HTTP/1.1\r\nHost: h\r\n\r\n").await;
            client.head().await;
            assert_eq!(client.exactly(5).await, b"early");
        } else {
            assert_eq!(client.rest().await, (String::new(), Ended::Closed));
        }
    }
}

#[tokio::test]
async fn an_early_answer_reaches_a_client_that_uploads_before_it_reads() {
    let server = server(|request: Request<Incoming>| async move {
        if request.uri() == "/some" {
            let mut body = request.into_body();
            body.frame().await.unwrap().unwrap();
        }
        with_status(413, "too large")
    })
    .await;
    for (target, framing) in [
        ("/", format!("Content-Length: {}", 2 << 20)),
        ("/some", format!("Content-Length: {}", 2 << 20)),
        ("/", "Transfer-Encoding: chunked".to_owned()),
        ("/", "Expect: 100-continue\r\nTransfer-Encoding: chunked".to_owned()),
    ] {
        let mut client = Raw::connect(server.address).await;
        client.say(format!("POST {target} HTTP/1.1\r\nHost: h\r\n{framing}\r\n\r\n")).await;
        // 2 MB, slowly: the answer is there long before the end.
        for _ in 0..32 {
            if framing.contains("chunked") {
                client.say("10000\r\n").await;
            }
            client.say(vec![b'x'; 65_536]).await;
            if framing.contains("chunked") {
                client.say("\r\n").await;
            }
            tokio::time::sleep(Duration::from_millis(3)).await;
        }
        let (text, ended) = client.rest().await;
        assert!(text.starts_with("HTTP/1.1 413 ") && text.ends_with("too large"), "{text}");
        assert_eq!(ended, Ended::Closed);
    }
}

#[tokio::test]
async fn a_malformed_requests_answer_reaches_a_client_that_goes_on_sending() {
    let server = server(|_| async { full("") }).await;
    let mut client = Raw::connect(server.address).await;
    client.say("POST / HTTP/1.1\r\n\r\n").await;
    for _ in 0..32 {
        client.say(vec![b'x'; 65_536]).await;
    }
    let (text, ended) = client.rest().await;
    assert!(text.starts_with("HTTP/1.1 400 ") && text.ends_with("missing required Host header"), "{text}");
    assert_eq!(ended, Ended::Closed);
}

#[tokio::test]
async fn both_directions_flow_at_once() {
    let server = server(|request: Request<Incoming>| async move {
        let (frames, body) = streamed();
        tokio::spawn(async move {
            let mut incoming = request.into_body();
            frames.data("first");
            while let Some(frame) = incoming.frame().await {
                frames.data(frame.unwrap().into_data().unwrap());
            }
            frames.data("last");
        });
        Response::new(body)
    })
    .await;
    let mut client = Raw::connect(server.address).await;
    client.say("POST /d HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n").await;
    client.head().await;
    assert_eq!(client.until("\r\n").await + &client.until("\r\n").await, "5\r\nfirst\r\n");
    for piece in ["abc", "def"] {
        client.say(format!("3\r\n{piece}\r\n")).await;
        assert_eq!(client.until("\r\n").await + &client.until("\r\n").await, format!("3\r\n{piece}\r\n"));
    }
    client.say("0\r\n\r\n").await;
    assert_eq!(client.until("0\r\n\r\n").await, "4\r\nlast\r\n0\r\n\r\n");
    client.say("POST /d HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n").await;
    client.until("last").await;
}

#[tokio::test]
async fn a_half_closed_client_is_answered() {
    let server = server(|request: Request<Incoming>| async move {
        tokio::time::sleep(Duration::from_millis(150)).await;
        full(text_of(request.into_body()).await.unwrap())
    })
    .await;
    for (request, wait) in [
        ("GET / HTTP/1.1\r\nHost: h\r\n\r\n", 0),
        ("GET / HTTP/1.1\r\nHost: h\r\n\r\n", 50),
        ("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\n\r\nbody", 0),
        ("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n", 50),
        ("GET / HTTP/1.1\r\nHost: h\r\n\r\nGET /2 HTTP/1.1\r\nHost: h\r\n\r\n", 0),
    ] {
        let mut client = Raw::connect(server.address).await;
        client.say(request).await;
        tokio::time::sleep(Duration::from_millis(wait)).await;
        client.half_close().await;
        let (text, ended) = client.rest().await;
        let answers = request.matches("Host").count();
        assert_eq!((text.matches("HTTP/1.1 200 OK").count(), ended), (answers, Ended::Closed), "{request:?}: {text}");
        assert_eq!(text.contains("body"), request.contains("body"));
    }
}

#[tokio::test]
async fn a_client_that_reads_nothing_while_it_is_refused_does_not_hold_the_connection_for_ever() {
    let server = server(|_| async { with_status(413, "no") }).await;
    let mut client = Raw::connect(server.address).await;
    client.say("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 99999999999\r\n\r\n").await;
    client.until("no").await;
    // It neither sends nor closes: after some quiet seconds the connection is gone.
    let began = Instant::now();
    let mut server = server;
    let how = tokio::time::timeout(SOON * 2, server.ended.recv()).await.unwrap();
    assert!(how.is_some() && began.elapsed() > Duration::from_secs(4), "{:?}", began.elapsed());
    tokio::time::sleep(Duration::from_millis(20)).await;
    let _ = client.socket.write_all(b"x").await;
    tokio::time::sleep(Duration::from_millis(20)).await;
    assert!(client.socket.write_all(b"x").await.is_err());
}
