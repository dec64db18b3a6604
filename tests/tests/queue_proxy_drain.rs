//! The end of the sidecar as a process: quiet time, what runs, tunnels, order.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tests::program::Program;
use tests::rig::{self, GET, OK, read_head, read_to_end, read_until, send};
use tests::sidecar::h1::{self, Conn};
use tests::sidecar::mortal::Mortal;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep};

const PROBE: &str = "GET / HTTP/1.1\r\nhost: a\r\nuser-agent: kube-probe/1\r\nk-network-probe: queue\r\n\r\n";
const INGRESS: &str = "GET / HTTP/1.1\r\nhost: a\r\nk-network-probe: probe\r\nk-network-hash: h\r\n\r\n";
const HOOK: &str = "GET /wait-for-drain HTTP/1.1\r\nhost: a\r\n\r\n";
const SLOW: &str = "GET /slow HTTP/1.1\r\nhost: a\r\n\r\n";
const UPGRADE: &str = "GET /up HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: echo\r\n\r\n";

/// `/slow` takes 1.5 s, `/up` switches to an echo, all else is quick.
async fn app() -> SocketAddr {
    rig::app(|mut stream| async move {
        loop {
            let head = read_head(&mut stream).await;
            if head.is_empty() {
                return;
            }
            if head.starts_with("GET /slow") {
                sleep(Duration::from_millis(1500)).await;
            }
            if head.starts_with("GET /up") {
                let switch = b"HTTP/1.1 101 S\r\nconnection: upgrade\r\nupgrade: echo\r\n\r\n";
                stream.write_all(switch).await.unwrap();
                let (mut read, mut write) = stream.split();
                let _ = tokio::io::copy(&mut read, &mut write).await;
                return;
            }
            if stream.write_all(OK).await.is_err() {
                return;
            }
        }
    })
    .await
}

/// A sidecar with a quiet time of `settle`, which has been told to end.
async fn ending(settle: &str, before: impl AsyncFnOnce(&Program)) -> (Program, Instant) {
    rig::lateness();
    let program = Program::start(app().await, &[("ZEROSCALE_DRAIN_SETTLE", settle)]);
    before(&program).await;
    let began = Instant::now();
    program.terminate();
    (program, began)
}

/// In milliseconds; later by as much as this machine delays a handful of steps.
fn within(took: Duration, from: u64, to: u64) -> bool {
    let late = rig::lateness() * 10;
    took >= Duration::from_millis(from) && took < Duration::from_millis(to) + late
}

/// The status line of an answer on a connection of its own.
async fn status(address: SocketAddr, request: &str) -> String {
    let mut stream = send(address, request).await;
    let answer = read_until(&mut stream, "\r\n\r\n").await;
    answer.lines().next().unwrap_or_default().to_owned()
}

#[tokio::test]
async fn without_traffic_it_ends_after_the_quiet_time_and_says_so() {
    let (mut program, began) = ending("500ms", async |_| {}).await;
    assert_eq!(program.ended().await, 0);
    assert!(within(began.elapsed(), 490, 1500), "{:?}", began.elapsed());
    let lines = program.lines();
    for said in [
        "Received TERM signal, attempting to gracefully shutdown servers.",
        "Sleeping 500ms to allow K8s propagation of non-ready state",
        "Shutdown complete, exiting...",
    ] {
        assert!(lines.iter().any(|line| line.contains(said)), "{said}: {lines:#?}");
    }
}

