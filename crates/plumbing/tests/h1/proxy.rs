//! Both sides joined as a proxy joins them.

use crate::raw::{Ended, Raw, SOON, scripted};
use crate::served::{Out, Server, full, server, wheel, with_status};
use http::{HeaderMap, Request, Response, StatusCode};
use http_body_util::BodyExt;
use plumbing::h1::{Connection, Hold, Incoming, Options};
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use tokio::net::TcpStream;

async fn forward(app: SocketAddr, mut hold: Hold, request: Request<Incoming>) -> Response<Out> {
    let interim = request.body().interim();
    let on_upgrade = request.body().on_upgrade();
    let Ok(socket) = TcpStream::connect(app).await else { return with_status(502, "") };
    socket.set_nodelay(true).unwrap();
    let mut relay = |status: StatusCode, fields: HeaderMap| {
        interim.send(status, &fields);
    };
    let options = Options { on_interim: Some(&mut relay), hold_body: Some(&mut hold), ..Options::default() };
    let request = request.map(|body| body.map_err(|error| error.to_string()).boxed_unsync());
    let mut response = match Connection::new(socket).send(request, options).await {
        Ok(response) => response,
        Err(_) => return with_status(502, ""),
    };
    if response.status() == StatusCode::SWITCHING_PROTOCOLS
        && let (Some(client), Some(mut app)) = (on_upgrade, response.body_mut().take_upgraded())
    {
        tokio::spawn(async move {
            let mut client = client.await.unwrap();
            let _ = tokio::io::copy_bidirectional(&mut client, &mut app).await;
        });
        return response.map(|_| full("").into_body());
    }
    response.map(|body| body.map_err(|error| error.to_string()).boxed_unsync())
}

async fn proxy(app: SocketAddr) -> Server {
    server(move |request| forward(app, Hold::No, request)).await
}

#[tokio::test]
async fn trailers_and_chunks_pass_both_ways() {
    let app = scripted(|mut raw: Raw| async move {
        let head = raw.until("\r\n\r\n").await;
        let body = raw.until("\r\n\r\n").await;
        assert!(
            head.contains("Transfer-Encoding: chunked\r\n") && body.ends_with("0\r\nX-T: tv\r\n\r\n"),
            "{head}{body}"
        );
        raw.say(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n3\r\nabc\r\n0\r\nX-Sum: 7\r\n\r\n",
        )
        .await;
    })
    .await;
    let mut client = Raw::connect(proxy(app).await.address).await;
    let request = "POST /p HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nTrailer: X-T\r\n\r\n5\r\nhello\r\n6;ext=1\r\n world\r\n0\r\nX-T: tv\r\n\r\n";
    client.say(request).await;
    assert_eq!(client.head().await, "HTTP/1.1 200 OK\r\nTrailer: X-Sum\r\nTransfer-Encoding: chunked\r\n\r\n");
    assert_eq!(client.until("\r\n\r\n").await, "3\r\nabc\r\n0\r\nX-Sum: 7\r\n\r\n");
}

#[tokio::test]
async fn expect_is_answered_once_whether_the_app_says_100_or_not() {
    for says in ["", "HTTP/1.1 100 Continue\r\n\r\n"] {
        let app = scripted(move |mut raw: Raw| async move {
            assert!(raw.until("\r\n\r\n").await.contains("Expect: 100-continue\r\n"));
            raw.say(says).await;
            assert_eq!(raw.exactly(4).await, b"body");
            raw.say("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").await;
        })
        .await;
        let mut client = Raw::connect(proxy(app).await.address).await;
        let began = Instant::now();
        client.say("POST /e HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n").await;
        assert_eq!(client.until("\r\n\r\n").await, "HTTP/1.1 100 Continue\r\n\r\n");
        client.silent(50).await;
        client.say("body").await;
        assert!(client.head().await.starts_with("HTTP/1.1 200 OK\r\n"));
        client.until("ok").await;
        assert!(began.elapsed() < Duration::from_millis(300));
    }
}

#[tokio::test]
async fn an_app_that_refuses_is_heard_before_the_body_is_asked_for() {
    let app = scripted(|mut raw: Raw| async move {
        raw.until("\r\n\r\n").await;
        tokio::time::sleep(Duration::from_millis(20)).await;
        raw.say("HTTP/1.1 401 Unauthorized\r\nContent-Length: 2\r\n\r\nno").await;
    })
    .await;
    let wheel = wheel();
    let held =
        server(move |request| forward(app, Hold::UntilContinueOr(wheel.sleep(Duration::from_millis(500))), request));
    let mut client = Raw::connect(held.await.address).await;
    client.say("POST /e HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n").await;
    let (text, ended) = client.rest().await;
    assert!(text.starts_with("HTTP/1.1 401 ") && text.ends_with("no"), "{text}");
    assert_eq!(ended, Ended::Closed);
}

#[tokio::test]
async fn hints_pass_before_the_answer() {
    let app = scripted(|mut raw: Raw| async move {
        raw.until("\r\n\r\n").await;
        raw.say("HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\n").await;
        tokio::time::sleep(Duration::from_millis(100)).await;
        raw.say("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").await;
    })
    .await;
    let mut client = Raw::connect(proxy(app).await.address).await;
    client.say("GET /h HTTP/1.1\r\nHost: h\r\n\r\n").await;
    let began = Instant::now();
    assert_eq!(client.head().await, "HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\n");
    assert!(began.elapsed() < Duration::from_millis(80));
    client.head().await;
    assert_eq!(client.exactly(2).await, b"ok");
}

