//! Probes of the sidecar as a process, over real sockets: who is a prober,
//! and how the app is asked.

use bytes::Bytes;
use http::Response;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tests::program::Program;
use tests::rig::{self, OK, read_head, read_until, send};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::time::Instant;

const PROBE: &str = "GET /any HTTP/1.1\r\nhost: a\r\nuser-agent: kube-probe/1.30\r\nk-network-probe: queue\r\n\r\n";

/// An app that tells of each head, and answers as its path says.
async fn telling_app() -> (SocketAddr, UnboundedReceiver<String>) {
    let (tell, told) = unbounded_channel();
    let app = rig::app(move |mut stream| {
        let tell = tell.clone();
        async move {
            loop {
                let head = read_head(&mut stream).await;
                if head.is_empty() {
                    return;
                }
                let answer: &[u8] = match head.split(' ').nth(1).unwrap_or_default() {
                    "/moved" => b"HTTP/1.1 302 F\r\nlocation: /ready\r\ncontent-length: 0\r\n\r\n",
                    "/broken" => b"HTTP/1.1 500 E\r\ncontent-length: 0\r\n\r\n",
                    "/slow" => {
                        tokio::time::sleep(Duration::from_millis(500)).await;
                        OK
                    }
                    _ => OK,
                };
                let _ = tell.send(head);
                if stream.write_all(answer).await.is_err() {
                    return;
                }
            }
        }
    })
    .await;
    (app, told)
}

async fn answer(address: SocketAddr, request: &str) -> String {
    let mut stream = send(address, request).await;
    read_until(&mut stream, "\r\n\r\n").await
}

/// Whether the app counts as ready, with this JSON as its probe.
async fn ready(app: SocketAddr, json: &str, more: &[(&str, &str)]) -> bool {
    let changes: Vec<_> = [("SERVING_READINESS_PROBE", json)].into_iter().chain(more.iter().copied()).collect();
    let program = Program::start(app, &changes);
    let answer = answer(program.main, PROBE).await;
    let ready = answer.starts_with("HTTP/1.1 200");
    assert!(ready || answer.starts_with("HTTP/1.1 503") && answer.contains("content-length: 0"), "{answer}");
    ready
}

#[tokio::test]
async fn who_is_a_prober_is_told_by_user_agent_first_and_others_are_served() {
    let (app, mut seen) = telling_app().await;
    let program = Program::start(app, &[]);
    let request = |lines: &str| format!("GET /x HTTP/1.1\r\nhost: a\r\n{lines}\r\n");
    for (lines, status, text) in [
        ("user-agent: kube-probe/1\r\nk-network-probe: queue\r\n", 200, ""),
        ("user-agent: Knative-Activator-Probe\r\nk-network-probe: queue\r\n", 200, ""),
        ("user-agent: kube-probe/1\r\n", 400, "unexpected probe header value: \n"),
        ("user-agent: kube-probe/1\r\nk-network-probe: probe\r\n", 400, "unexpected probe header value: probe\n"),
        ("k-network-probe: probe\r\nk-network-hash: h1\r\n", 200, "k-network-hash: h1"),
        ("k-network-probe: probe\r\n", 400, "a probe request must contain a non-empty \"K-Network-Hash\" header\n"),
    ] {
        let mut stream = send(program.main, &request(lines)).await;
        let answer = read_until(&mut stream, if text.is_empty() { "queue" } else { text }).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")) && answer.contains(text), "{lines}: {answer}");
    }
    assert!(seen.try_recv().is_err(), "probes are no business of the app");
    for lines in ["k-network-probe: queue\r\n", "k-network-probe: activator\r\n", "user-agent: Kube-Probe/1\r\n"] {
        assert!(answer(program.main, &request(lines)).await.starts_with("HTTP/1.1 200"), "{lines}");
        seen.recv().await.expect("the app was asked");
    }
}

#[tokio::test]
async fn a_peer_that_is_not_trusted_cannot_pose_as_a_prober() {
    let (app, mut seen) = telling_app().await;
    let program = Program::start(app, &[("ZEROSCALE_TRUSTED_PEERS", "10.0.0.0/8")]);
    assert!(answer(program.main, PROBE).await.starts_with("HTTP/1.1 200"));
    let head = seen.recv().await.expect("it was a request like others").to_lowercase();
    assert!(!head.contains("k-network-probe"), "{head}");
}