#[tokio::test]
async fn connections_on_which_nothing_happens_do_not_hold_the_end() {
    let mut held = Vec::new();
    let (mut program, began) = ending("500ms", async |program| {
        let mut kept = send(program.main, GET).await;
        assert!(read_until(&mut kept, "ok").await.contains("200 OK"));
        held.push(kept);
        held.push(send(program.main, "").await);
        held.push(send(program.main, "GET / HTTP/1.1\r\nhost: half").await);
        held.push(send(program.main, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await);
        // A collector that never finishes its question, and one that reads no answer.
        held.push(send(program.metrics, "GET /metr").await);
        held.push(send(program.metrics, "GET /metrics HTTP/1.1\r\nhost: a\r\n\r\n").await);
        held.push(send(program.admin, "GET /wai").await);
        sleep(Duration::from_millis(50)).await;
    })
    .await;
    assert_eq!(program.ended().await, 0);
    assert!(within(began.elapsed(), 490, 1500), "{:?}", began.elapsed());
}

#[tokio::test]
async fn probes_fail_during_the_quiet_time_and_requests_put_the_end_off() {
    let (mut program, began) = ending("800ms", async |_| {}).await;
    sleep(Duration::from_millis(400)).await;
    assert!(status(program.main, GET).await.starts_with("HTTP/1.1 200"), "late requests are served");
    for probe in [PROBE, INGRESS] {
        let mut stream = send(program.main, probe).await;
        let answer = read_until(&mut stream, "down\n").await;
        assert!(answer.starts_with("HTTP/1.1 503") && answer.ends_with("\r\n\r\nshutting down\n"), "{answer}");
    }
    sleep(Duration::from_millis(300)).await;
    // This one does not count.
    assert!(status(program.main, PROBE).await.starts_with("HTTP/1.1 503"));
    assert_eq!(program.ended().await, 0);
    assert!(within(began.elapsed(), 1190, 2100), "{:?}", began.elapsed());
}

#[tokio::test]
async fn steady_traffic_does_not_keep_it_alive_beyond_two_thirds_of_the_time_limit() {
    let mut program = Program::start(app().await, &[("REVISION_TIMEOUT_SECONDS", "3")]);
    let address = program.main;
    let client = tokio::spawn(async move {
        let mut kept = send(address, "").await;
        let mut served = 0;
        // Until the connection or the port is closed; no request may be lost on the way.
        loop {
            if kept.write_all(GET.as_bytes()).await.is_err() {
                return served;
            }
            let answer = read_until(&mut kept, "ok").await;
            if answer.is_empty() {
                return served;
            }
            assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
            served += 1;
            sleep(Duration::from_millis(50)).await;
        }
    });
    sleep(Duration::from_millis(200)).await;
    let began = Instant::now();
    program.terminate();
    assert_eq!(program.ended().await, 0);
    assert!(within(began.elapsed(), 1990, 2900), "{:?}", began.elapsed());
    assert!(client.await.unwrap() > 20);
}

#[tokio::test]
async fn what_runs_is_finished_while_the_main_port_is_closed_and_the_others_are_open() {
    let mut held = Vec::new();
    let (mut program, began) = ending("300ms", async |program| {
        held.push(send(program.main, SLOW).await);
        sleep(Duration::from_millis(100)).await;
    })
    .await;
    sleep(Duration::from_millis(600)).await;
    assert!(TcpStream::connect(program.main).await.is_err(), "the main port is closed first");
    let scrape = "GET /metrics HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";
    assert!(status(program.metrics, scrape).await.starts_with("HTTP/1.1 200"), "the scraped port is closed last");
    assert!(status(program.admin, HOOK).await.starts_with("HTTP/1.1 200"), "the quiet time is over: no wait");
    let (answer, ended) = read_to_end(&mut held[0]).await;
    assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("ok") && ended, "{answer}");
    assert!(answer.to_lowercase().contains("connection: close"), "{answer}");
    assert_eq!(program.ended().await, 0);
    assert!(within(began.elapsed(), 1300, 2400), "{:?}", began.elapsed());
}

#[tokio::test]
async fn a_tunnel_holds_the_end_until_its_deadline() {
    let changes = [("ZEROSCALE_DRAIN_SETTLE", "200ms"), ("ZEROSCALE_DRAIN_TUNNEL_TIMEOUT", "1s")];
    let mut program = Program::start(app().await, &changes);
    let mut tunnel = send(program.main, UPGRADE).await;
    assert!(read_until(&mut tunnel, "\r\n\r\n").await.starts_with("HTTP/1.1 101"));
    let began = Instant::now();
    program.terminate();
    sleep(Duration::from_millis(700)).await;
    tunnel.write_all(b"still").await.unwrap();
    let mut echo = [0; 5];
    tunnel.read_exact(&mut echo).await.unwrap();
    assert_eq!(&echo, b"still");
    assert_eq!(program.ended().await, 0);
    assert!(within(began.elapsed(), 1190, 2200), "{:?}", began.elapsed());
}

