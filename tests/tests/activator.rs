//! The activator's request path over real sockets: snapshots in, real sidecars
//! and apps behind it.

use policy::world::{Path, PodPhase, Trouble, TroubleKind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tests::bench::{EPOCH, bench};
use tests::rig::{
    GET, Gate, OK, PATIENCE, app, gated_app, read_head, read_to_end, read_until, send, sidecar, sidecar_config, until,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, timeout};

#[tokio::test]
async fn a_request_at_zero_is_held_told_at_once_and_served_when_a_pod_is_ready() {
    let gate = Gate::default();
    let pod = sidecar(sidecar_config(gated_app(&gate).await, 1)).await;
    let mut bench = bench(1, |_| {}).await;
    let mut client = send(bench.address, GET).await;
    let poke = timeout(PATIENCE, bench.stats.next()).await.unwrap().unwrap();
    assert!(poke.poke && poke.stats[0].1.average_concurrency == 1.0, "{poke:?}");
    until("it is held", || bench.held() == 1).await;
    bench.publish(&[("p", pod.address, PodPhase::Starting)], Path::Activator, None).await;
    assert_eq!((bench.held(), gate.seen()), (1, 0), "no request reaches a pod that is not ready");
    gate.open.notify_one();
    bench.ready(&[("p", pod.address)]).await;
    let answer = read_until(&mut client, "\r\n\r\nok").await;
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("x-zeroscale-cold-start: "), "{answer}");
    until("its slot is free again", || bench.in_flight() == 0).await;
}

