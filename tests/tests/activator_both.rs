//! What is no plain request, through activator and sidecar together, with the
//! pod there and from zero.

use std::net::SocketAddr;
use std::time::Duration;
use tests::apps::{RealApp, grpc_client};
use tests::front::{Chain, Through};
use tests::lags::{Lags, tell};
use tests::rig::{self, OK, read_head, read_to_end, read_until, send};
use tests::sidecar::h1::Conn;
use tests::testapp::monotonic_ns;
use tests::websocket::{self, CLOSE, PING, PONG, Socket, TEXT};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::sleep;

const WAYS: [Through; 2] = [Through::Both, Through::BothFromZero];

const SWITCH: &[u8] = b"HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: raw\r\n\r\n";
const EVENTS: usize = 10;

/// `/ws` echoes frames, `/raw` speaks bytes, `/events` streams, `/upload`
/// counts a body, all else answers at once.
async fn app() -> SocketAddr {
    rig::app(|mut stream| async move {
        loop {
            let head = read_head(&mut stream).await;
            let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
            match path.as_str() {
                "" => return,
                "/ws" => {
                    let Ok((reader, writer)) = websocket::accept(stream, &head).await else { return };
                    let _ = websocket::echo(reader, writer).await;
                    return;
                }
                "/raw" => {
                    stream.write_all(SWITCH).await.unwrap();
                    let (said, ended) = read_to_end(&mut stream).await;
                    let _ = stream.write_all(format!("{said} {ended} bye").as_bytes()).await;
                    return;
                }
                "/events" => {
                    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
                    stream.write_all(head.as_bytes()).await.unwrap();
                    for _ in 0..EVENTS {
                        sleep(Duration::from_millis(50)).await;
                        let event = format!("data: {}\n\n", monotonic_ns());
                        stream.write_all(event.as_bytes()).await.unwrap();
                    }
                    return;
                }
                "/upload" => {
                    if head.contains("expect: 100-continue") {
                        stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").await.unwrap();
                    }
                    let length = head.split("content-length: ").nth(1).and_then(|rest| rest.lines().next());
                    let mut body = vec![0; length.and_then(|length| length.parse().ok()).unwrap_or(0)];
                    stream.read_exact(&mut body).await.unwrap();
                    let said = body.len().to_string();
                    let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{said}", said.len());
                    stream.write_all(answer.as_bytes()).await.unwrap();
                }
                _ => {
                    if stream.write_all(OK).await.is_err() {
                        return;
                    }
                }
            }
        }
    })
    .await
}

#[tokio::test]
async fn websockets() {
    for way in WAYS {
        let chain = Chain::start(way, app().await, &[]);
        let mut socket = Socket::open(chain.main, "/ws").await.expect("a websocket");
        for turn in 0..3 {
            let text = format!("turn {turn}").repeat(10_000);
            let echo = socket.exchange(TEXT, text.as_bytes()).await.expect("an echo");
            assert_eq!((echo.opcode, echo.payload.as_slice()), (TEXT, text.as_bytes()), "{way:?}");
        }
        assert_eq!(socket.exchange(PING, b"there?").await.expect("a pong").opcode, PONG, "{way:?}");
        let close = socket.exchange(CLOSE, &1000_u16.to_be_bytes()).await.expect("its close frame");
        assert_eq!(close.code(), Some(1000), "{way:?}");
        assert_eq!(socket.reader.next().await.expect("a clean end"), None, "{way:?}");
        drop(socket);
        let mut front = chain.front.expect("an activator");
        front.until("its slot is free again", |load| load.in_flight == 0).await.unwrap();
    }
}

#[tokio::test]
async fn events_are_passed_on_one_by_one() {
    for way in WAYS {
        let chain = Chain::start(way, app().await, &[]);
        let mut client = send(chain.main, "GET /events HTTP/1.1\r\nhost: a\r\n\r\n").await;
        let mut lags = Lags::default();
        let (mut seen, mut rest, mut count) = (String::new(), String::new(), 0);
        while count < EVENTS {
            seen.push_str(&read_until(&mut client, "\n\n").await);
            rest.push_str(&std::mem::take(&mut seen));
            while let Some((_, after)) = rest.split_once("data: ") {
                let Some((sent, after)) = after.split_once("\n\n") else { break };
                lags.seen(sent.parse().expect("a time"));
                rest = after.to_owned();
                count += 1;
            }
        }
        lags.judge(&format!("events, {way:?}"), EVENTS);
    }
}