#[tokio::test]
async fn the_hook_without_term_is_called_off_after_a_second() {
    let program = Program::start(app().await, &[]);
    for _ in 0..2 {
        let began = Instant::now();
        let hook = status(program.admin, HOOK);
        let between = async {
            sleep(Duration::from_millis(300)).await;
            assert!(status(program.main, PROBE).await.starts_with("HTTP/1.1 503"));
            assert!(status(program.main, GET).await.starts_with("HTTP/1.1 200"));
        };
        let (answer, ()) = tokio::join!(hook, between);
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        assert!(within(began.elapsed(), 990, 1500), "{:?}", began.elapsed());
        assert!(status(program.main, PROBE).await.starts_with("HTTP/1.1 200"), "ready again");
    }
    assert!(program.lines().iter().any(|line| line.contains("Attached drain handler from user-container")));
}

#[tokio::test]
async fn the_hook_with_term_returns_when_the_quiet_time_is_over() {
    let changes = [("ZEROSCALE_DRAIN_SETTLE", "1500ms")];
    let mut program = Program::start(app().await, &changes);
    let began = Instant::now();
    let mut hook = send(program.admin, "POST /wait-for-drain HTTP/1.1\r\nhost: a\r\ncontent-length: 0\r\n\r\n").await;
    sleep(Duration::from_millis(300)).await;
    program.terminate();
    let (answer, ended) = read_to_end(&mut hook).await;
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("content-length: 0") && ended, "{answer}");
    assert!(!answer.to_lowercase().contains("connection: close"), "it went out before its port was closed: {answer}");
    assert!(within(began.elapsed(), 1490, 2000), "{:?}", began.elapsed());
    assert_eq!(program.ended().await, 0);
}

#[tokio::test]
async fn an_http2_client_is_told_to_go_and_its_streams_end_well() {
    let mut program = Program::start(app().await, &[("ZEROSCALE_DRAIN_SETTLE", "300ms")]);
    let stream = TcpStream::connect(program.main).await.unwrap();
    let (mut client, connection) = h2::client::handshake(stream).await.unwrap();
    let driver = tokio::spawn(connection);
    let began = Instant::now();
    program.terminate();
    sleep(Duration::from_millis(600)).await;
    let request = http::Request::get("http://a/x").body(()).unwrap();
    // After the GOAWAY a client opens no stream here.
    let refused = match client.send_request(request, true) {
        Err(_) => true,
        Ok((answer, _)) => answer.await.is_err(),
    };
    assert!(refused);
    driver.await.unwrap().expect("the connection ended with a GOAWAY without an error");
    assert_eq!(program.ended().await, 0);
    assert!(within(began.elapsed(), 290, 1500), "{:?}", began.elapsed());
}

#[tokio::test]
async fn what_has_come_when_the_close_begins_is_served() {
    let mut kept = Vec::new();
    let (mut program, _) = ending("2s", async |program| {
        for _ in 0..8 {
            let mut stream = send(program.main, GET).await;
            assert!(read_until(&mut stream, "ok").await.contains("200 OK"));
            kept.push(stream);
        }
    })
    .await;
    rig::until("it has begun", || program.lines().iter().any(|line| line.contains("Sleeping 2s"))).await;
    // It finds at once that the quiet time is over and that requests are there.
    program.freeze();
    for stream in &mut kept {
        stream.write_all(GET.as_bytes()).await.unwrap();
    }
    sleep(Duration::from_millis(2500)).await;
    program.thaw();
    for stream in &mut kept {
        let answer = read_until(stream, "ok").await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer:?}");
    }
    assert_eq!(program.ended().await, 0);
}

/// Readiness as the activator asks for it: its status, and how long it took.
async fn probed(program: &Program) -> (u16, Duration) {
    let began = Instant::now();
    let answer = h1::ask(program.main, PROBE.as_bytes()).await.expect("probes are always answered");
    (answer.status, began.elapsed())
}