#[tokio::test]
async fn waiting_requests_go_to_the_first_slot_that_frees_anywhere_in_order() {
    let (slow, fast) = (Gate::default(), Gate::default());
    let slow_pod = sidecar(sidecar_config(gated_app(&slow).await, 1)).await;
    let fast_pod = sidecar(sidecar_config(gated_app(&fast).await, 1)).await;
    let bench = bench(1, |_| {}).await;
    let mut clients = Vec::new();
    for n in 0..5 {
        clients.push(send(bench.address, GET).await);
        until("they come in order", || bench.held() == n + 1).await;
    }
    bench.ready(&[("slow", slow_pod.address), ("fast", fast_pod.address)]).await;
    until("each pod has one", || slow.inside() == 1 && fast.inside() == 1).await;
    // The slow pod keeps its one; all others go through the fast one.
    for served in 0..4 {
        until("the fast pod has the next", || fast.inside() == 1).await;
        fast.open.notify_one();
        let answer = read_until(&mut clients[served + 1], "\r\n\r\nok").await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
    slow.open.notify_one();
    assert!(read_until(&mut clients[0], "ok").await.starts_with("HTTP/1.1 200"));
    assert_eq!((slow.most(), fast.most()), (1, 1));
}

/// Each kind of request whose client leaves while it waits.
const LEAVERS: [(&str, &str); 5] = [
    ("without a body", GET),
    ("whole body sent", "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\n\r\nhello"),
    ("body promised and unsent", "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 500\r\n\r\n"),
    ("body half sent", "POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n"),
    ("expecting to be asked", "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\nexpect: 100-continue\r\n\r\n"),
];

#[tokio::test]
async fn a_client_that_leaves_while_waiting_frees_its_place_whatever_its_body() {
    let gate = Gate::default();
    let pod = sidecar(sidecar_config(gated_app(&gate).await, 1)).await;
    let bench = bench(1, |_| {}).await;
    for (what, request) in LEAVERS {
        let client = send(bench.address, request).await;
        until(what, || bench.held() == 1).await;
        drop(client);
        until(what, || bench.held() == 0).await;
    }
    // A body that overflows everything that is kept or buffered.
    let mut big = send(bench.address, "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 100000000\r\n\r\n").await;
    let block = vec![b'x'; 1 << 20];
    while timeout(Duration::from_millis(200), big.write_all(&block)).await.is_ok() {}
    assert_eq!(bench.held(), 1);
    drop(big);
    until("the big one", || bench.held() == 0).await;
    let mut patient = send(bench.address, GET).await;
    gate.open.notify_one();
    bench.ready(&[("p", pod.address)]).await;
    assert!(read_until(&mut patient, "ok").await.starts_with("HTTP/1.1 200"));
    assert_eq!(gate.seen(), 1, "the app never sees the others");
}

#[tokio::test]
async fn of_a_crowd_that_leaves_at_once_with_the_one_that_is_served_nothing_is_sent() {
    let gate = Gate::default();
    // No sidecar, which would hand them back.
    let pod = gated_app(&gate).await;
    let bench = bench(1, |_| {}).await;
    bench.ready(&[("p", pod)]).await;
    for round in 1..=5 {
        let served = send(bench.address, GET).await;
        until("the app has the first", || gate.seen() == 2 * round - 1).await;
        let mut crowd = Vec::new();
        for (_, request) in LEAVERS.iter().cycle().take(40) {
            crowd.push(send(bench.address, request).await);
        }
        let (mut many, connection) =
            h2::client::handshake(TcpStream::connect(bench.address).await.unwrap()).await.unwrap();
        let connection = tokio::spawn(connection);
        let streams: Vec<_> = (0..10)
            .map(|_| many.send_request(http::Request::get("http://a/").body(()).unwrap(), true).unwrap())
            .collect();
        until("all wait", || bench.held() == 50).await;
        let mut patient = send(bench.address, GET).await;
        until("one more waits", || bench.held() == 51).await;
        drop((served, crowd));
        connection.abort();
        drop((many, streams));
        until("the app has the last", || gate.inside() == 2).await;
        gate.open.notify_waiters();
        assert!(read_until(&mut patient, "ok").await.starts_with("HTTP/1.1 200"));
        assert_eq!(gate.seen(), 2 * round, "the app never sees the others");
        until("the app is free", || gate.inside() == 0).await;
    }
}

#[tokio::test]
async fn the_bounds_on_waiting_are_kept_and_named() {
    let bench = bench(1, |config| {
        config.held_per_revision_max = 2;
        config.wait_max = Duration::from_millis(300);
    })
    .await;
    let mut first = send(bench.address, GET).await;
    let _second = send(bench.address, GET).await;
    until("two wait", || bench.held() == 2).await;
    let refused = read_until(&mut send(bench.address, GET).await, "\r\n\r\n").await;
    assert!(refused.starts_with("HTTP/1.1 503") && refused.contains("queue_full"), "{refused}");
    let late = read_until(&mut first, "\r\n\r\n").await;
    assert!(late.starts_with("HTTP/1.1 503") && late.contains("wait_timeout"), "{late}");
}

#[tokio::test]
async fn a_start_that_fails_refuses_those_who_wait_and_those_who_come_until_it_works() {
    let gate = Gate::default();
    let pod = sidecar(sidecar_config(gated_app(&gate).await, 1)).await;
    let bench = bench(1, |_| {}).await;
    let mut waiting = send(bench.address, GET).await;
    until("it waits", || bench.held() == 1).await;
    let trouble = Trouble { kind: TroubleKind::StartFailed, text: "no such command: nosuch".into(), since: EPOCH };
    bench.publish(&[], Path::Activator, Some(trouble)).await;
    let later = &mut send(bench.address, GET).await;
    for client in [&mut waiting, later] {
        let answer = read_until(client, "nosuch").await;
        assert!(answer.starts_with("HTTP/1.1 503") && answer.contains("start_failed"), "{answer}");
        assert!(answer.contains("no such command: nosuch"), "{answer}");
    }
    gate.open.notify_one();
    bench.ready(&[("p", pod.address)]).await;
    assert!(read_until(&mut send(bench.address, GET).await, "ok").await.starts_with("HTTP/1.1 200"));
}

#[tokio::test]
async fn what_a_dead_app_did_not_get_goes_back_to_its_place_and_is_served_when_it_is_back() {
    // An app that dies with one request in its hands, and comes back.
    let gate = Gate::default();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let pod = sidecar(sidecar_config(address, 1)).await;
    let bench = bench(1, |_| {}).await;
    bench.ready(&[("p", pod.address)]).await;
    let mut in_hands = send(bench.address, "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 2\r\n\r\nhi").await;
    let (mut connection, _) = listener.accept().await.unwrap();
    read_head(&mut connection).await;
    let body = "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\n\r\nhello";
    let mut held = [send(bench.address, GET).await, send(bench.address, body).await];
    until("two wait", || bench.held() == 2).await;
    drop((listener, connection));
    let lost = read_until(&mut in_hands, "\r\n\r\n").await;
    assert!(lost.starts_with("HTTP/1.1 502") && lost.contains("reset_before_answer"), "{lost}");
    until("both are back in the queue", || bench.held() == 2 && bench.in_flight() == 0).await;
    let again = TcpListener::bind(address).await.unwrap();
    let count = gate.seen.clone();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = again.accept().await {
            let count = count.clone();
            tokio::spawn(async move {
                loop {
                    let head = read_head(&mut stream).await;
                    if head.is_empty() {
                        return;
                    }
                    if head.contains("content-length: 5") {
                        let mut body = [0; 5];
                        stream.read_exact(&mut body).await.unwrap();
                        assert_eq!(&body, b"hello");
                    }
                    count.fetch_add(1, Ordering::SeqCst);
                    stream.write_all(OK).await.unwrap();
                }
            });
        }
    });
    for client in &mut held {
        assert!(read_until(client, "\r\n\r\nok").await.starts_with("HTTP/1.1 200"));
    }
    assert_eq!(gate.seen(), 2, "each is served once");
}

