//! The basic exchanges through the sidecar, whoever speaks its HTTP/1: our
//! codec, or hyper (`ZEROSCALE_HTTP1=hyper`). The chain, the limiter and the
//! accounting are the same.

use plumbing::http1::Http1;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tests::rig::{
    GET, Gate, OK, PATIENCE, app, gated_app, read_head, read_to_end, read_until, send, sidecar_by, sidecar_config,
    until,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::timeout;

/// Each test once for either.
macro_rules! either {
    ($($name:ident),* $(,)?) => {
        mod ours { $(#[tokio::test] async fn $name() { super::$name(plumbing::http1::Http1::Own).await; })* }
        mod by_hyper { $(#[tokio::test] async fn $name() { super::$name(plumbing::http1::Http1::Hyper).await; })* }
    };
}

either!(
    requests_with_and_without_bodies_share_a_connection_each_way,
    chunks_and_trailers_go_both_ways,
    an_upgraded_connection_carries_bytes_both_ways_and_half_closes,
    an_early_answer_reaches_a_client_that_still_sends,
    the_limit_holds_and_a_refusal_says_why,
    a_client_that_leaves_gives_its_slot_back,
    an_app_that_is_not_there_is_told,
    what_was_served_is_reported,
    a_drain_ends_with_the_last_request,
    http2_is_served_as_ever,
);

async fn requests_with_and_without_bodies_share_a_connection_each_way(http1: Http1) {
    let connections = Arc::new(AtomicUsize::new(0));
    let counted = connections.clone();
    let app = app(move |mut stream| {
        counted.fetch_add(1, Ordering::SeqCst);
        async move {
            loop {
                let head = read_head(&mut stream).await;
                if head.is_empty() {
                    return;
                }
                let mut body = vec![0; if head.contains("content-length: 5") { 5 } else { 0 }];
                stream.read_exact(&mut body).await.unwrap();
                let text = format!("{} {}", head.lines().next().unwrap(), String::from_utf8_lossy(&body));
                let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{text}", text.len());
                stream.write_all(answer.as_bytes()).await.unwrap();
            }
        }
    })
    .await;
    let running = sidecar_by(sidecar_config(app, 1), http1).await;
    let mut client = send(running.address, "GET /a//b?c=%20d HTTP/1.1\r\nhost: a\r\n\r\n").await;
    let answer = read_until(&mut client, "HTTP/1.1 ").await + &read_until(&mut client, " ").await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let mut client = send(running.address, GET).await;
    assert!(read_until(&mut client, "GET / HTTP/1.1 ").await.starts_with("HTTP/1.1 200"));
    client.write_all(b"POST /p HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\n\r\nhello").await.unwrap();
    let answer = read_until(&mut client, "hello").await;
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("POST /p HTTP/1.1 hello"), "{answer}");
    client.write_all(b"HEAD / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n").await.unwrap();
    let (answer, ended) = read_to_end(&mut client).await;
    assert!(ended && answer.starts_with("HTTP/1.1 200") && answer.ends_with("\r\n\r\n"), "{answer}");
    assert!(connections.load(Ordering::SeqCst) <= 2, "{connections:?}");
}

async fn chunks_and_trailers_go_both_ways(http1: Http1) {
    let (told, mut heard) = mpsc::unbounded_channel();
    let app = app(move |mut stream| {
        let told = told.clone();
        async move {
            let head = read_head(&mut stream).await;
            let body = read_until(&mut stream, "\r\n0\r\n").await;
            told.send((head.to_lowercase(), body)).unwrap();
            let answer = b"HTTP/1.1 201 Created\r\ntrailer: x-sum\r\ntransfer-encoding: chunked\r\nx-app: 1\r\nkeep-alive: 5\r\n\r\n2\r\nok\r\n0\r\nx-sum: 7\r\n\r\n";
            stream.write_all(answer).await.unwrap();
        }
    })
    .await;
    let running = sidecar_by(sidecar_config(app, 0), http1).await;
    let request = "POST /a//b?x=1 HTTP/1.1\r\nhost: shop.example\r\nte: trailers\r\nconnection: x-hop\r\nx-hop: 1\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n";
    let mut client = send(running.address, request).await;
    let answer = read_until(&mut client, "x-sum: 7").await;
    let (head, body) = timeout(PATIENCE, heard.recv()).await.unwrap().unwrap();
    assert!(head.starts_with("post /a//b?x=1 http/1.1"), "{head}");
    assert!(head.contains("host: shop.example") && head.contains("x-forwarded-for: 127.0.0.1"), "{head}");
    assert!(!head.contains("x-hop") && head.contains("transfer-encoding: chunked"), "{head}");
    assert!(body.contains("hello"), "{body}");
    assert!(answer.starts_with("HTTP/1.1 201") && answer.contains("x-app: 1"), "{answer}");
    assert!(!answer.contains("keep-alive: 5") && answer.contains("ok") && answer.contains("x-sum: 7"), "{answer}");
}

async fn an_upgraded_connection_carries_bytes_both_ways_and_half_closes(http1: Http1) {
    let app = app(|mut stream| async move {
        let head = read_head(&mut stream).await.to_lowercase();
        assert!(head.contains("upgrade: websocket") && head.contains("connection: upgrade"), "{head}");
        let switch =
            b"HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\nand at once";
        stream.write_all(switch).await.unwrap();
        let mut all = Vec::new();
        stream.read_to_end(&mut all).await.unwrap();
        stream.write_all(&all).await.unwrap();
    })
    .await;
    let running = sidecar_by(sidecar_config(app, 1), http1).await;
    // Its first bytes come with the request.
    let request = "GET /ws HTTP/1.1\r\nhost: a\r\nconnection: Upgrade\r\nupgrade: websocket\r\n\r\nearly,";
    let mut client = send(running.address, request).await;
    let head = read_until(&mut client, "and at once").await.to_lowercase();
    assert!(head.starts_with("http/1.1 101") && head.contains("upgrade: websocket"), "{head}");
    client.write_all(b" and late").await.unwrap();
    client.shutdown().await.unwrap();
    let (echo, ended) = read_to_end(&mut client).await;
    assert_eq!((echo.as_str(), ended), ("early, and late", true));
    // The tunnel's slot is free again once both sides have closed.
    let mut again = send(running.address, request).await;
    assert!(read_until(&mut again, "\r\n\r\n").await.starts_with("HTTP/1.1 101"));
}

async fn an_early_answer_reaches_a_client_that_still_sends(http1: Http1) {
    let app = app(|mut stream| async move {
        read_head(&mut stream).await;
        let answer = b"HTTP/1.1 413 Content Too Large\r\ncontent-length: 8\r\nconnection: close\r\n\r\ntoo much";
        stream.write_all(answer).await.unwrap();
    })
    .await;
    let running = sidecar_by(sidecar_config(app, 1), http1).await;
    let mut client =
        send(running.address, "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 1000000\r\n\r\nthe beginning").await;
    let answer = read_until(&mut client, "too much").await;
    assert!(answer.starts_with("HTTP/1.1 413") && answer.ends_with("too much"), "{answer}");
}

async fn the_limit_holds_and_a_refusal_says_why(http1: Http1) {
    const PLACES: usize = 11;
    const CLIENTS: usize = 20;
    let gate = Gate::default();
    let app = gated_app(&gate).await;
    let running = sidecar_by(sidecar_config(app, 1), http1).await;
    let refused = Arc::new(AtomicUsize::new(0));
    let mut clients = JoinSet::new();
    for _ in 0..CLIENTS {
        let (mut client, refused) = (send(running.address, GET).await, refused.clone());
        clients.spawn(async move {
            let answer = read_until(&mut client, "\r\n\r\n").await;
            if !answer.starts_with("HTTP/1.1 200") {
                assert!(answer.starts_with("HTTP/1.1 503"), "{answer}");
                assert!(answer.contains("x-zeroscale-reason: queue_full"), "{answer}");
                refused.fetch_add(1, Ordering::SeqCst);
            }
        });
    }
    until("the others are refused", || refused.load(Ordering::SeqCst) == CLIENTS - PLACES).await;
    for served in 1..=PLACES {
        until("the next is at the app", || gate.seen() == served).await;
        gate.open.notify_one();
    }
    while let Some(client) = clients.join_next().await {
        client.unwrap();
    }
    assert_eq!((gate.most(), refused.load(Ordering::SeqCst)), (1, CLIENTS - PLACES));
}

async fn a_client_that_leaves_gives_its_slot_back(http1: Http1) {
    let gate = Gate::default();
    let app = gated_app(&gate).await;
    let running = sidecar_by(sidecar_config(app, 1), http1).await;
    let leaver = send(running.address, GET).await;
    until("the first is at the app", || gate.inside() == 1).await;
    drop(leaver);
    // The app still has the first one; the second is sent all the same.
    let mut patient = send(running.address, GET).await;
    until("the second is at the app", || gate.seen() == 2).await;
    gate.open.notify_one();
    gate.open.notify_one();
    assert!(read_until(&mut patient, "ok").await.starts_with("HTTP/1.1 200"));
}

async fn an_app_that_is_not_there_is_told(http1: Http1) {
    let nobody = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let gone = nobody.local_addr().unwrap();
    drop(nobody);
    let running = sidecar_by(sidecar_config(gone, 1), http1).await;
    let offer = "GET / HTTP/1.1\r\nhost: a\r\nx-zeroscale-offer: 0011223344556677\r\n\r\n";
    let answer = read_until(&mut send(running.address, offer).await, "\r\n\r\n").await;
    assert!(answer.contains("x-zeroscale-handback: 0011223344556677 not-sent"), "{answer}");
    let plain = read_until(&mut send(running.address, GET).await, "\r\n\r\n").await;
    assert!(plain.starts_with("HTTP/1.1 502") && plain.contains("connect_failed"), "{plain}");
}

async fn what_was_served_is_reported(http1: Http1) {
    let app = app(|mut stream| async move {
        while !read_head(&mut stream).await.is_empty() {
            stream.write_all(OK).await.unwrap();
        }
    })
    .await;
    let mut running = sidecar_by(sidecar_config(app, 2), http1).await;
    for request in [GET, "GET / HTTP/1.1\r\nhost: a\r\nk-proxy-request: activator\r\n\r\n"] {
        assert!(read_until(&mut send(running.address, request).await, "ok").await.contains("200"));
    }
    let (mut count, mut proxied) = (0.0, 0.0);
    while count < 2.0 {
        let report = timeout(PATIENCE, running.stats.next()).await.unwrap().unwrap().stats.remove(0).1;
        count += report.request_count;
        proxied += report.proxied_request_count;
    }
    assert_eq!((count, proxied), (2.0, 1.0));
}

async fn a_drain_ends_with_the_last_request(http1: Http1) {
    let gate = Gate::default();
    let app = gated_app(&gate).await;
    let running = sidecar_by(sidecar_config(app, 1), http1).await;
    let mut last = send(running.address, GET).await;
    until("it is at the app", || gate.inside() == 1).await;
    running.shutdown.drain();
    gate.open.notify_one();
    let (answer, ended) = read_to_end(&mut last).await;
    assert!(ended && answer.starts_with("HTTP/1.1 200") && answer.ends_with("ok"), "{answer}");
    timeout(PATIENCE, running.ended).await.expect("it ends").unwrap();
}

async fn http2_is_served_as_ever(http1: Http1) {
    let app = app(|mut stream| async move {
        while !read_head(&mut stream).await.is_empty() {
            stream.write_all(OK).await.unwrap();
        }
    })
    .await;
    let running = sidecar_by(sidecar_config(app, 1), http1).await;
    let stream = tokio::net::TcpStream::connect(running.address).await.unwrap();
    let (client, connection) = h2::client::handshake(stream).await.unwrap();
    tokio::spawn(connection);
    let mut client = client.ready().await.unwrap();
    let request = http::Request::get("http://a/").body(()).unwrap();
    let (answer, _) = client.send_request(request, true).unwrap();
    assert!(timeout(PATIENCE, answer).await.is_ok());
}
