//! The side ports of the sidecar: what is scraped, and the stop hook's.

use std::net::SocketAddr;
use std::time::{Duration, Instant};
use tests::program::Program;
use tests::rig::{self, OK, read_head, read_to_end, read_until, send};
use tokio::io::AsyncWriteExt;

/// An app that takes 300 ms for each request.
async fn slow_app() -> SocketAddr {
    rig::app(|mut stream| async move {
        while !read_head(&mut stream).await.is_empty() {
            tokio::time::sleep(Duration::from_millis(300)).await;
            if stream.write_all(OK).await.is_err() {
                return;
            }
        }
    })
    .await
}

/// One request on a connection of its own: the answer's head, and its body.
async fn ask(address: SocketAddr, method: &str, path: &str) -> (String, String) {
    let request = format!("{method} {path} HTTP/1.1\r\nhost: a\r\naccept: text/plain\r\nconnection: close\r\n\r\n");
    let (answer, ended) = read_to_end(&mut send(address, &request).await).await;
    assert!(ended, "{answer}");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
    (head.to_ascii_lowercase(), body.to_owned())
}

#[tokio::test]
async fn before_the_first_report_the_stat_is_the_name_alone_for_any_method() {
    let program = Program::start(slow_app().await, &[]);
    for method in ["GET", "POST", "DELETE"] {
        let (head, body) = ask(program.metrics, method, "/metrics").await;
        assert!(head.starts_with("http/1.1 200"), "{head}");
        assert!(head.lines().any(|line| line == "content-type: application/protobuf"), "{head}");
        assert_eq!(body.as_bytes(), [0x0a, 0x05, 0x70, 0x6f, 0x64, 0x2d, 0x31]);
    }
    let head = ask(program.metrics, "HEAD", "/metrics").await;
    assert!(head.0.contains("content-length: 7") && head.1.is_empty(), "{head:?}");
}

#[tokio::test]
async fn the_last_second_is_told_and_stays_until_the_next_report() {
    for mode in ["strict", "better"] {
        let program = Program::start(slow_app().await, &[("ZEROSCALE_COMPAT", mode)]);
        let began = Instant::now();
        let mut first = program.stat().await;
        while first.process_uptime == 0.0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
            first = program.stat().await;
        }
        assert!((0.97..1.1).contains(&first.process_uptime), "{first:?} after {:?}", began.elapsed());
        let proxied = "GET / HTTP/1.1\r\nhost: a\r\nk-proxy-request: activator\r\n\r\n";
        let (mut one, mut two) = (send(program.main, rig::GET).await, send(program.main, proxied).await);
        assert!(read_until(&mut one, "ok").await.contains("ok") && read_until(&mut two, "ok").await.contains("ok"));
        assert_eq!(program.stat().await, first, "a scrape clears nothing");
        let mut next = program.stat().await;
        while next == first {
            tokio::time::sleep(Duration::from_millis(10)).await;
            next = program.stat().await;
        }
        assert_eq!((next.request_count, next.proxied_request_count, next.timestamp), (2.0, 1.0, 0));
        assert!((0.5..0.9).contains(&next.average_concurrent_requests), "{next:?}");
        assert!((0.25..0.5).contains(&next.average_proxied_concurrent_requests), "{next:?}");
        assert_eq!(next.observed().pod_name.as_ref(), "pod-1");
    }
}

#[tokio::test]
async fn all_other_paths_are_not_there() {
    let program = Program::start(slow_app().await, &[]);
    for (address, path) in
        [(program.metrics, "/"), (program.metrics, "/metrics/x"), (program.admin, "/"), (program.admin, "/health")]
    {
        let (head, body) = ask(address, "GET", path).await;
        assert!(head.starts_with("http/1.1 404"), "{path}: {head}");
        assert!(head.contains("content-type: text/plain; charset=utf-8"), "{head}");
        assert_eq!(body, "404 page not found\n");
    }
}