#[tokio::test]
async fn a_long_body_is_asked_for_only_when_the_app_has_the_request() {
    let heard = Arc::new(AtomicUsize::new(0));
    let count = heard.clone();
    let app = app(move |mut stream| {
        let count = count.clone();
        async move {
            read_head(&mut stream).await;
            let mut chunk = vec![0; 65536];
            let mut seen = 0;
            while seen < 1_000_000 {
                seen += stream.read(&mut chunk).await.unwrap();
            }
            count.store(seen, Ordering::SeqCst);
            stream.write_all(OK).await.unwrap();
        }
    })
    .await;
    let pod = sidecar(sidecar_config(app, 1)).await;
    let bench = bench(1, |_| {}).await;
    let mut client = send(bench.address, "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 1000000\r\n\r\n").await;
    let (mut read, mut write) = client.split();
    let upload = async {
        write.write_all(&vec![b'x'; 1_000_000]).await.unwrap();
    };
    let rest = async {
        until("it waits", || bench.held() == 1).await;
        bench.ready(&[("p", pod.address)]).await;
        let mut answer = vec![0; 1024];
        let n = timeout(PATIENCE, read.read(&mut answer)).await.unwrap().unwrap();
        String::from_utf8_lossy(&answer[..n]).into_owned()
    };
    let ((), answer) = tokio::join!(upload, rest);
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert_eq!(heard.load(Ordering::SeqCst), 1_000_000);
}

#[tokio::test]
async fn on_the_direct_path_requests_are_neither_held_nor_counted_here() {
    let gate = Gate::default();
    let pod = sidecar(sidecar_config(gated_app(&gate).await, 0)).await;
    let mut bench = bench(0, |_| {}).await;
    bench.publish(&[("p", pod.address, PodPhase::Ready)], Path::Direct, None).await;
    let mut client = send(bench.address, GET).await;
    until("it is at the app", || gate.inside() == 1).await;
    gate.open.notify_one();
    assert!(read_until(&mut client, "\r\n\r\nok").await.starts_with("HTTP/1.1 200"));
    let mut pods = pod.stats;
    let stat = timeout(PATIENCE, pods.next()).await.unwrap().unwrap().stats.remove(0).1;
    assert_eq!((stat.request_count, stat.proxied_request_count), (1.0, 0.0));
    let told = timeout(Duration::from_millis(1200), bench.stats.next()).await;
    assert!(told.is_err(), "{told:?}");
}

#[tokio::test]
async fn a_terminating_pod_is_held_until_its_last_request_has_ended() {
    let gate = Gate::default();
    let pod = sidecar(sidecar_config(gated_app(&gate).await, 1)).await;
    let bench = bench(1, |_| {}).await;
    bench.ready(&[("p", pod.address)]).await;
    let mut client = send(bench.address, GET).await;
    until("it is at the app", || gate.inside() == 1).await;
    bench.publish(&[("p", pod.address, PodPhase::Terminating)], Path::Activator, None).await;
    let version = bench.world.borrow().version;
    assert!(!bench.holding.borrow().has_let_go("p", version));
    let waiting = send(bench.address, GET).await;
    until("it waits", || bench.held() == 1).await;
    gate.open.notify_one();
    assert!(read_until(&mut client, "\r\n\r\nok").await.starts_with("HTTP/1.1 200"));
    until("the pod is let go", || bench.holding.borrow().has_let_go("p", version)).await;
    assert_eq!((gate.seen(), bench.held()), (1, 1), "no new work for a terminating pod");
    drop(waiting);
}

