//! The sidecar's request path over real sockets, byte by byte.

use policy::stat::Stat;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tests::rig::{
    GET, Gate, OK, PATIENCE, app, gated_app, read_head, read_to_end, read_until, send, sidecar, sidecar_config, until,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};

#[tokio::test]
async fn the_limit_holds_the_queue_is_bounded_and_refusals_say_why() {
    let gate = Gate::default();
    let app = gated_app(&gate).await;
    let running = sidecar(sidecar_config(app, 1)).await;
    let mut held = Vec::new();
    for _ in 0..11 {
        held.push(send(running.address, GET).await);
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    until("the first is at the app", || gate.inside() == 1).await;
    let mut refused = send(running.address, GET).await;
    let answer = read_until(&mut refused, "full").await;
    assert!(answer.starts_with("HTTP/1.1 503"), "{answer}");
    assert!(answer.contains("x-zeroscale-reason: queue_full") && answer.contains("retry-after: 1"), "{answer}");
    for stream in &mut held {
        gate.open.notify_one();
        assert!(read_until(stream, "ok").await.starts_with("HTTP/1.1 200"));
    }
    assert_eq!(gate.most(), 1);
}

#[tokio::test]
async fn a_client_that_leaves_gives_its_place_back_queued_or_running() {
    let gate = Gate::default();
    let app = gated_app(&gate).await;
    let running = sidecar(sidecar_config(app, 1)).await;
    let running_client = send(running.address, GET).await;
    until("the first is at the app", || gate.inside() == 1).await;
    let queued = send(running.address, GET).await;
    let mut patient = send(running.address, GET).await;
    drop((queued, running_client));
    // The app's connection closes with the client's; its slot is the patient one's.
    gate.open.notify_one();
    gate.open.notify_one();
    assert!(read_until(&mut patient, "ok").await.starts_with("HTTP/1.1 200"));
    // Nothing is left behind: eleven places are free again.
    let mut clients = Vec::new();
    for _ in 0..11 {
        clients.push(send(running.address, GET).await);
    }
    for stream in &mut clients {
        gate.open.notify_one();
        assert!(read_until(stream, "ok").await.starts_with("HTTP/1.1 200"));
    }
}

#[tokio::test]
async fn a_streaming_response_holds_its_slot_until_the_last_byte() {
    let (more, wait) = mpsc::unbounded_channel::<()>();
    let wait = Arc::new(tokio::sync::Mutex::new(wait));
    let seen = Arc::new(AtomicUsize::new(0));
    let count = seen.clone();
    let app = app(move |mut stream| {
        let (wait, count) = (wait.clone(), count.clone());
        async move {
            while !read_head(&mut stream).await.is_empty() {
                count.fetch_add(1, Ordering::SeqCst);
                let head = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nfirst\r\n";
                stream.write_all(head).await.unwrap();
                wait.lock().await.recv().await;
                stream.write_all(b"4\r\nlast\r\n0\r\n\r\n").await.unwrap();
            }
        }
    })
    .await;
    let running = sidecar(sidecar_config(app, 1)).await;
    let mut one = send(running.address, GET).await;
    assert!(read_until(&mut one, "first").await.contains("first"));
    let mut two = send(running.address, GET).await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(seen.load(Ordering::SeqCst), 1, "the second waits while the first streams");
    more.send(()).unwrap();
    assert!(read_until(&mut one, "0\r\n\r\n").await.ends_with("0\r\n\r\n"));
    assert!(read_until(&mut two, "first").await.contains("first"));
    more.send(()).unwrap();
    assert!(read_until(&mut two, "0\r\n\r\n").await.ends_with("0\r\n\r\n"));
}

#[tokio::test]
async fn the_timeout_answers_504_before_the_answer_began_and_cuts_it_after() {
    let app = app(|mut stream| async move {
        let head = read_head(&mut stream).await;
        if head.starts_with("GET /started") {
            let part = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\npart\r\n";
            stream.write_all(part).await.unwrap();
        }
        std::future::pending().await
    })
    .await;
    let mut settings = sidecar_config(app, 1);
    settings.timeouts.total = Duration::from_millis(300);
    let running = sidecar(settings).await;
    let mut silent = send(running.address, GET).await;
    let answer = read_until(&mut silent, "timeout").await;
    assert!(answer.starts_with("HTTP/1.1 504") && answer.contains("total_timeout"), "{answer}");
    let mut started = send(running.address, "GET /started HTTP/1.1\r\nhost: a\r\n\r\n").await;
    let (answer, ended) = read_to_end(&mut started).await;
    assert!(answer.ends_with("part\r\n"), "nothing may be written into a started answer: {answer}");
    assert!(ended, "the cut is visible: the connection ends without a last chunk");
    // Both gave their slots back.
    let mut third = send(running.address, "GET /started HTTP/1.1\r\nhost: a\r\n\r\n").await;
    assert!(read_until(&mut third, "part").await.contains("part"));
}

#[tokio::test]
async fn a_client_that_stops_reading_loses_its_slot_at_the_timeout() {
    let app = app(|mut stream| async move {
        let head = read_head(&mut stream).await;
        if head.starts_with("GET /small") {
            stream.write_all(OK).await.unwrap();
            return;
        }
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 100000000\r\n\r\n").await.unwrap();
        let block = vec![b'x'; 1 << 20];
        while stream.write_all(&block).await.is_ok() {}
    })
    .await;
    let mut settings = sidecar_config(app, 1);
    settings.timeouts.total = Duration::from_millis(400);
    let running = sidecar(settings).await;
    let stalled = send(running.address, GET).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    let began = Instant::now();
    let mut next = send(running.address, "GET /small HTTP/1.1\r\nhost: a\r\n\r\n").await;
    let answer = read_until(&mut next, "ok").await;
    // It waited for the slot; the wait counts, so it may as well have timed out
    // itself: what matters is that the slot came back.
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer} after {:?}", began.elapsed());
    drop(stalled);
}

