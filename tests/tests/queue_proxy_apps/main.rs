//! Apps as people run them, behind the sidecar as it ships: load, streams,
//! websockets, drain.

mod client;
mod hyper_app;

use bytes::Bytes;
use client::Client;
use http::Method;
use http_body_util::BodyExt;
use std::error::Error;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use tests::apps::{EVENTS, RealApp};
use tests::lags::{Lags, tell};
use tests::program::Program;
use tests::rig::{read_until, send};
use tests::testapp::monotonic_ns;
use tests::websocket::{BINARY, CLOSE, Socket, TEXT};
use tokio::io::AsyncWriteExt;
use tokio::time::sleep;

const CLIENTS: usize = 20;
const REQUESTS_EACH: usize = 50;
const BODY_BYTES: usize = 20_000;

#[tokio::test]
async fn uvicorn() {
    let Some(app) = RealApp::uvicorn() else { return };
    serves("uvicorn", app.address).await;
    socket_of_large_frames("uvicorn", app.address).await;
}

#[tokio::test]
async fn gunicorn() {
    let Some(app) = RealApp::gunicorn() else { return };
    serves("gunicorn", app.address).await;
}

#[tokio::test]
async fn node_with_express() {
    let Some(app) = RealApp::node("express") else { return };
    serves("express", app.address).await;
    socket_of_large_frames("express with ws", app.address).await;
}

#[tokio::test]
async fn node_without_a_framework() {
    let Some(app) = RealApp::node("http") else { return };
    serves("node", app.address).await;
}

#[tokio::test]
async fn rust_with_hyper() {
    let app = hyper_app::start().await;
    serves("hyper", app).await;
    socket_of_large_frames("hyper", app).await;
}

async fn serves(name: &str, app: SocketAddr) {
    load(name, app).await;
    stream(name, app).await;
    drain(name, app).await;
}

/// Clients that keep their connections, GET and POST in turn; with a limit, so
/// that requests wait for each other too.
async fn load(name: &str, app: SocketAddr) {
    let changes = [("CONTAINER_CONCURRENCY", "10"), ("ZEROSCALE_QUEUE_DEPTH", "100")];
    let program = Program::start(app, &changes);
    let (address, began) = (program.main, Instant::now());
    let clients: Vec<_> = (0..CLIENTS)
        .map(|number| {
            tokio::spawn(async move {
                let mut client = Client::open(address).await.expect("it listens");
                for turn in 0..REQUESTS_EACH {
                    let body = Bytes::from(format!("{number} {turn} ").repeat(BODY_BYTES / 5));
                    let (status, answer) = match turn % 2 {
                        0 => client.get("/").await,
                        _ => client.ask(Method::POST, "/echo", body.clone()).await,
                    }
                    .unwrap_or_else(|error| panic!("client {number}, request {turn}: {error:?}"));
                    assert_eq!(status, 200, "client {number}, request {turn}: {answer:?}");
                    assert!(answer == if turn % 2 == 0 { Bytes::from("ok") } else { body }, "another's body");
                }
            })
        })
        .collect();
    for client in clients {
        client.await.expect("no request is lost");
    }
    let each_second = (CLIENTS * REQUESTS_EACH) as f64 / began.elapsed().as_secs_f64();
    tell(&format!("{name}: {} requests, {each_second:.0} a second", CLIENTS * REQUESTS_EACH));
}

/// Server-sent events, each of which is seen when it is sent.
async fn stream(name: &str, app: SocketAddr) {
    let program = Program::start(app, &[]);
    let mut client = Client::open(program.main).await.expect("it listens");
    let answer = client.begin(Method::GET, "/stream", Bytes::new()).await.expect("an answer");
    assert_eq!(
        answer.headers()["content-type"].as_bytes().split(|&b| b == b';').next(),
        Some(&b"text/event-stream"[..])
    );
    let (mut body, mut lags, mut text) = (answer.into_body(), Lags::default(), String::new());
    while let Some(frame) = body.frame().await {
        let data = frame.expect("it is not cut").into_data().expect("no trailers");
        text.push_str(std::str::from_utf8(&data).expect("text"));
        while let Some((event, rest)) = text.split_once("\n\n") {
            let sent = event.strip_prefix("data: ").and_then(|event| event.split(' ').next()).expect("an event");
            lags.seen(sent.parse().expect("a time"));
            text = rest.to_owned();
        }
    }
    lags.judge(&format!("{name}, events"), EVENTS);
}

/// TERM while requests run, come, and go on kept connections: none is lost.
async fn drain(name: &str, app: SocketAddr) {
    // Steady requests put the end of the quiet time off, to two thirds of this.
    let mut program = Program::start(app, &[("REVISION_TIMEOUT_SECONDS", "5")]);
    let address = program.main;
    let work = move || {
        tokio::spawn(async move {
            let mut client = Client::open(address).await.expect("it listens");
            client.get("/work/3000").await.expect("it is not lost")
        })
    };
    let mut running = Vec::new();
    for _ in 0..8 {
        running.push(work());
    }
    let steady: Vec<_> = (0..4).map(|_| tokio::spawn(until_closed(address))).collect();
    sleep(Duration::from_millis(150)).await;
    let began = Instant::now();
    program.terminate();
    sleep(Duration::from_millis(1200)).await;
    // Somebody has not heard yet; they end after the port has closed.
    for _ in 0..8 {
        running.push(work());
    }
    assert_eq!(program.ended().await, 0);
    let took = began.elapsed();
    for request in running {
        assert_eq!(request.await.expect("it is not lost"), (200, Bytes::from("done")));
    }
    let mut served = 0;
    for client in steady {
        served += client.await.expect("none is lost");
    }
    tell(&format!("{name}: drained in {took:.1?}, {served} requests on kept connections"));
    assert!(served > 20, "{served}");
    // The latest began after 1.2 s and took 3 s.
    assert!(took >= Duration::from_millis(4100) && took < Duration::from_secs(8), "{took:?}");
}

