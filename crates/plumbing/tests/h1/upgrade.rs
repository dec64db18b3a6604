//! Connections that leave HTTP behind, on both sides.

use crate::raw::{Ended, Raw, scripted};
use crate::served::{Out, full, server};
use http::{Request, Response, StatusCode};
use http_body_util::BodyExt;
use plumbing::h1::{Connection, Incoming, Options};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Grants what is asked for, and then sends everything back, in capitals.
async fn shout(request: Request<Incoming>) -> Response<Out> {
    let on_upgrade = request.body().on_upgrade().expect("no upgrade was asked for");
    tokio::spawn(async move {
        let Ok(mut client) = on_upgrade.await else { return };
        let mut buffer = [0; 1000];
        while let Ok(count @ 1..) = client.read(&mut buffer).await {
            client.write_all(&buffer[..count].to_ascii_uppercase()).await.unwrap();
        }
        client.write_all(b" (end)").await.unwrap();
        client.shutdown().await.unwrap();
    });
    let mut response = full("");
    if request.method() != http::Method::CONNECT {
        *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
        response.headers_mut().insert("connection", "Upgrade".parse().unwrap());
        response.headers_mut().insert("upgrade", "shout".parse().unwrap());
    }
    response
}

const ASK: &str = "GET /ws HTTP/1.1\r\nHost: h\r\nConnection: keep-alive, Upgrade\r\nUpgrade: shout\r\n\r\n";

#[tokio::test]
async fn bytes_that_a_client_sends_before_the_switch_are_not_lost() {
    let mut server = server(shout).await;
    for (request, head) in [
        (ASK, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: shout\r\n\r\n"),
        ("CONNECT h:1 HTTP/1.1\r\nHost: h\r\n\r\n", "HTTP/1.1 200 OK\r\n\r\n"),
    ] {
        let mut client = Raw::connect(server.address).await;
        client.say(format!("{request}early")).await;
        assert_eq!(client.head().await, head);
        assert_eq!(client.exactly(5).await, b"EARLY");
        client.say(" and late").await;
        assert_eq!(client.exactly(9).await, b" AND LATE");
        // One direction may end before the other.
        client.half_close().await;
        assert_eq!(client.rest().await, (" (end)".to_owned(), Ended::Closed));
        assert_eq!(server.ended.recv().await.as_deref(), Some("upgraded"));
    }
}

#[tokio::test]
async fn what_is_refused_or_not_asked_for_is_no_upgrade() {
    let server = server(|request: Request<Incoming>| async move {
        let on_upgrade = request.body().on_upgrade();
        let asked = on_upgrade.is_some();
        if let Some(on_upgrade) = on_upgrade {
            tokio::spawn(async move { assert!(on_upgrade.await.is_err()) });
        }
        full(format!("{asked}"))
    })
    .await;
    let mut client = Raw::connect(server.address).await;
    for (fields, asked) in [
        ("Connection: Upgrade\r\nUpgrade: x\r\n", "true"),
        ("Upgrade: x\r\n", "false"),
        ("Connection: Upgrade\r\n", "false"),
    ] {
        client.say(format!("GET / HTTP/1.1\r\nHost: h\r\n{fields}\r\n")).await;
        client.head().await;
        assert_eq!(client.exactly(asked.len()).await, asked.as_bytes());
    }
    client.silent(30).await;
}

#[tokio::test]
async fn a_switch_that_nobody_asked_for_is_no_answer() {
    let server = server(|_| async {
        let mut response = full("");
        *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
        response
    })
    .await;
    let mut client = Raw::connect(server.address).await;
    client.say("GET / HTTP/1.1\r\nHost: h\r\n\r\n").await;
    assert!(client.head().await.starts_with("HTTP/1.1 502 "));
}

#[tokio::test]
async fn the_client_side_keeps_what_came_with_the_switch() {
    for (answer, method) in [("101 Switching Protocols", "GET"), ("200 OK", "CONNECT")] {
        let address = scripted(move |mut raw: Raw| async move {
            raw.until("\r\n\r\n").await;
            raw.say(format!("HTTP/1.1 {answer}\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\nbye")).await;
            assert_eq!(raw.exactly(5).await, b"hello");
            raw.half_close().await;
            assert_eq!(raw.rest().await, (" and more".to_owned(), Ended::Closed));
        })
        .await;
        let connection = Connection::new(TcpStream::connect(address).await.unwrap());
        let request = Request::builder().method(method).uri(if method == "CONNECT" { "h:1" } else { "/ws" });
        let request = request.header("host", "h").header("connection", "Upgrade").header("upgrade", "x");
        let request = request.body(full("").into_body()).unwrap();
        let mut response = connection.send(request, Options::default()).await.unwrap();
        assert!(response.body_mut().take_idle().is_none());
        let mut upgraded = response.body_mut().take_upgraded().unwrap();
        upgraded.write_all(b"hello").await.unwrap();
        let mut got = String::new();
        upgraded.read_to_string(&mut got).await.unwrap();
        assert_eq!(got, "bye");
        upgraded.write_all(b" and more").await.unwrap();
        drop(upgraded);
        assert!(response.into_body().frame().await.is_none());
    }
}