#[tokio::test]
async fn a_half_closed_tunnel_and_a_half_closed_request_go_on() {
    for way in WAYS {
        let chain = Chain::start(way, app().await, &[]);
        let mut client = send(chain.main, "GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n").await;
        client.shutdown().await.unwrap();
        let (answer, ended) = read_to_end(&mut client).await;
        assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("ok") && ended, "{way:?}: {answer}");
        let upgrade = "GET /raw HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: raw\r\n\r\n";
        let mut client = send(chain.main, upgrade).await;
        assert!(read_until(&mut client, "\r\n\r\n").await.starts_with("HTTP/1.1 101"), "{way:?}");
        client.write_all(b"hello").await.unwrap();
        client.shutdown().await.unwrap();
        assert_eq!(read_to_end(&mut client).await, ("hello true bye".to_owned(), true), "{way:?}");
    }
}

#[tokio::test]
async fn a_client_that_waits_to_be_asked_for_its_body_is_asked_once() {
    for way in WAYS {
        // Within the prefix that is kept, and beyond it.
        for length in [1_000, 100_000] {
            let chain = Chain::start(way, app().await, &[]);
            let head =
                format!("POST /upload HTTP/1.1\r\nhost: a\r\ncontent-length: {length}\r\nexpect: 100-continue\r\n\r\n");
            let mut client = send(chain.main, &head).await;
            let asked = read_head(&mut client).await;
            assert!(asked.starts_with("HTTP/1.1 100"), "{way:?}, {length}: {asked}");
            client.write_all(&vec![b'x'; length]).await.unwrap();
            let mut conn = Conn::over(client);
            let head = conn.head().await.expect("an answer");
            assert_eq!(head.status(), Some(200), "{way:?}, {length}: one 100 and no more");
        }
    }
}

/// A scenario of `grpc_client.py` through both; what it saw.
async fn grpc(way: Through, app: SocketAddr, scenario: &'static str) -> serde_json::Value {
    let chain = Chain::start(way, app, &[]);
    let main = chain.main;
    let output = tokio::task::spawn_blocking(move || {
        let mut command = grpc_client(main, scenario).expect("what runs the app runs the client");
        command.output().expect("it runs")
    });
    let output = output.await.expect("it ends");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{way:?} {scenario}: {text}");
    tell(&format!("{way:?}, grpc {scenario}: {}", text.trim()));
    serde_json::from_str(text.trim()).expect("it says what it saw")
}

#[tokio::test]
async fn grpc_of_all_four_kinds() {
    let Some(app) = RealApp::grpc() else { return };
    for way in WAYS {
        let calls = ["unary", "client_stream", "server_stream", "both_ways", "half"].map(|scenario| {
            let address = app.address;
            tokio::spawn(grpc(way, address, scenario))
        });
        let mut seen = Vec::new();
        for call in calls {
            seen.push(call.await.expect("it is seen"));
        }
        let [unary, client_stream, server_stream, both_ways, half] = &seen[..] else { panic!("five") };
        assert_eq!((unary["good"].as_u64(), &unary["large"]), (Some(200), &true.into()), "{way:?}");
        assert_eq!(client_stream["sum"], 199 * 200 / 2, "{way:?}");
        for (stream, lags) in [(server_stream, "lags"), (both_ways, "there"), (both_ways, "back")] {
            assert_eq!(stream["code"], "OK", "{way:?}");
            // Each message by itself, before the next one is sent: 200 ms later.
            let lags: Vec<u64> = stream[lags].as_array().expect("lags").iter().filter_map(|lag| lag.as_u64()).collect();
            let mut sorted = lags.clone();
            sorted.sort_unstable();
            assert!(lags.len() == 10 && sorted[5] < 100_000_000, "{way:?}: {lags:?}");
        }
        assert_eq!((&half["code"], &half["messages"]), (&"DATA_LOSS".into(), &serde_json::json!(["one", "two"])));
    }
}
