//! Our client with apps of all kinds.

use crate::raw::{Ended, Raw, scripted};
use crate::served::{Out, full, streamed, wheel};
use http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::BodyExt;
use plumbing::h1::{BodyError, Break, Connection, Hold, Options, Received, SendError};
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use tokio::net::TcpStream;

async fn connect(address: SocketAddr) -> Connection<Out> {
    let socket = TcpStream::connect(address).await.unwrap();
    socket.set_nodelay(true).unwrap();
    Connection::new(socket)
}

fn request(method: &str, body: Out) -> Request<Out> {
    Request::builder().method(method).uri("/p?q=1").header("host", "h").body(body).unwrap()
}

fn get() -> Request<Out> {
    request("GET", full("").into_body())
}

/// All of an answer's body, its trailers, and whether the connection is left.
async fn read(body: &mut Received<Out>) -> Result<(String, bool), BodyError> {
    let mut text = String::new();
    while let Some(frame) = body.frame().await {
        match frame?.into_data() {
            Ok(data) => text += &String::from_utf8_lossy(&data),
            Err(frame) => text += &format!("|{:?}", frame.into_trailers().unwrap()),
        }
    }
    Ok((text, body.take_idle().is_some()))
}

/// An app that gives the same answer to all, and closes if told to.
async fn app(answer: &'static str, close: bool) -> SocketAddr {
    scripted(move |mut raw: Raw| async move {
        while raw.has_request().await {
            raw.say(answer).await;
            if close {
                return;
            }
        }
    })
    .await
}