#[tokio::test]
async fn an_app_that_is_restarted_with_the_hook_and_without_term_is_ready_with_the_next_probe() {
    let mut app =
        Mortal::new(
            |mut conn: Conn| async move { while conn.request().await.is_some() && conn.send(OK).await.is_ok() {} },
        )
        .await;
    let program = Program::start(app.address, &[]);
    assert_eq!(probed(&program).await.0, 200);
    // What the kubelet does when a container is to be restarted, not the pod.
    assert!(status(program.admin, HOOK).await.starts_with("HTTP/1.1 200"));
    app.kill().await;
    let returned = async {
        sleep(Duration::from_secs(3)).await;
        app.revive().await;
        Instant::now()
    };
    // One asks while the app is down, and waits; what it is told may be either.
    let (waiting, returned) = tokio::join!(h1::ask(program.main, PROBE.as_bytes()), returned);
    assert!([200, 503].contains(&waiting.unwrap().status));
    let (ready, took) = probed(&program).await;
    assert_eq!(ready, 200, "the first probe after its return");
    assert!(took < Duration::from_millis(1000), "{took:?}");
    assert!(status(program.main, GET).await.starts_with("HTTP/1.1 200"), "and it is served");
    assert!(returned.elapsed() < Duration::from_secs(2), "{:?}", returned.elapsed());
}

/// A collector that accepts and says nothing.
async fn silent_collector() -> (SocketAddr, Arc<AtomicUsize>) {
    let connections = Arc::new(AtomicUsize::new(0));
    let count = connections.clone();
    let address = rig::app(move |stream| {
        count.fetch_add(1, Ordering::SeqCst);
        async move {
            std::future::pending::<()>().await;
            drop(stream);
        }
    })
    .await;
    (address, connections)
}

#[tokio::test]
async fn collectors_that_hang_do_not_hold_the_end() {
    for protocol in ["http/protobuf", "grpc"] {
        let (collector, connections) = silent_collector().await;
        let exporter = format!(
            r#"{{"protocol":"{protocol}","endpoint":"http://{collector}/v1/x","exportInterval":100000000,"samplingRate":1}}"#
        );
        let observability = format!(r#"{{"requestMetrics":{exporter},"tracing":{exporter}}}"#);
        let changes = [("ZEROSCALE_DRAIN_SETTLE", "500ms"), ("OBSERVABILITY_CONFIG", observability.as_str())];
        let mut program = Program::start(app().await, &changes);
        assert!(status(program.main, GET).await.starts_with("HTTP/1.1 200"));
        rig::until("the collector is spoken to", || connections.load(Ordering::SeqCst) > 0).await;
        let began = Instant::now();
        program.terminate();
        assert_eq!(program.ended().await, 0);
        assert!(within(began.elapsed(), 490, 1500), "{protocol}: {:?}", began.elapsed());
    }
}

#[tokio::test]
async fn a_reader_of_metrics_that_never_reads_does_not_hold_the_end() {
    let port = {
        // Free at this moment; on an address of its own, so that nobody else is given it.
        let listener = tokio::net::TcpListener::bind("127.8.8.8:0").await.unwrap();
        listener.local_addr().unwrap()
    };
    let observability = format!(r#"{{"requestMetrics":{{"protocol":"prometheus","endpoint":"{port}"}}}}"#);
    let changes = [("ZEROSCALE_DRAIN_SETTLE", "500ms"), ("OBSERVABILITY_CONFIG", observability.as_str())];
    let mut program = Program::start(app().await, &changes);
    let mut held = Vec::new();
    let began = Instant::now();
    while TcpStream::connect(port).await.is_err() {
        assert!(began.elapsed() < rig::PATIENCE, "the metrics port is not open");
        sleep(Duration::from_millis(5)).await;
    }
    let page = "GET /metrics HTTP/1.1\r\nhost: a\r\n\r\n";
    assert!(status(port, page).await.starts_with("HTTP/1.1 200"));
    for asks in ["", "GET /metr", page, &page.repeat(2000)] {
        held.push(send(port, asks).await);
    }
    let began = Instant::now();
    program.terminate();
    assert_eq!(program.ended().await, 0);
    assert!(within(began.elapsed(), 490, 1500), "{:?}", began.elapsed());
}