#[tokio::test]
async fn an_early_answer_passes_a_running_upload() {
    let app = scripted(|mut raw: Raw| async move {
        raw.until("\r\n\r\n").await;
        raw.say("HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\n\r\nbig").await;
        // It does not read the rest, and closes on it.
        tokio::time::sleep(Duration::from_millis(50)).await;
    })
    .await;
    let mut client = Raw::connect(proxy(app).await.address).await;
    client.say(format!("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: {}\r\n\r\n", 2 << 20)).await;
    for _ in 0..32 {
        client.say(vec![b'x'; 65_536]).await;
        tokio::time::sleep(Duration::from_millis(4)).await;
    }
    let (text, ended) = client.rest().await;
    assert!(text.starts_with("HTTP/1.1 413 ") && text.ends_with("big"), "{text}");
    assert_eq!(ended, Ended::Closed);
}

#[tokio::test]
async fn two_way_streams_do_not_block_each_other() {
    let app = scripted(|mut raw: Raw| async move {
        raw.until("3\r\nabc\r\n").await;
        raw.say("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n").await;
        raw.until("3\r\ndef\r\n0\r\n\r\n").await;
        raw.say("4\r\nlast\r\n0\r\n\r\n").await;
        raw.rest().await;
    })
    .await;
    let mut client = Raw::connect(proxy(app).await.address).await;
    client.say("POST /d HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n").await;
    client.head().await;
    assert_eq!(client.until("first\r\n").await, "5\r\nfirst\r\n");
    client.say("3\r\ndef\r\n0\r\n\r\n").await;
    assert_eq!(client.until("\r\n\r\n").await, "4\r\nlast\r\n0\r\n\r\n");
    client.silent(100).await;
}

#[tokio::test]
async fn a_dying_app_is_seen_as_such_and_what_it_said_arrives() {
    for (answer, part) in [
        ("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\npart", "part"),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\npart\r\n", "4\r\npart\r\n"),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\npart\r\nzz\r\n", "4\r\npart\r\n"),
    ] {
        let app = scripted(move |mut raw: Raw| async move {
            raw.until("\r\n\r\n").await;
            raw.say(answer).await;
        })
        .await;
        let mut client = Raw::connect(proxy(app).await.address).await;
        client.say("GET / HTTP/1.1\r\nHost: h\r\n\r\n").await;
        client.head().await;
        assert_eq!(client.rest().await, (part.to_owned(), Ended::Closed), "{answer:?}");
    }
}

#[tokio::test]
async fn a_client_that_leaves_takes_its_request_with_it() {
    let (sender, mut ended) = tokio::sync::mpsc::unbounded_channel();
    let app = scripted(move |mut raw: Raw| {
        let sender = sender.clone();
        async move {
            raw.until("\r\n\r\n").await;
            let _ = sender.send(raw.rest().await);
        }
    })
    .await;
    let server = proxy(app).await;
    for (request, reset) in [
        ("GET / HTTP/1.1\r\nHost: h\r\n\r\n", true),
        ("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\npart", true),
        ("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\npart", false),
        ("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n4\r\npart\r\n", false),
    ] {
        let mut client = Raw::connect(server.address).await;
        client.say(request).await;
        tokio::time::sleep(Duration::from_millis(50)).await;
        let began = Instant::now();
        if reset {
            client.reset();
        } else {
            drop(client);
        }
        let (text, how) = tokio::time::timeout(SOON, ended.recv()).await.unwrap().unwrap();
        assert!(began.elapsed() < Duration::from_millis(60), "{request:?}: {:?}", began.elapsed());
        assert!(how != Ended::Open && !text.ends_with("0\r\n\r\n"), "{request:?}: {text:?} {how:?}");
    }
}

#[tokio::test]
async fn a_tunnel_keeps_early_bytes_and_half_closed_directions() {
    let app = scripted(|mut raw: Raw| async move {
        raw.until("\r\n\r\n").await;
        raw.say("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\nhello").await;
        let (text, _) = raw.rest().await;
        raw.say(format!("got {text}")).await;
    })
    .await;
    let mut client = Raw::connect(proxy(app).await.address).await;
    client.say("GET /ws HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\nearly").await;
    assert!(client.head().await.starts_with("HTTP/1.1 101 Switching Protocols\r\n"));
    assert_eq!(client.exactly(5).await, b"hello");
    client.say(" late").await;
    client.half_close().await;
    assert_eq!(client.rest().await, ("got early late".to_owned(), Ended::Closed));
}

#[tokio::test]
async fn a_half_closed_client_gets_its_answer() {
    let app = scripted(|mut raw: Raw| async move {
        raw.until("\r\n\r\n").await;
        tokio::time::sleep(Duration::from_millis(150)).await;
        raw.say("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").await;
    })
    .await;
    let mut client = Raw::connect(proxy(app).await.address).await;
    client.say("GET /x HTTP/1.1\r\nHost: h\r\n\r\n").await;
    client.half_close().await;
    let (text, ended) = client.rest().await;
    assert!(text.ends_with("\r\n\r\nok"), "{text}");
    assert_eq!(ended, Ended::Closed);
}
