//! Answers as they are framed and flushed; what is asked of clients meanwhile.

use crate::raw::{Ended, Raw, SOON};
use crate::served::{Out, full, server, streamed, text_of, with_status};
use http::header::{CONTENT_LENGTH, LINK};
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode};
use http_body_util::BodyExt;
use plumbing::h1::{Incoming, Interim, Withheld};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

type Shared<T> = Arc<Mutex<Option<T>>>;

/// A server whose one answer is given by the test, frame by frame.
async fn given(length: Option<u64>) -> (crate::served::Server, crate::served::Frames) {
    let (frames, body) = streamed();
    let body: Shared<Out> = Arc::new(Mutex::new(Some(body)));
    let server = server(move |_| {
        let mut response = Response::new(body.lock().unwrap().take().unwrap());
        if let Some(length) = length {
            response.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(length));
        }
        async move { response }
    })
    .await;
    (server, frames)
}

#[tokio::test]
async fn what_is_there_of_an_answer_is_sent_at_once() {
    let (server, frames) = given(Some(10)).await;
    let mut client = Raw::connect(server.address).await;
    client.say("GET / HTTP/1.1\r\nHost: h\r\n\r\n").await;
    assert_eq!(client.head().await, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n");
    frames.data("abcde");
    assert_eq!(client.exactly(5).await, b"abcde");
    client.silent(50).await;
    frames.data("fghij");
    assert_eq!(client.exactly(5).await, b"fghij");
    // Whole by its length: the next request is served although the body has not said so.
    frames.dropped().await;
}

#[tokio::test]
async fn an_answer_that_is_held_back_comes_with_enough_of_its_body_or_leaves_nothing() {
    for (parts, fails) in [(&[5_usize, 5][..], false), (&[2043, 5, 1], false), (&[5], true)] {
        let whole: usize = parts.iter().sum();
        let (frames, body) = streamed();
        let body: Shared<Out> = Arc::new(Mutex::new(Some(body)));
        let server = server(move |_| {
            let mut response = Response::new(body.lock().unwrap().take().unwrap());
            response.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(whole + usize::from(fails)));
            response.extensions_mut().insert(Withheld);
            async move { response }
        })
        .await;
        let mut client = Raw::connect(server.address).await;
        client.say("GET / HTTP/1.1\r\nHost: h\r\n\r\n").await;
        frames.data(vec![b'x'; parts[0]]);
        client.silent(50).await;
        if fails {
            frames.fail();
            assert!(client.rest().await.0.is_empty());
            continue;
        }
        parts[1..].iter().for_each(|length| frames.data(vec![b'x'; *length]));
        assert!(client.head().await.starts_with("HTTP/1.1 200"));
        assert_eq!(client.exactly(whole).await, vec![b'x'; whole]);
    }
}