#[tokio::test]
async fn an_upgraded_connection_carries_bytes_both_ways_and_half_closes() {
    let app = app(|mut stream| async move {
        let head = read_head(&mut stream).await.to_lowercase();
        assert!(head.contains("upgrade: echo") && head.contains("connection: upgrade"), "{head}");
        let switch = b"HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: echo\r\n\r\n";
        stream.write_all(switch).await.unwrap();
        let mut all = Vec::new();
        stream.read_to_end(&mut all).await.unwrap();
        // The client has ended its side; ours is still open.
        stream.write_all(&all).await.unwrap();
    })
    .await;
    let running = sidecar(sidecar_config(app, 1)).await;
    let request = "GET / HTTP/1.1\r\nhost: a\r\nconnection: Upgrade\r\nupgrade: echo\r\n\r\n";
    let mut client = send(running.address, request).await;
    let head = read_until(&mut client, "\r\n\r\n").await.to_lowercase();
    assert!(head.starts_with("http/1.1 101") && head.contains("upgrade: echo"), "{head}");
    client.write_all(b"hello there").await.unwrap();
    client.shutdown().await.unwrap();
    let (echo, ended) = read_to_end(&mut client).await;
    assert_eq!((echo.as_str(), ended), ("hello there", true));
    // The tunnel's slot is free again once both sides have closed.
    let mut again = send(running.address, request).await;
    assert!(read_until(&mut again, "\r\n\r\n").await.starts_with("HTTP/1.1 101"));
}

#[tokio::test]
async fn an_offer_is_served_at_once_or_handed_back_with_its_nonce() {
    let gate = Gate::default();
    let app = gated_app(&gate).await;
    let running = sidecar(sidecar_config(app, 1)).await;
    let mut first = send(running.address, GET).await;
    until("the first is at the app", || gate.inside() == 1).await;
    let offer = "GET / HTTP/1.1\r\nhost: a\r\nx-zeroscale-offer: 0011223344556677\r\n\r\n";
    let answer = read_until(&mut send(running.address, offer).await, "\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 503"), "{answer}");
    assert!(answer.contains("x-zeroscale-handback: 0011223344556677 full free=0"), "{answer}");
    gate.open.notify_one();
    assert!(read_until(&mut first, "ok").await.contains("ok"));

    let nobody = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let gone = nobody.local_addr().unwrap();
    drop(nobody);
    let running = sidecar(sidecar_config(gone, 1)).await;
    let answer = read_until(&mut send(running.address, offer).await, "\r\n\r\n").await;
    assert!(answer.contains("x-zeroscale-handback: 0011223344556677 not-sent"), "{answer}");
    let plain = read_until(&mut send(running.address, GET).await, "\r\n\r\n").await;
    assert!(plain.starts_with("HTTP/1.1 502") && plain.contains("connect_failed"), "{plain}");
}

