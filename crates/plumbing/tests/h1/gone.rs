//! Clients that leave, in whatever state: noticed at once, and what was done
//! for them ends.

use crate::raw::Raw;
use crate::served::{full, server_with, streamed};
use http::{Request, Response};
use http_body_util::BodyExt;
use plumbing::h1::{Doubt, Incoming, Settings};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::mpsc;

const NOTICED: Duration = Duration::from_millis(50);

/// Tells when it is dropped.
struct Held(mpsc::UnboundedSender<()>);

impl Drop for Held {
    fn drop(&mut self) {
        let _ = self.0.send(());
    }
}

/// How a handler treats the body of its request.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Reading {
    Nothing,
    OneFrame,
    AllOfIt,
    /// Answers, and leaves the answer unfinished.
    Answering,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Leaves {
    Reset,
    Close,
}

async fn left(request: &str, reading: Reading, leaves: Leaves) {
    let (sender, mut dropped) = mpsc::unbounded_channel();
    let gone = Arc::new(AtomicBool::new(false));
    let asked = gone.clone();
    let handler = move |request: Request<Incoming>| {
        let held = Held(sender.clone());
        async move {
            let mut body = request.into_body();
            match reading {
                Reading::Nothing => {}
                Reading::OneFrame => drop(body.frame().await),
                Reading::AllOfIt => while let Some(Ok(_)) = body.frame().await {},
                Reading::Answering => {
                    let (frames, body) = streamed();
                    frames.data("first");
                    tokio::spawn(async move {
                        frames.dropped().await;
                        drop(held);
                    });
                    return Response::new(body);
                }
            }
            tokio::time::sleep(Duration::from_secs(60)).await;
            drop(held);
            full("")
        }
    };
    let owner = move |_: Doubt| asked.load(Ordering::Relaxed);
    let server = server_with(Settings::default(), owner, handler).await;
    let mut client = Raw::connect(server.address).await;
    client.say(request).await;
    tokio::time::sleep(Duration::from_millis(80)).await;
    assert!(dropped.try_recv().is_err(), "{request:?} {reading:?}: dropped before the client left");
    gone.store(true, Ordering::Relaxed);
    let began = Instant::now();
    match leaves {
        Leaves::Reset => client.reset(),
        Leaves::Close => drop(client),
    }
    tokio::time::timeout(Duration::from_secs(2), dropped.recv())
        .await
        .unwrap_or_else(|_| panic!("{request:?} {reading:?} {leaves:?}: not noticed"));
    assert!(began.elapsed() <= NOTICED, "{request:?} {reading:?} {leaves:?}: {:?}", began.elapsed());
}

#[tokio::test]
async fn a_client_that_leaves_is_noticed_whatever_its_request_and_the_handler_do() {
    let large = format!("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 9000000\r\n\r\n{}", "x".repeat(150_000));
    let requests = [
        "GET / HTTP/1.1\r\nHost: h\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\n\r\nbody",
        "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 4000\r\n\r\nbody",
        "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n",
        "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 4000\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: h\r\n\r\nGET /next HTTP/1.1\r\nHost: h\r\n\r\n",
        &large,
    ];
    for request in requests {
        for reading in [Reading::Nothing, Reading::OneFrame, Reading::AllOfIt, Reading::Answering] {
            for leaves in [Leaves::Reset, Leaves::Close] {
                left(request, reading, leaves).await;
            }
        }
    }
}

#[tokio::test]
async fn the_owner_decides_whether_an_ended_client_is_gone() {
    let asked = Arc::new(AtomicBool::new(false));
    let seen = asked.clone();
    let (sender, mut dropped) = mpsc::unbounded_channel();
    let handler = move |_| {
        let held = Held(sender.clone());
        async move {
            tokio::time::sleep(Duration::from_millis(300)).await;
            drop(held);
            full("answered")
        }
    };
    let treat_as_gone = |doubt| {
        assert_eq!(doubt, Doubt::Ended);
        true
    };
    let server = server_with(Settings::default(), treat_as_gone, handler.clone()).await;
    let mut client = Raw::connect(server.address).await;
    client.say("GET / HTTP/1.1\r\nHost: h\r\n\r\n").await;
    tokio::time::sleep(Duration::from_millis(30)).await;
    let began = Instant::now();
    client.half_close().await;
    dropped.recv().await.unwrap();
    assert!(began.elapsed() < NOTICED);
    assert_eq!(client.rest().await.0, "");
    let keep_serving = move |doubt| {
        assert_eq!(doubt, Doubt::Ended);
        seen.store(true, Ordering::Relaxed);
        false
    };
    let server = server_with(Settings::default(), keep_serving, handler).await;
    let mut client = Raw::connect(server.address).await;
    client.say("GET / HTTP/1.1\r\nHost: h\r\n\r\n").await;
    client.half_close().await;
    assert!(client.rest().await.0.ends_with("answered"));
    assert!(asked.load(Ordering::Relaxed));
}

#[tokio::test]
async fn a_connection_that_idles_ends_with_its_client() {
    let mut server = server_with(Settings::default(), |_| false, |_| async { full("ok") }).await;
    for leaves in [Leaves::Reset, Leaves::Close] {
        let mut client = Raw::connect(server.address).await;
        client.say("GET / HTTP/1.1\r\nHost: h\r\n\r\n").await;
        client.until("ok").await;
        match leaves {
            Leaves::Reset => client.reset(),
            Leaves::Close => drop(client),
        }
        let ended = tokio::time::timeout(NOTICED, server.ended.recv()).await.unwrap();
        assert_eq!(ended.as_deref(), Some("closed"));
    }
}
