//! The sidecar's start: faults of its environment, ports, exit codes, time.

use std::net::TcpListener;
use std::time::{Duration, Instant};
use tests::program::{Program, run};
use tests::rig::{self, GET, OK, read_head, read_until, send};
use tokio::io::AsyncWriteExt;

/// Ten times the figure of an idle machine (rules, section 4).
const START_MAX: Duration = Duration::from_millis(100);

#[test]
fn all_faults_are_told_at_once_by_name_and_the_exit_code_is_1() {
    let changes = [
        ("REVISION_TIMEOUT_SECONDS", "ten"),
        ("SERVING_READINESS_PROBE", "nonsense"),
        ("OBSERVABILITY_CONFIG", "{"),
        ("ZEROSCALE_DRAIN_SETTLE", "soon"),
    ];
    let (code, lines) = run(&changes, &["CONTAINER_CONCURRENCY", "USER_PORT"]);
    assert_eq!(code, 1);
    for missing in ["CONTAINER_CONCURRENCY", "USER_PORT"] {
        assert!(lines.contains(&format!("required key {missing} missing value")), "{lines:?}");
    }
    for (name, _) in changes {
        assert_eq!(lines.iter().filter(|line| line.contains(name)).count(), 1, "{name}: {lines:?}");
    }
    assert_eq!(lines.len(), 6, "nothing else is said: {lines:?}");
}

#[test]
fn a_port_that_is_taken_ends_it_with_1() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    for name in ["QUEUE_SERVING_PORT", "ZEROSCALE_ADMIN_PORT", "ZEROSCALE_METRICS_PORT"] {
        let (code, lines) = run(&[(name, &port)], &[]);
        assert_eq!(code, 1, "{name}: {lines:?}");
        let told = lines.iter().find(|line| line.contains("Failed to bring up queue-proxy, shutting down."));
        assert!(told.is_some_and(|line| line.contains(&port)), "{name}: {lines:?}");
    }
}

#[tokio::test]
async fn requests_are_served_as_soon_as_it_has_started() {
    let app = rig::app(|mut stream| async move {
        while !read_head(&mut stream).await.is_empty() {
            stream.write_all(OK).await.unwrap();
        }
    })
    .await;
    // The first start may have to build the binary.
    drop(Program::start(app, &[]));
    let mut took = Vec::new();
    for _ in 0..5 {
        let began = Instant::now();
        let program = Program::start(app, &[]);
        let answer = read_until(&mut send(program.main, GET).await, "ok").await;
        took.push(began.elapsed());
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
    took.sort();
    assert!(took[2] < START_MAX, "start to first answer: {took:?}");
}

#[tokio::test]
async fn the_second_signal_ends_it_at_once_with_1() {
    let app = rig::app(|_| async {}).await;
    let mut program = Program::start(app, &[]);
    program.terminate();
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert!(program.is_running(), "the quiet time is 30 s");
    let began = Instant::now();
    program.terminate();
    assert_eq!(program.ended().await, 1);
    assert!(began.elapsed() < Duration::from_secs(1));
}