#[tokio::test]
async fn bodies_trailers_hosts_and_hop_headers_go_through_as_they_should() {
    let (told, mut heard) = mpsc::unbounded_channel();
    let app = app(move |mut stream| {
        let told = told.clone();
        async move {
            let head = read_head(&mut stream).await;
            let body = read_until(&mut stream, "0\r\n").await;
            told.send((head.to_lowercase(), body)).unwrap();
            let answer = b"HTTP/1.1 201 Created\r\ntrailer: x-sum\r\ntransfer-encoding: chunked\r\nx-app: 1\r\nkeep-alive: 5\r\n\r\n2\r\nok\r\n0\r\nx-sum: 7\r\n\r\n";
            stream.write_all(answer).await.unwrap();
        }
    })
    .await;
    let running = sidecar(sidecar_config(app, 0)).await;
    let request = "POST /a//b?x=1 HTTP/1.1\r\nhost: 127.0.0.1:1\r\nk-original-host: shop.example\r\nte: trailers\r\nconnection: x-hop\r\nx-hop: 1\r\nx-forwarded-for: 9.9.9.9\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n";
    let mut client = send(running.address, request).await;
    let answer = read_until(&mut client, "x-sum: 7").await;
    let (head, body) = heard.recv().await.unwrap();
    assert!(head.starts_with("post /a//b?x=1 http/1.1"), "{head}");
    assert!(head.contains("host: shop.example") && !head.contains("k-original-host"), "{head}");
    assert!(head.contains("x-forwarded-for: 9.9.9.9, 127.0.0.1") && !head.contains("x-hop"), "{head}");
    assert!(body.contains("hello"), "{body}");
    assert!(answer.starts_with("HTTP/1.1 201") && answer.contains("x-app: 1") && !answer.contains("keep-alive: 5"));
    assert!(answer.contains("x-sum: 7"), "{answer}");
}

#[tokio::test]
async fn probes_are_answered_here_and_not_counted() {
    let gate = Gate::default();
    let app = gated_app(&gate).await;
    let mut running = sidecar(sidecar_config(app, 1)).await;
    let probe =
        "GET /healthz HTTP/1.1\r\nhost: a\r\nuser-agent: Knative-Activator-Probe\r\nk-network-probe: queue\r\n\r\n";
    let answer = read_until(&mut send(running.address, probe).await, "queue").await;
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("x-zeroscale-proxy: "), "{answer}");
    let ingress = "GET / HTTP/1.1\r\nhost: a\r\nk-network-probe: probe\r\nk-network-hash: abc\r\n\r\n";
    let answer = read_until(&mut send(running.address, ingress).await, "\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("k-network-hash: abc"), "{answer}");
    let batch = timeout(PATIENCE, running.stats.next()).await.unwrap().unwrap();
    assert_eq!((batch.stats[0].1.request_count, gate.most()), (0.0, 0));
}

#[tokio::test]
async fn a_drain_ends_with_the_last_request_and_loses_nothing() {
    let gate = Gate::default();
    let app = gated_app(&gate).await;
    let running = sidecar(sidecar_config(app, 1)).await;
    let mut client = send(running.address, GET).await;
    until("the request is at the app", || gate.inside() == 1).await;
    let mut idle = send(running.address, "").await;
    running.shutdown.drain();
    assert!(read_to_end(&mut idle).await.1, "an idle connection is closed");
    assert!(!running.ended.is_finished());
    gate.open.notify_one();
    assert!(read_until(&mut client, "ok").await.contains("ok"));
    timeout(PATIENCE, running.ended).await.expect("the drain ends").unwrap();
}

#[tokio::test]
async fn the_second_is_measured_and_reported() {
    let app = app(|mut stream| async move {
        while !read_head(&mut stream).await.is_empty() {
            tokio::time::sleep(Duration::from_millis(200)).await;
            stream.write_all(OK).await.unwrap();
        }
    })
    .await;
    let mut running = sidecar(sidecar_config(app, 2)).await;
    let proxied = "GET / HTTP/1.1\r\nhost: a\r\nk-proxy-request: activator\r\n\r\n";
    // Reports begin with the second: what follows the first one is a whole period.
    let mut next = async || timeout(PATIENCE, running.stats.next()).await.unwrap().unwrap().stats.remove(0).1;
    next().await;
    let (mut one, mut two) = (send(running.address, GET).await, send(running.address, proxied).await);
    assert!(read_until(&mut one, "ok").await.contains("ok") && read_until(&mut two, "ok").await.contains("ok"));
    let reports = [next().await, next().await];
    let sum = |of: fn(&Stat) -> f64| reports.iter().map(of).sum::<f64>();
    assert_eq!((sum(|stat| stat.request_count), sum(|stat| stat.proxied_request_count)), (2.0, 1.0));
    // Two requests of 200 ms each, one of them proxied.
    let concurrency = sum(|stat| stat.average_concurrency);
    assert!((0.39..0.6).contains(&concurrency), "{reports:?}");
    let proxied = sum(|stat| stat.average_proxied_concurrency);
    assert!((0.19..0.4).contains(&proxied), "{reports:?}");
}