#[tokio::test]
async fn answers_of_every_framing_are_read() {
    for (method, answer, close, text, idle) in [
        ("GET", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", false, "ok", true),
        ("GET", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", false, "", true),
        ("GET", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok", true, "ok", false),
        ("GET", "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nhi", true, "hi", false),
        ("GET", "HTTP/1.1 200 OK\r\n\r\nuntil-close", true, "until-close", false),
        ("GET", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", false, "abc", true),
        (
            "GET",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX-Sum: 7\r\n\r\n",
            false,
            "abc|{\"x-sum\": \"7\"}",
            true,
        ),
        (
            "GET",
            "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
            false,
            "hello",
            false,
        ),
        ("HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 1234\r\n\r\n", false, "", true),
        ("GET", "HTTP/1.1 204 No Content\r\n\r\n", false, "", true),
        ("GET", "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", false, "", true),
        // It says more than it was asked for.
        ("GET", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\n\r\n", false, "ok", false),
    ] {
        let connection = connect(app(answer, close).await).await;
        let response = connection.send(request(method, full("").into_body()), Options::default()).await;
        let mut response = response.unwrap_or_else(|error| panic!("{answer:?}: {error:?}"));
        assert_eq!(read(response.body_mut()).await, Ok((text.to_owned(), idle)), "{answer:?}");
        if method == "HEAD" {
            assert_eq!(response.headers()["content-length"], "1234");
        }
    }
}

#[tokio::test]
async fn broken_answers_are_errors() {
    for (answer, at) in [
        ("", Break::BeforeAnswer),
        ("garbage\r\n\r\n", Break::Answer),
        ("HTTP/1.1 200 OK\r\nX", Break::Answer),
        ("HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n", Break::Answer),
        ("HTTP/1.1 100 Continue\r\n\r\n", Break::BeforeAnswer),
    ] {
        let sent = connect(app(answer, true).await).await.send(get(), Options::default()).await;
        assert!(matches!(sent, Err(SendError::Broken { at: found, .. }) if found == at), "{answer:?}");
    }
    for (answer, error) in [
        ("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\npart", BodyError::Truncated),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\npart\r\n", BodyError::Truncated),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\npart\r\nzz\r\n",
            BodyError::Malformed("invalid byte in chunk length"),
        ),
    ] {
        let mut response = connect(app(answer, true).await).await.send(get(), Options::default()).await.unwrap();
        let first = response.body_mut().frame().await.unwrap().unwrap();
        assert_eq!(first.into_data().unwrap(), "part");
        assert_eq!(read(response.body_mut()).await, Err(error), "{answer:?}");
        assert!(response.body_mut().take_idle().is_none());
    }
    let endless = scripted(|mut raw: Raw| async move {
        raw.until("\r\n\r\n").await;
        for _ in 0..100 {
            raw.say("HTTP/1.1 102 Processing\r\n\r\n").await;
        }
        raw.rest().await;
    });
    let sent = connect(endless.await).await.send(get(), Options::default()).await;
    assert!(matches!(sent, Err(SendError::Broken { at: Break::Answer, .. })));
}

#[tokio::test]
async fn requests_are_framed_as_their_bodies_are() {
    let address = scripted(|mut raw: Raw| async move {
        let (head, mut body) = (raw.until("\r\n\r\n").await, String::new());
        if head.contains("chunked") {
            body = raw.until("\r\n\r\n").await;
        } else if let Some((_, length)) = head.split_once("Content-Length: ") {
            let length = length.split("\r\n").next().unwrap().parse().unwrap();
            body = String::from_utf8(raw.exactly(length).await).unwrap();
        }
        let said = format!("{head}{body}");
        raw.say(format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{said}", said.len())).await;
        raw.rest().await;
    })
    .await;
    let unknown = || {
        let (frames, body) = streamed();
        frames.data("he");
        frames.data("llo");
        frames.trailer("x-t", "v");
        body
    };
    for (method, body, extra, seen) in [
        ("GET", full("").into_body(), None, "GET /p?q=1 HTTP/1.1\r\nHost: h\r\n\r\n"),
        ("POST", full("").into_body(), None, "POST /p?q=1 HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n"),
        (
            "GET",
            full("").into_body(),
            Some(("content-length", "0")),
            "GET /p?q=1 HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n",
        ),
        ("GET", full("abc").into_body(), None, "GET /p?q=1 HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc"),
        (
            "PUT",
            unknown(),
            Some(("transfer-encoding", "gzip")),
            "PUT /p?q=1 HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\nX-T: v\r\n\r\n",
        ),
        (
            "PUT",
            unknown(),
            Some(("content-length", "5")),
            "PUT /p?q=1 HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello",
        ),
    ] {
        let mut request = request(method, body);
        if let Some((name, value)) = extra {
            request.headers_mut().insert(name, value.parse().unwrap());
        }
        let mut response = connect(address).await.send(request, Options::default()).await.unwrap();
        assert_eq!(read(response.body_mut()).await.unwrap().0, seen);
    }
    // A body that is not what its head says never looks whole.
    for (length, at) in [("9", Break::RequestBody), ("4", Break::RequestBody)] {
        let mut request = request("PUT", unknown());
        request.headers_mut().insert("content-length", length.parse().unwrap());
        let sent = connect(address).await.send(request, Options::default()).await;
        assert!(matches!(sent, Err(SendError::Broken { at: found, .. }) if found == at), "{length}");
    }
}

#[tokio::test]
async fn a_connection_is_used_again_and_a_dead_one_is_noticed_before_anything_is_sent() {
    let address = app("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", false).await;
    let mut connection = connect(address).await;
    for _ in 0..3 {
        assert!(!connection.is_stale());
        let mut response = connection.send(get(), Options::default()).await.unwrap();
        response.body_mut().frame().await.unwrap().unwrap();
        connection = response.body_mut().take_idle().unwrap();
    }
    for closing in ["", "HTTP/1.1 408 Request Timeout\r\n\r\n"] {
        let address = scripted(move |mut raw: Raw| async move {
            raw.until("\r\n\r\n").await;
            raw.say("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await;
            tokio::time::sleep(Duration::from_millis(20)).await;
            raw.say(closing).await;
        })
        .await;
        let mut response = connect(address).await.send(get(), Options::default()).await.unwrap();
        let connection = response.body_mut().take_idle().unwrap();
        tokio::time::sleep(Duration::from_millis(60)).await;
        assert!(connection.is_stale());
        let sent = connection.send(request("POST", full("body").into_body()), Options::default()).await;
        let Err(SendError::NotSent { unsent, .. }) = sent else { panic!("it was sent") };
        let unsent = unsent.into_request().unwrap();
        assert_eq!((unsent.method(), unsent.headers()["host"].as_bytes()), (&Method::POST, &b"h"[..]));
        assert_eq!(unsent.into_body().collect().await.unwrap().to_bytes(), "body");
    }
}

/// A connection that was reset in a way that the runtime has had no occasion
/// to notice.
async fn reset() -> Connection<Out> {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let connection = connect(listener.local_addr().unwrap()).await;
    let accepted = listener.accept().unwrap().0;
    accepted.set_nonblocking(true).unwrap();
    let accepted = TcpStream::from_std(accepted).unwrap();
    accepted.set_zero_linger().unwrap();
    drop(accepted);
    std::thread::sleep(Duration::from_millis(20));
    connection
}

#[tokio::test]
async fn a_body_that_is_held_back_is_held_back_by_the_next_try_too() {
    let mut hold = Hold::UntilContinue;
    let mut expecting = request("POST", full("body").into_body());
    expecting.headers_mut().insert("expect", "100-continue".parse().unwrap());
    let options = Options { hold_body: Some(&mut hold), ..Options::default() };
    let sent = reset().await.send(expecting, options).await;
    let Err(SendError::NotSent { unsent, .. }) = sent else { panic!("it was sent") };
    let address = scripted(|mut raw: Raw| async move {
        raw.until("\r\n\r\n").await;
        raw.silent(80).await;
        raw.say("HTTP/1.1 100 Continue\r\n\r\n").await;
        assert_eq!(raw.exactly(4).await, b"body");
        raw.say("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await;
    })
    .await;
    let options = Options { hold_body: Some(&mut hold), ..Options::default() };
    connect(address).await.send(*unsent, options).await.unwrap();
}

#[tokio::test]
async fn a_request_that_cannot_be_written_comes_back_whole_although_its_body_was_begun() {
    let connection = reset().await;
    let (frames, body) = streamed();
    frames.data("begun");
    frames.data(" and ended");
    drop(frames);
    let sent = connection.send(request("POST", body), Options::default()).await;
    let Err(SendError::NotSent { unsent, .. }) = sent else { panic!("it was sent") };
    let unsent = unsent.into_request().unwrap_err();
    let address = scripted(|mut raw: Raw| async move {
        let body = raw.until("0\r\n\r\n").await;
        let body = body.split_once("\r\n\r\n").unwrap().1;
        raw.say(format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len())).await;
    })
    .await;
    let mut response = connect(address).await.send(*unsent, Options::default()).await.unwrap();
    let text = read(response.body_mut()).await.unwrap().0;
    assert_eq!(text, "5\r\nbegun\r\na\r\n and ended\r\n0\r\n\r\n");
}

#[tokio::test]
async fn an_early_answer_is_seen_and_the_upload_goes_on_meanwhile() {
    let address = scripted(|mut raw: Raw| async move {
        raw.until("\r\n\r\n").await;
        raw.say("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n").await;
        let upload = raw.until("0\r\n\r\n").await;
        raw.say(format!("{:x}\r\n{upload}\r\n0\r\n\r\n", upload.len())).await;
        raw.rest().await;
    })
    .await;
    let (frames, body) = streamed();
    frames.data("abc");
    let began = Instant::now();
    let mut response = connect(address).await.send(request("POST", body), Options::default()).await.unwrap();
    assert_eq!(response.body_mut().frame().await.unwrap().unwrap().into_data().unwrap(), "first");
    assert!(began.elapsed() < Duration::from_millis(200));
    frames.data("def");
    drop(frames);
    let (text, idle) = read(response.body_mut()).await.unwrap();
    assert_eq!((text.as_str(), idle), ("3\r\nabc\r\n3\r\ndef\r\n0\r\n\r\n", true));
}

#[tokio::test]
async fn an_answer_is_read_although_the_app_has_closed_on_the_upload() {
    let address = scripted(|mut raw: Raw| async move {
        raw.until("\r\n\r\n").await;
        raw.say("HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno").await;
        tokio::time::sleep(Duration::from_millis(20)).await;
    })
    .await;
    let (frames, body) = streamed();
    for _ in 0..200 {
        frames.data(vec![b'x'; 65_536]);
    }
    let mut response = connect(address).await.send(request("POST", body), Options::default()).await.unwrap();
    assert_eq!(response.status(), StatusCode::PAYLOAD_TOO_LARGE);
    // The connection itself cannot be used again.
    assert!(!matches!(read(response.body_mut()).await, Ok((_, true))));
    drop(frames);
}

#[tokio::test]
async fn interim_answers_are_passed_on_in_order() {
    let address = app(
        "HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\nHTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
        false,
    );
    let mut seen = Vec::new();
    let mut note = |status: StatusCode, fields: HeaderMap| seen.push((status.as_u16(), fields.len()));
    let options = Options { on_interim: Some(&mut note), ..Options::default() };
    let mut response = connect(address.await).await.send(get(), options).await.unwrap();
    assert!(response.body_mut().take_idle().is_some());
    assert_eq!(seen, [(103, 1), (102, 0)]);
}

#[tokio::test]
async fn a_held_body_is_sent_once_it_is_asked_for() {
    let expecting = |body| {
        let mut request = request("POST", body);
        request.headers_mut().insert("expect", "100-continue".parse().unwrap());
        request
    };
    let answer = |mut raw: Raw, asks: bool| async move {
        raw.until("\r\n\r\n").await;
        raw.silent(80).await;
        if asks {
            raw.say("HTTP/1.1 100 Continue\r\n\r\n").await;
        }
        assert_eq!(raw.exactly(4).await, b"body");
        raw.say("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await;
        raw.rest().await;
    };
    let address = scripted(move |raw| answer(raw, true)).await;
    let options = Options { hold_body: Some(&mut Hold::UntilContinue), ..Options::default() };
    let mut response = connect(address).await.send(expecting(full("body").into_body()), options).await.unwrap();
    assert!(response.body_mut().take_idle().is_some());
    // An app that never asks: no longer than we wish.
    let address = scripted(move |raw| answer(raw, false)).await;
    let mut hold = Hold::UntilContinueOr(wheel().sleep(Duration::from_millis(120)));
    let options = Options { hold_body: Some(&mut hold), ..Options::default() };
    let mut response = connect(address).await.send(expecting(full("body").into_body()), options).await.unwrap();
    assert!(response.body_mut().take_idle().is_some());
    // One that refuses: the body is not touched, and the connection not kept.
    let address = scripted(|mut raw: Raw| async move {
        raw.until("\r\n\r\n").await;
        raw.say("HTTP/1.1 401 Unauthorized\r\nContent-Length: 2\r\n\r\nno").await;
        assert_eq!(raw.rest().await, (String::new(), Ended::Closed));
    })
    .await;
    let options = Options { hold_body: Some(&mut Hold::UntilContinue), ..Options::default() };
    let mut response = connect(address).await.send(expecting(full("body").into_body()), options).await.unwrap();
    assert_eq!(read(response.body_mut()).await, Ok(("no".to_owned(), false)));
}

#[tokio::test]
async fn a_request_whose_body_fails_is_broken_off() {
    let address = scripted(|mut raw: Raw| async move {
        raw.until("4\r\npart\r\n").await;
        let (text, _) = raw.rest().await;
        assert!(!text.contains("0\r\n\r\n"));
    })
    .await;
    let (frames, body) = streamed();
    frames.data("part");
    frames.fail();
    let sent = connect(address).await.send(request("POST", body), Options::default()).await;
    assert!(matches!(sent, Err(SendError::Broken { at: Break::RequestBody, .. })));
}
