//! Websockets through the sidecar as it ships: many, half-closed, silent, and
//! at the end of the pod.

use std::net::SocketAddr;
use std::time::Duration;
use tests::lags::tell;
use tests::program::Program;
use tests::rig::{self, GET, OK, read_head, read_to_end, read_until, send};
use tests::websocket::{self, BINARY, CLOSE, PING, PONG, SWITCH_TO_RAW, Socket, TEXT};
use tokio::io::AsyncWriteExt;
use tokio::time::{Instant, sleep, timeout};

const PATIENCE: Duration = Duration::from_secs(30);
const SOCKETS: usize = 1_000;
/// Opened at a time, so that no backlog overflows.
const AT_ONCE: usize = 50;

/// `/ws` echoes frames; `/raw` and `/first` speak no frames, see below; all
/// else answers at once.
async fn app() -> SocketAddr {
    rig::app(|mut stream| async move {
        loop {
            let head = read_head(&mut stream).await;
            let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
            match path.as_str() {
                "" => return,
                "/ws" => return websocket::serve_echo(stream, &head).await,
                "/raw" => return websocket::serve_raw(stream).await,
                // Ends first, and tells on the other connection what came later.
                "/first" => {
                    stream.write_all(SWITCH_TO_RAW).await.unwrap();
                    stream.write_all(b"that is all").await.unwrap();
                    stream.shutdown().await.unwrap();
                    assert_eq!(read_to_end(&mut stream).await, ("and this".to_owned(), true));
                    return;
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

fn raw(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: raw\r\n\r\n")
}

#[tokio::test]
async fn a_thousand_sockets_each_hold_a_slot_and_give_it_back() {
    let limit = SOCKETS.to_string();
    let program = Program::start(app().await, &[("CONTAINER_CONCURRENCY", limit.as_str())]);
    let address = program.main;
    let began = Instant::now();
    let mut sockets = Vec::new();
    while sockets.len() < SOCKETS {
        let opening: Vec<_> = (0..AT_ONCE).map(|_| tokio::spawn(Socket::open(address, "/ws"))).collect();
        for socket in opening {
            sockets.push(socket.await.unwrap().expect("a websocket"));
        }
    }
    tell(&format!("{SOCKETS} websockets open after {:.1?}", began.elapsed()));
    let mut waiting = send(address, GET).await;
    let echoes: Vec<_> = sockets
        .into_iter()
        .enumerate()
        .map(|(number, mut socket)| {
            tokio::spawn(async move {
                for turn in 0..3 {
                    let text = format!("socket {number}, turn {turn}").repeat(10);
                    let echo = socket.exchange(TEXT, text.as_bytes()).await.expect("an echo");
                    assert_eq!((echo.opcode, echo.payload.as_slice()), (TEXT, text.as_bytes()));
                }
                socket
            })
        })
        .collect();
    let mut sockets = Vec::new();
    for echo in echoes {
        sockets.push(timeout(PATIENCE, echo).await.expect("in time").expect("its own echo"));
    }
    tell(&format!("and three echoes each after {:.1?}", began.elapsed()));
    let early = timeout(Duration::from_millis(50), read_until(&mut waiting, "ok")).await;
    assert!(early.is_err(), "there is no slot left: {early:?}");
    // One slot is free, and it is enough.
    let mut one = sockets.pop().expect("a thousand");
    let close = one.exchange(CLOSE, &1000_u16.to_be_bytes()).await.expect("its close frame");
    assert_eq!(close.code(), Some(1000));
    assert_eq!(one.reader.next().await.expect("a clean end"), None);
    // Until then it is half-closed, and might go on.
    drop(one);
    assert!(read_until(&mut waiting, "ok").await.starts_with("HTTP/1.1 200"));
    // Some leave without a word.
    drop(sockets.split_off(SOCKETS / 2));
    for mut socket in sockets {
        let close = socket.exchange(CLOSE, &1000_u16.to_be_bytes()).await.expect("its close frame");
        assert_eq!(close.code(), Some(1000));
    }
    // All slots are free: as many again.
    let mut again = Vec::new();
    while again.len() < SOCKETS {
        let opening: Vec<_> = (0..AT_ONCE).map(|_| tokio::spawn(Socket::open(address, "/ws"))).collect();
        for socket in opening {
            again.push(timeout(PATIENCE, socket).await.expect("a slot").unwrap().expect("a websocket"));
        }
    }
}

#[tokio::test]
async fn pings_pass_both_ways() {
    let program = Program::start(app().await, &[]);
    let mut socket = Socket::open(program.main, "/ws").await.expect("a websocket");
    let pong = socket.exchange(PING, b"there?").await.expect("a pong");
    assert_eq!((pong.opcode, pong.payload.as_slice()), (PONG, &b"there?"[..]));
    // And from an app whose library asks by itself.
    let Some(node) = tests::apps::RealApp::node("http") else { return };
    let program = Program::start(node.address, &[]);
    let mut socket = Socket::open(program.main, "/ws").await.expect("a websocket");
    let ping = socket.exchange(TEXT, b"ping me").await.expect("a ping");
    assert_eq!((ping.opcode, ping.payload.as_slice()), (PING, &b"are you there"[..]));
    let seen = socket.exchange(PONG, &ping.payload).await.expect("it was seen");
    assert_eq!(seen.payload, b"pong: are you there");
}

#[tokio::test]
async fn a_half_closed_tunnel_goes_on_the_other_way() {
    let program = Program::start(app().await, &[("CONTAINER_CONCURRENCY", "1")]);
    let mut client = send(program.main, &raw("/raw")).await;
    assert!(read_until(&mut client, "\r\n\r\n").await.starts_with("HTTP/1.1 101"));
    client.write_all(b"hello").await.unwrap();
    client.shutdown().await.unwrap();
    assert_eq!(read_to_end(&mut client).await, ("hello true bye".to_owned(), true));
    // With the switch, or after it; the slot of the first one is free again.
    let mut client = send(program.main, &raw("/first")).await;
    let (said, ended) = read_to_end(&mut client).await;
    assert!(ended && said.ends_with("that is all"), "{said}");
    client.write_all(b"and this").await.unwrap();
    client.shutdown().await.unwrap();
    // It is, once the app has seen the rest; else it would panic and hold it.
    let mut next = send(program.main, GET).await;
    assert!(read_until(&mut next, "ok").await.starts_with("HTTP/1.1 200"));
}

#[tokio::test]
async fn silence_ends_a_socket_and_bytes_of_any_kind_are_no_silence() {
    let changes = [("REVISION_IDLE_TIMEOUT_SECONDS", "1"), ("REVISION_RESPONSE_START_TIMEOUT_SECONDS", "1")];
    let program = Program::start(app().await, &changes);
    let mut socket = Socket::open(program.main, "/ws").await.expect("a websocket");
    let mut last = Instant::now();
    for turn in 0..8 {
        sleep(Duration::from_millis(250)).await;
        last = Instant::now();
        let opcode = if turn % 2 == 0 { PING } else { BINARY };
        socket.exchange(opcode, b"x").await.expect("it lives on");
    }
    let ended = timeout(PATIENCE, socket.reader.next()).await.expect("it ends");
    // A close frame is fine, and so is an end without one.
    assert!(!matches!(&ended, Ok(Some(frame)) if frame.opcode != CLOSE), "{ended:?}");
    let silent = last.elapsed();
    assert!(silent >= Duration::from_millis(950) && silent < Duration::from_secs(4), "{silent:?}");
}

#[tokio::test]
async fn a_socket_lives_as_long_as_its_own_limit_and_not_as_a_request() {
    let changes = [("REVISION_TIMEOUT_SECONDS", "1"), ("ZEROSCALE_UPGRADE_TIMEOUT", "2s")];
    let program = Program::start(app().await, &changes);
    let began = Instant::now();
    let mut socket = Socket::open(program.main, "/ws").await.expect("a websocket");
    while matches!(socket.exchange(BINARY, b"x").await, Ok(frame) if frame.opcode == BINARY) {
        assert!(began.elapsed() < PATIENCE, "it has no limit");
        sleep(Duration::from_millis(50)).await;
    }
    let lived = began.elapsed();
    assert!(lived >= Duration::from_millis(1950) && lived < Duration::from_secs(5), "{lived:?}");
}

#[tokio::test]
async fn at_the_end_of_the_pod_a_socket_is_closed_with_going_away() {
    let changes = [("ZEROSCALE_DRAIN_SETTLE", "200ms"), ("ZEROSCALE_DRAIN_TUNNEL_TIMEOUT", "800ms")];
    let mut program = Program::start(app().await, &changes);
    let mut quiet = Socket::open(program.main, "/ws").await.expect("a websocket");
    // One whose app is in the middle of a frame most of the time.
    let mut busy = Socket::open(program.main, "/ws").await.expect("a websocket");
    let busy = tokio::spawn(async move {
        let payload = vec![7; 100_000];
        loop {
            let frame = busy.exchange(BINARY, &payload).await.expect("whole frames, and a close frame at the end");
            if frame.opcode == CLOSE {
                return (frame.code(), busy.reader.next().await.expect("a clean end"));
            }
            assert!(frame.opcode == BINARY && frame.payload == payload, "a frame of ours within the app's");
        }
    });
    let echo = quiet.exchange(TEXT, b"hello").await.expect("an echo");
    assert_eq!(echo.payload, b"hello");
    let began = Instant::now();
    program.terminate();
    let close = timeout(PATIENCE, quiet.reader.next()).await.expect("in time").expect("a frame").expect("a frame");
    assert_eq!(close.code(), Some(1001));
    assert!(began.elapsed() >= Duration::from_millis(950), "{:?}", began.elapsed());
    // As the protocol has it: the same code back, then the end.
    quiet.writer.send(CLOSE, &1001_u16.to_be_bytes()).await.expect("it is taken");
    assert_eq!(quiet.reader.next().await.expect("a clean end"), None);
    assert_eq!(timeout(PATIENCE, busy).await.expect("in time").expect("no frame was broken"), (Some(1001), None));
    assert_eq!(program.ended().await, 0);
    assert!(began.elapsed() < Duration::from_millis(5000), "{:?}", began.elapsed());
}

#[tokio::test]
async fn a_pod_that_much_holds_ends_when_it_may_and_loses_nothing() {
    match tests::pod_end::live(Duration::from_millis(100)).await {
        Ok(figures) => tell(&figures),
        Err(error) => panic!("{error:#}"),
    }
}