#[tokio::test]
async fn nothing_that_an_outsider_says_inside_our_headers_is_believed() {
    let (told, mut heard) = tokio::sync::mpsc::unbounded_channel();
    let app = app(move |mut stream| {
        let told = told.clone();
        async move {
            told.send(read_head(&mut stream).await.to_lowercase()).unwrap();
            let answer = "HTTP/1.1 503 No\r\nx-zeroscale-handback: 0000000000000000 full\r\ncontent-length: 0\r\n\r\n";
            stream.write_all(answer.as_bytes()).await.unwrap();
        }
    })
    .await;
    let pod = sidecar(sidecar_config(app, 1)).await;
    let bench = bench(1, |_| {}).await;
    bench.ready(&[("p", pod.address)]).await;
    let request = "GET / HTTP/1.1\r\nhost: a\r\nk-network-probe: queue\r\nuser-agent: kube-probe/1\r\nk-kubelet-probe: x\r\nk-original-host: evil\r\nx-zeroscale-offer: 1\r\nx-forwarded-for: 8.8.8.8\r\n\r\n";
    let answer = read_until(&mut send(bench.address, request).await, "\r\n\r\n").await;
    let seen = heard.recv().await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 503") && !answer.contains("handback"), "{answer}");
    assert!(seen.contains("host: a\r\n") && seen.contains("user-agent: kube-probe/1"), "{seen}");
    assert!(seen.contains("k-proxy-request: activator") && seen.contains("x-forwarded-for: 127.0.0.1, 127.0.0.1"));
    assert!(!seen.contains("evil") && !seen.contains("offer") && !seen.contains("8.8.8.8"), "{seen}");
}

#[tokio::test]
async fn a_drain_serves_what_is_held_and_then_ends() {
    let gate = Gate::default();
    let pod = sidecar(sidecar_config(gated_app(&gate).await, 1)).await;
    let bench = bench(1, |_| {}).await;
    let mut client = send(bench.address, GET).await;
    until("it waits", || bench.held() == 1).await;
    bench.shutdown.drain();
    gate.open.notify_one();
    bench.ready(&[("p", pod.address)]).await;
    let (answer, ended) = read_to_end(&mut client).await;
    assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("ok") && ended, "{answer}");
    let began = Instant::now();
    timeout(PATIENCE, bench.ended).await.expect("the drain ends").unwrap();
    assert!(began.elapsed() < Duration::from_secs(5));
}

#[tokio::test]
async fn the_first_request_at_zero_is_told_again_until_a_pod_is_made() {
    let mut bench = bench(1, |_| {}).await;
    let began = Instant::now();
    let _client = send(bench.address, GET).await;
    let mut counted = 0.0;
    let mut told = Vec::new();
    while told.len() < 4 {
        let batch = timeout(PATIENCE, bench.stats.next()).await.expect("it is told again").unwrap();
        counted += batch.stats.iter().map(|(_, stat)| stat.request_count).sum::<f64>();
        if batch.poke {
            told.push(began.elapsed());
        }
    }
    // At once, and then after pauses of 100, 200 and 400 ms.
    assert!(told[3] >= Duration::from_millis(650), "not without a bound: {told:?}");
    assert!(counted < 1.001, "it is counted once, not {counted} times");
    let nowhere = "127.0.0.1:1".parse().unwrap();
    bench.publish(&[("p", nowhere, PodPhase::Starting)], Path::Activator, None).await;
    // One may be on its way; reports go on.
    let quiet = Instant::now() + Duration::from_millis(1500);
    let mut late = 0;
    while let Ok(Some(batch)) = tokio::time::timeout_at(quiet, bench.stats.next()).await {
        late += usize::from(batch.poke);
    }
    assert!(late <= 1, "{late} more although a pod is made");
    assert_eq!(bench.held(), 1);
}