/// Asks again and again on one connection, until it is closed between two
/// requests; how often there was an answer.
async fn until_closed(address: SocketAddr) -> u32 {
    let mut client = Client::open(address).await.expect("it listens");
    let mut served = 0;
    loop {
        match client.get("/").await {
            Ok((status, body)) => assert_eq!((status, body), (200, Bytes::from("ok"))),
            // Closed; or closed while this one was on its way, which every
            // client of HTTP/1.1 has to expect of an idle connection.
            Err(error) => {
                let before_an_answer = error.is_canceled() || error.is_incomplete_message() || error.is_closed();
                assert!(before_an_answer || is_reset(&error), "{error:?}");
                return served;
            }
        }
        served += 1;
        sleep(Duration::from_millis(20)).await;
    }
}

fn is_reset(error: &hyper::Error) -> bool {
    let cause = error.source().and_then(|cause| cause.downcast_ref::<io::Error>());
    cause.is_some_and(|cause| matches!(cause.kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe))
}

/// 1 MiB there and back, several on the way at once, and a clean end.
async fn socket_of_large_frames(name: &str, app: SocketAddr) {
    const FRAMES: u8 = 16;
    let program = Program::start(app, &[("CONTAINER_CONCURRENCY", "1")]);
    let Socket { mut reader, mut writer } = Socket::open(program.main, "/ws").await.expect("a websocket");
    let began = Instant::now();
    let sending = tokio::spawn(async move {
        for number in 0..FRAMES {
            writer.send(BINARY, &vec![number; 1 << 20]).await.expect("it is taken");
        }
        writer.send(TEXT, b"that is all").await.expect("it is taken");
        writer
    });
    for number in 0..FRAMES {
        let mut echo = Vec::new();
        while echo.len() < 1 << 20 {
            let frame = reader.next().await.expect("a frame").expect("it goes on");
            // A server may ask whether we are there, and split messages.
            if frame.opcode <= BINARY {
                echo.extend(frame.payload);
            }
        }
        assert!(echo.len() == 1 << 20 && echo.iter().all(|&byte| byte == number), "{name}: frame {number} differs");
    }
    let last = reader.next().await.expect("a frame").expect("it goes on");
    assert_eq!((last.opcode, last.payload.as_slice()), (TEXT, &b"that is all"[..]));
    let mut writer = sending.await.expect("all was sent");
    tell(&format!("{name}: {FRAMES} frames of 1 MiB both ways in {:.1?}", began.elapsed()));
    writer.send(CLOSE, &1000_u16.to_be_bytes()).await.expect("it is taken");
    let close = reader.next().await.expect("a frame").expect("its close frame");
    assert_eq!(close.code(), Some(1000));
    assert_eq!(reader.next().await.expect("a clean end"), None);
    // The one slot is free again.
    drop(writer);
    let mut next = Client::open(program.main).await.expect("it listens");
    assert_eq!(next.get("/").await.expect("an answer").0, 200);
}

#[tokio::test]
async fn single_bytes_are_passed_on_at_once_in_both_directions() {
    let Some(app) = RealApp::uvicorn() else { return };
    let program = Program::start(app.address, &[]);
    let mut client = Client::open(program.main).await.expect("it listens");
    let mut body = client.begin(Method::GET, "/bytes", Bytes::new()).await.expect("an answer").into_body();
    let (mut seen, mut times) = (Vec::new(), Vec::new());
    while let Some(frame) = body.frame().await {
        let data = frame.expect("it is not cut").into_data().expect("no trailers");
        match (data.as_ref(), times.is_empty()) {
            (b"x", true) => seen.push(monotonic_ns()),
            _ => times.extend_from_slice(&data),
        }
    }
    let sent: Vec<u64> = serde_json::from_slice(&times).expect("when each was sent");
    lags("a byte each, to the client", &sent, &seen);
    // And the other way, as chunks of HTTP/1.1.
    let head = "POST /received HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n";
    let mut stream = send(program.main, head).await;
    stream.set_nodelay(true).expect("a socket");
    let mut sent = Vec::new();
    for _ in 0..EVENTS {
        sent.push(monotonic_ns());
        stream.write_all(b"1\r\nx\r\n").await.expect("it is taken");
        sleep(Duration::from_millis(200)).await;
    }
    stream.write_all(b"0\r\n\r\n").await.expect("it is taken");
    let answer = read_until(&mut stream, "]]").await;
    let list = &answer[answer.find("[[").expect("a list")..answer.find("]]").expect("its end") + 2];
    let received: Vec<(u64, u64)> = serde_json::from_str(list).expect("when each came");
    assert!(received.iter().all(|&(_, length)| length == 1), "{received:?}");
    let seen: Vec<u64> = received.iter().map(|&(when, _)| when).collect();
    lags("a byte each, to the app", &sent, &seen);
}

fn lags(what: &str, sent: &[u64], seen: &[u64]) {
    let mut lags = Lags::default();
    assert_eq!(sent.len(), seen.len(), "{what}: none is joined with another");
    sent.iter().zip(seen).for_each(|(sent, seen)| lags.add(seen.saturating_sub(*sent)));
    lags.judge(what, EVENTS);
}