#[tokio::test]
async fn http_probes_follow_redirects_and_configured_headers_count() {
    let (app, mut seen) = telling_app().await;
    let json = r#"{"httpGet":{"path":"/moved","httpHeaders":[{"name":"Host","value":"shop.example"},
        {"name":"X-A","value":"1"},{"name":"User-Agent","value":"me/1"}]},"periodSeconds":1}"#;
    for (mode, host, agent) in
        [("better", "shop.example".to_owned(), "me/1"), ("strict", app.to_string(), "kube-probe//")]
    {
        assert!(ready(app, json, &[("ZEROSCALE_COMPAT", mode)]).await);
        for path in ["/moved", "/ready"] {
            let head = seen.recv().await.unwrap();
            assert!(head.starts_with(&format!("GET {path} HTTP/1.1\r\n")), "{head}");
            for line in [format!("host: {host}"), format!("user-agent: {agent}"), "x-a: 1".to_owned()] {
                assert!(head.lines().any(|seen| seen == line), "{mode}: {line} in {head}");
            }
            assert!(head.contains("connection: close") && head.contains("accept-encoding: gzip"), "{head}");
        }
    }
    assert!(!ready(app, r#"{"httpGet":{"path":"/broken"},"periodSeconds":1}"#, &[]).await);
    assert!(!ready(app, r#"{"httpGet":{"path":"/","scheme":"HTTPS"},"periodSeconds":1}"#, &[]).await);
}

#[tokio::test]
async fn callers_share_a_check_and_one_who_leaves_does_not_end_it() {
    let (app, mut seen) = telling_app().await;
    let json = r#"{"httpGet":{"path":"/slow"},"periodSeconds":1}"#;
    let program = Program::start(app, &[("SERVING_READINESS_PROBE", json)]);
    let began = Instant::now();
    drop(send(program.main, PROBE).await);
    tokio::time::sleep(Duration::from_millis(100)).await;
    let (one, two) = tokio::join!(answer(program.main, PROBE), answer(program.main, PROBE));
    assert!(one.starts_with("HTTP/1.1 200") && two.starts_with("HTTP/1.1 200"));
    assert!(began.elapsed() < Duration::from_millis(900), "{:?}", began.elapsed());
    seen.recv().await.unwrap();
    assert!(seen.try_recv().is_err(), "one check was made");
}

#[tokio::test]
async fn several_containers_must_all_pass_and_exec_never_does() {
    let (app, _seen) = telling_app().await;
    let several = [("ENABLE_MULTI_CONTAINER_PROBES", "true")];
    let tcp = r#"{"tcpSocket":{},"periodSeconds":1}"#;
    let broken = r#"{"httpGet":{"path":"/broken"},"periodSeconds":1}"#;
    assert!(ready(app, &format!("[{tcp},{tcp}]"), &several).await);
    assert!(!ready(app, &format!("[{tcp},{broken}]"), &several).await);
    assert!(!ready(app, r#"{"exec":{"command":["true"]}}"#, &[]).await);
    assert!(!ready(app, "{}", &[]).await);
    assert!(ready(app, "", &[]).await);
}

#[tokio::test]
async fn an_eager_probe_is_held_until_the_app_is_up() {
    let place = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let app = place.local_addr().unwrap();
    drop(place);
    let program = Program::start(app, &[]);
    let began = Instant::now();
    let asked = answer(program.main, PROBE);
    let up = async {
        tokio::time::sleep(Duration::from_millis(700)).await;
        let listener = TcpListener::bind(app).await.unwrap();
        tokio::time::sleep(Duration::from_secs(1)).await;
        drop(listener);
    };
    let (answer, ()) = tokio::join!(asked, up);
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer} after {:?}", began.elapsed());
}

/// An HTTP/2 server: answers each request with the health protocol's status,
/// and counts.
async fn http2_app(status: u8) -> (SocketAddr, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let seen = Arc::new(AtomicUsize::new(0));
    let count = seen.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let count = count.clone();
            tokio::spawn(async move {
                let Ok(mut connection) = h2::server::handshake(stream).await else { return };
                while let Some(Ok((request, mut respond))) = connection.accept().await {
                    count.fetch_add(1, Ordering::SeqCst);
                    let agent = request.headers()["user-agent"].to_str().unwrap().to_owned();
                    assert!(agent.starts_with("kube-probe/"), "{agent}");
                    let mut answer = respond.send_response(Response::new(()), false).unwrap();
                    answer.send_data(Bytes::from(vec![0, 0, 0, 0, 2, 8, status]), false).unwrap();
                    let status = [("grpc-status".parse().unwrap(), "0".parse().unwrap())];
                    answer.send_trailers(status.into_iter().collect()).unwrap();
                }
            });
        }
    });
    (address, seen)
}

#[tokio::test]
async fn grpc_probes_ask_the_health_service() {
    let json = r#"{"grpc":{"service":"svc.X"},"periodSeconds":1}"#;
    assert!(ready(http2_app(1).await.0, json, &[]).await);
    assert!(!ready(http2_app(2).await.0, json, &[]).await);
    let (http1, _seen) = telling_app().await;
    assert!(!ready(http1, json, &[]).await, "no gRPC server");
}

#[tokio::test]
async fn auto_detection_finds_http2_and_does_not_trouble_an_http1_app_again() {
    let json = r#"{"httpGet":{"path":"/ready"},"periodSeconds":1}"#;
    let detect = ("ENABLE_HTTP2_AUTO_DETECTION", "true");
    for (mode, requests) in [("better", 1), ("strict", 2)] {
        let (app, seen) = http2_app(1).await;
        assert!(ready(app, json, &[detect, ("ZEROSCALE_COMPAT", mode)]).await);
        assert_eq!(seen.load(Ordering::SeqCst), requests, "{mode}");
    }
    for (mode, prefaces) in [("better", 1), ("strict", 3)] {
        let (app, mut seen) = telling_app().await;
        let changes = [("SERVING_READINESS_PROBE", json), detect, ("ZEROSCALE_COMPAT", mode)];
        let program = Program::start(app, &changes);
        let mut gets = 0;
        for _ in 0..3 {
            assert!(answer(program.main, PROBE).await.starts_with("HTTP/1.1 200"));
        }
        let mut found = 0;
        while let Ok(head) = seen.try_recv() {
            found += usize::from(head.starts_with("PRI "));
            gets += usize::from(head.starts_with("GET /ready"));
        }
        assert_eq!((found, gets), (prefaces, 3), "{mode}");
    }
}
