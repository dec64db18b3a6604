//! The end of an activator with all that can be present: streams, websockets,
//! requests at the pod, and requests that wait.

use rustix::process::Signal;
use std::net::SocketAddr;
use std::time::Duration;
use tests::floor::{Instance, TestApp};
use tests::front::{Chain, Front, Through};
use tests::rig::PATIENCE;
use tests::sidecar::dual::{self, Call, Reply};
use tests::sidecar::{h1, h2c};
use tests::websocket::{self, CLOSE, Socket, TEXT};
use tests::{lags::tell, rig};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, timeout};

/// `/ws` echoes, `/slow` takes 700 ms, all else is quick.
async fn app() -> SocketAddr {
    rig::app(|stream| async move {
        let mut first = [0; 7];
        while stream.peek(&mut first).await.is_ok_and(|seen| (1..7).contains(&seen)) {
            sleep(Duration::from_millis(1)).await;
        }
        if first == *b"GET /ws" {
            let mut stream = stream;
            let head = rig::read_head(&mut stream).await;
            let Ok((reader, writer)) = websocket::accept(stream, &head).await else { return };
            let _ = websocket::echo(reader, writer).await;
            return;
        }
        dual::serve(stream, |call: Call| async move {
            if call.path == "/slow" {
                sleep(Duration::from_millis(700)).await;
            }
            Reply::ok("ok")
        })
        .await;
    })
    .await
}

fn get(path: &str) -> Vec<u8> {
    format!("GET {path} HTTP/1.1\r\nhost: shop.example\r\n\r\n").into_bytes()
}

#[tokio::test]
async fn all_that_runs_and_waits_has_its_time_and_then_an_end_that_says_so() {
    let mut chain = Chain::start(Through::Sidecar, app().await, &[("CONTAINER_CONCURRENCY", "3")]);
    let mut front = Front::start("--limit 3 --shutdown-timeout 2500").unwrap();
    front.pods(&[chain.sidecar.main]).unwrap();
    let address = front.address;
    // A websocket that never ends, a stream and a request at the pod,
    let mut socket = Socket::open(address, "/ws").await.expect("a websocket");
    assert_eq!(socket.exchange(TEXT, b"hello").await.expect("an echo").payload, b"hello");
    let stream = TcpStream::connect(address).await.unwrap();
    let (mut client, connection) = h2::client::handshake(stream).await.unwrap();
    let driver = tokio::spawn(connection);
    let (running, _) = client.send_request(h2c::request("GET", "/slow"), true).unwrap();
    let slow = tokio::spawn(async move { h1::ask(address, &get("/slow")).await });
    front.until("three are at the pod", |load| load.in_flight == 3).await.unwrap();
    // and others that wait, over both protocols.
    let held: Vec<_> = (0..4).map(|_| tokio::spawn(async move { h1::ask(address, &get("/slow")).await })).collect();
    let (waiting, _) = client.send_request(h2c::request("GET", "/"), true).unwrap();
    front.until("five wait", |load| load.held == 5).await.unwrap();
    let began = Instant::now();
    front.terminate().unwrap();
    rig::until("its port is closed", || std::net::TcpStream::connect(address).is_err()).await;
    // A GOAWAY: the connection takes no new stream, and ends well after the last.
    let (running, waiting) = (h2c::read(running), h2c::read(waiting));
    let (running, waiting) = (running.await.expect("whole"), waiting.await.expect("whole"));
    assert_eq!((running.status, waiting.status), (200, 200));
    timeout(PATIENCE, driver).await.expect("it ends").unwrap().expect("a GOAWAY without an error");
    assert!(client.send_request(h2c::request("GET", "/late"), true).is_err(), "no new stream");
    let streams_ended = began.elapsed();
    assert_eq!(slow.await.unwrap().expect("an answer").status, 200);
    for answer in held {
        let answer = timeout(PATIENCE, answer).await.expect("in time").unwrap().expect("an answer");
        assert!(answer.whole && answer.status == 200, "held ones are served: {}", answer.summary());
        assert_eq!(answer.field("connection"), "close");
    }
    // The websocket has the whole time, works on, and is closed with going away.
    assert_eq!(socket.exchange(TEXT, b"still").await.expect("an echo").payload, b"still");
    let close = timeout(PATIENCE, socket.reader.next()).await.expect("in time").expect("a frame").expect("a frame");
    assert_eq!((close.opcode, close.code()), (CLOSE, Some(1001)));
    let closed = began.elapsed();
    socket.writer.send(CLOSE, &1001_u16.to_be_bytes()).await.expect("it is taken");
    assert_eq!(socket.reader.next().await.expect("a clean end"), None);
    drop(socket);
    assert_eq!(front.ended().await.unwrap(), 0);
    tell(&format!(
        "streams ended after {streams_ended:.1?}, the websocket after {closed:.1?}, exit {:.1?}",
        began.elapsed()
    ));
    assert!(streams_ended < closed && closed >= Duration::from_millis(2450), "{streams_ended:?} {closed:?}");
    assert!(chain.is_running(), "the pod is not ours to end");
}

#[tokio::test]
async fn who_still_waits_at_the_end_is_told_so() {
    let mut front = Front::start("--limit 1 --shutdown-timeout 500").unwrap();
    let address = front.address;
    let http1 = tokio::spawn(async move { h1::ask(address, &get("/")).await });
    let http2 = tokio::spawn(async move {
        let client = h2c::Client::open(address).await?;
        client.ask(h2c::request("GET", "/")).await
    });
    front.until("both wait", |load| load.held == 2).await.unwrap();
    let began = Instant::now();
    front.terminate().unwrap();
    let http1 = timeout(PATIENCE, http1).await.expect("in time").unwrap().expect("an answer");
    assert_eq!((http1.status, http1.field("x-zeroscale-reason"), http1.whole), (503, "draining", true));
    let http2 = timeout(PATIENCE, http2).await.expect("in time").unwrap().expect("an answer");
    assert_eq!((http2.status, http2.field("x-zeroscale-reason")), (503, "draining"));
    assert_eq!(front.ended().await.unwrap(), 0);
    assert!(began.elapsed() >= Duration::from_millis(500), "not before their time is over");
}

#[tokio::test]
async fn the_local_floor_tells_those_who_wait_for_an_app_that_never_comes() {
    let app = TestApp::new("--open-after 600000").unwrap();
    let mut instance =
        Instance::start("--window 6s --shutdown-timeout 500ms --stop-timeout 500ms", &app.command).await.unwrap();
    let address = instance.address;
    let waiting = tokio::spawn(async move { h1::ask(address, &get("/")).await });
    instance.until_status("it is held", |status| status.held() == 1).await.unwrap();
    instance.signal(Signal::TERM).unwrap();
    let answer = timeout(PATIENCE, waiting).await.expect("in time").unwrap().expect("an answer");
    assert_eq!((answer.status, answer.field("x-zeroscale-reason"), answer.whole), (503, "draining", true));
    let ended = instance.ended().await.unwrap();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert_eq!(instance.processes(), []);
}