#[tokio::test]
async fn unknown_lengths_are_chunked_and_all_trailers_come() {
    let (server, frames) = given(None).await;
    let mut client = Raw::connect(server.address).await;
    client.say("GET / HTTP/1.1\r\nHost: h\r\n\r\n").await;
    assert_eq!(client.head().await, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
    frames.data("hello");
    assert_eq!(client.exactly(10).await, b"5\r\nhello\r\n");
    frames.data("");
    frames.data(vec![b'x'; 5000]);
    let chunk = [b"1388\r\n", &vec![b'x'; 5000][..], b"\r\n"].concat();
    assert!(client.exactly(chunk.len()).await == chunk);
    frames.trailer("x-sum", "7");
    frames.trailer("grpc-status", "0");
    drop(frames);
    assert_eq!(client.until("\r\n\r\n").await, "0\r\nX-Sum: 7\r\nGrpc-Status: 0\r\n\r\n");
    client.silent(30).await;
}

#[tokio::test]
async fn a_broken_answer_is_cut_visibly_behind_what_came() {
    for (length, request, part) in [
        (None, "GET / HTTP/1.1\r\nHost: h\r\n\r\n", "4\r\npart\r\n"),
        (Some(100), "GET / HTTP/1.1\r\nHost: h\r\n\r\n", "part"),
        (Some(100), "GET / HTTP/1.0\r\n\r\n", "part"),
    ] {
        let (server, frames) = given(length).await;
        frames.data("part");
        frames.fail();
        let mut client = Raw::connect(server.address).await;
        client.say(request).await;
        client.head().await;
        assert_eq!(client.rest().await, (part.to_owned(), Ended::Closed));
    }
    // Ended by the connection's end, it must not end in an orderly way.
    let (server, frames) = given(None).await;
    let mut client = Raw::connect(server.address).await;
    client.say("GET / HTTP/1.0\r\n\r\n").await;
    client.head().await;
    frames.data("part");
    assert_eq!(client.exactly(4).await, b"part");
    frames.fail();
    assert_eq!(client.rest().await, (String::new(), Ended::Reset));
    // Too short.
    let (server, frames) = given(Some(100)).await;
    frames.data("part");
    drop(frames);
    let mut client = Raw::connect(server.address).await;
    client.say("GET / HTTP/1.1\r\nHost: h\r\n\r\n").await;
    client.head().await;
    assert_eq!(client.rest().await, ("part".to_owned(), Ended::Closed));
}

#[tokio::test]
async fn large_answers_arrive_whole_at_a_slow_reader() {
    let body: Vec<u8> = (0..3_000_000u32).map(|number| number as u8).collect();
    let sent = body.clone();
    let server = server(move |_| {
        let body = sent.clone();
        async move { full(body) }
    })
    .await;
    let mut client = Raw::connect(server.address).await;
    client.say("GET / HTTP/1.1\r\nHost: h\r\n\r\nGET / HTTP/1.1\r\nHost: h\r\n\r\n").await;
    for _ in 0..2 {
        tokio::time::sleep(Duration::from_millis(50)).await;
        client.head().await;
        assert!(client.exactly(body.len()).await == body);
    }
}

#[tokio::test]
async fn a_client_that_waits_is_told_to_continue_when_its_body_is_wanted_and_not_before() {
    let server = server(|request: Request<Incoming>| async move {
        if request.uri() == "/never" {
            return with_status(413, "no");
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
        full(text_of(request.into_body()).await.unwrap())
    })
    .await;
    let mut client = Raw::connect(server.address).await;
    let began = Instant::now();
    client.say("POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n").await;
    client.silent(60).await;
    assert_eq!(client.until("\r\n\r\n").await, "HTTP/1.1 100 Continue\r\n\r\n");
    assert!(began.elapsed() < Duration::from_millis(200), "{:?}", began.elapsed());
    client.say("body").await;
    assert_eq!(client.head().await, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n");
    assert_eq!(client.exactly(4).await, b"body");
    // Not wanted: nothing but the answer, and the connection ends.
    client.say("POST /never HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n").await;
    let (text, ended) = client.rest().await;
    assert!(text.starts_with("HTTP/1.1 413 ") && text.contains("Connection: close\r\n"), "{text}");
    assert_eq!(ended, Ended::Closed);
    // Without a body, and over HTTP/1.0, nothing is to be said.
    for request in [
        "POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nConnection: close\r\n\r\n",
        "POST / HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\nbody",
    ] {
        let mut client = Raw::connect(server.address).await;
        client.say(request).await;
        assert!(client.head().await.contains(" 200 OK\r\n"));
    }
}

#[tokio::test]
async fn a_body_may_be_read_in_another_task() {
    let server = server(|request: Request<Incoming>| async move {
        let text = tokio::spawn(text_of(request.into_body()));
        full(text.await.unwrap().unwrap())
    })
    .await;
    let mut client = Raw::connect(server.address).await;
    client.say("POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 8\r\n\r\n").await;
    assert_eq!(client.until("\r\n\r\n").await, "HTTP/1.1 100 Continue\r\n\r\n");
    for piece in ["bo", "dy", "bo", "dy"] {
        client.say(piece).await;
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(client.head().await.starts_with("HTTP/1.1 200 OK\r\n"));
    assert_eq!(client.exactly(8).await, b"bodybody");
}

#[tokio::test]
async fn interim_answers_come_at_once_and_only_before_the_answer() {
    let late: Shared<Interim> = Arc::default();
    let kept = late.clone();
    let server = server(move |request: Request<Incoming>| {
        let kept = kept.clone();
        async move {
            let interim = request.body().interim();
            *kept.lock().unwrap() = Some(interim.clone());
            let mut hints = HeaderMap::new();
            hints.insert(LINK, HeaderValue::from_static("</a.css>"));
            let sent = interim.send(StatusCode::EARLY_HINTS, &hints);
            assert!(!interim.send(StatusCode::OK, &hints) && !interim.send(StatusCode::SWITCHING_PROTOCOLS, &hints));
            tokio::time::sleep(Duration::from_millis(100)).await;
            let later = interim.clone();
            let sent_there = tokio::spawn(async move { later.send(StatusCode::PROCESSING, &HeaderMap::new()) });
            let sent_there = sent_there.await.unwrap();
            tokio::time::sleep(Duration::from_millis(100)).await;
            full(format!("{sent} {sent_there}"))
        }
    })
    .await;
    let mut client = Raw::connect(server.address).await;
    let began = Instant::now();
    client.say("GET / HTTP/1.1\r\nHost: h\r\n\r\n").await;
    assert_eq!(client.head().await, "HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\n");
    assert!(began.elapsed() < Duration::from_millis(80));
    assert_eq!(client.head().await, "HTTP/1.1 102 Processing\r\n\r\n");
    assert!(began.elapsed() < Duration::from_millis(190));
    client.head().await;
    assert_eq!(client.exactly(9).await, b"true true");
    let interim = late.lock().unwrap().take().unwrap();
    assert!(!interim.send(StatusCode::PROCESSING, &HeaderMap::new()));
    client.say("GET / HTTP/1.0\r\nConnection: close\r\n\r\n").await;
    let (text, _) = client.rest().await;
    assert!(text.starts_with("HTTP/1.0 200 OK\r\n") && text.ends_with("false false"), "{text}");
}

#[tokio::test]
async fn the_apps_own_100_stands_for_ours() {
    let server = server(|request: Request<Incoming>| async move {
        let sent = request.body().interim().send(StatusCode::CONTINUE, &HeaderMap::new());
        full(format!("{sent} {}", text_of(request.into_body()).await.unwrap()))
    })
    .await;
    let mut client = Raw::connect(server.address).await;
    client.say("POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n").await;
    assert_eq!(client.until("\r\n\r\n").await, "HTTP/1.1 100 Continue\r\n\r\n");
    client.say("body").await;
    assert!(client.head().await.starts_with("HTTP/1.1 200 OK\r\n"));
    assert_eq!(client.exactly(9).await, b"true body");
}

#[tokio::test]
async fn no_more_of_a_body_is_read_than_is_polled() {
    let read = Arc::new(Mutex::new(0usize));
    let counted = read.clone();
    let server = server(move |request: Request<Incoming>| {
        let counted = counted.clone();
        async move {
            let mut body = request.into_body();
            let mut taken = 0;
            while taken < 100_000 {
                taken += body.frame().await.unwrap().unwrap().into_data().map_or(0, |data| data.len());
            }
            *counted.lock().unwrap() = taken;
            tokio::time::sleep(SOON).await;
            full("")
        }
    })
    .await;
    let mut client = Raw::connect(server.address).await;
    client.say("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 100000000\r\n\r\n").await;
    let mut sent = 0;
    let piece = vec![0; 65_536];
    while let Ok(Ok(count)) =
        tokio::time::timeout(Duration::from_millis(300), tokio::io::AsyncWriteExt::write(&mut client.socket, &piece))
            .await
    {
        sent += count;
    }
    // The rest is in the kernel's buffers.
    let taken = *read.lock().unwrap();
    assert!((100_000..=400_000).contains(&taken) && sent < 20_000_000, "took {taken}, sent {sent}");
}

#[tokio::test]
async fn a_connection_ends_with_its_last_answer_whoever_still_holds_its_request() {
    let kept: Shared<Incoming> = Arc::default();
    let (over, mut told) = tokio::sync::mpsc::unbounded_channel();
    let keeping = kept.clone();
    let server = server(move |request: Request<Incoming>| {
        let (keeping, over) = (keeping.clone(), over.clone());
        async move {
            if request.uri() == "/keep" {
                *keeping.lock().unwrap() = Some(request.into_body());
            } else {
                let mut body = request.into_body();
                tokio::spawn(async move { over.send(body.frame().await.unwrap().unwrap_err().to_string()) });
            }
            full("ok")
        }
    })
    .await;
    let mut client = Raw::connect(server.address).await;
    client.say("GET /keep HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n").await;
    assert!(client.rest().await.0.ends_with("ok"));
    assert!(kept.lock().unwrap().is_some());
    // Who waits for more of a body learns that its request is over.
    let mut client = Raw::connect(server.address).await;
    client.say("POST /wait HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\n").await;
    client.until("ok").await;
    let error = tokio::time::timeout(SOON, told.recv()).await.unwrap().unwrap();
    assert_eq!(error, "the exchange is over");
    client.say("hello").await;
    client.say("GET / HTTP/1.1\r\nHost: h\r\n\r\n").await;
    client.until("ok").await;
}
