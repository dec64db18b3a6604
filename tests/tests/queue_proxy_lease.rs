//! The busy lease: an app that works on in the background counts as busy, and
//! is not ended in the middle of it.

use std::net::SocketAddr;
use std::time::Duration;
use tests::program::Program;
use tests::rig::{self, GET, read_head, read_to_end, read_until, send};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep};

const PORT: (&str, &str) = ("ZEROSCALE_LEASE_PORT", "0");
const SHORT: (&str, &str) = ("ZEROSCALE_DRAIN_SETTLE", "200ms");
const HOOK: &str = "GET /wait-for-drain HTTP/1.1\r\nhost: a\r\n\r\n";

/// Answers with the head that it got as the body, and what the path asks for
/// as its lease: `/10m`; `/late/10m` does so after three seconds.
async fn app() -> SocketAddr {
    rig::app(|mut stream| async move {
        loop {
            let head = read_head(&mut stream).await;
            let Some(path) = head.split(' ').nth(1) else { return };
            let late = path.strip_prefix("/late");
            if late.is_some() {
                sleep(Duration::from_secs(3)).await;
            }
            let lease = match &late.unwrap_or(path)[1..] {
                "" => String::new(),
                span => format!("x-zeroscale-lease: {span}\r\n"),
            };
            let answer = format!("HTTP/1.1 200 OK\r\n{lease}content-length: {}\r\n\r\n{head}", head.len());
            if stream.write_all(answer.as_bytes()).await.is_err() {
                return;
            }
        }
    })
    .await
}

/// One request on a connection of its own: status line, head, body.
async fn ask(address: SocketAddr, method: &str, path: &str) -> (u16, String, String) {
    let request = format!("{method} {path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\ncontent-length: 0\r\n\r\n");
    let (answer, ended) = read_to_end(&mut send(address, &request).await).await;
    assert!(ended, "{answer}");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
    let status = head.split(' ').nth(1).and_then(|code| code.parse().ok()).expect("a status");
    (status, head.to_ascii_lowercase(), body.to_owned())
}

/// What is left, in milliseconds.
async fn left(address: SocketAddr) -> u64 {
    let (status, head, body) = ask(address, "GET", "/v1/lease").await;
    assert!(status == 200 && head.contains("content-type: application/json"), "{head}");
    let digits = body.trim_end().strip_prefix("{\"left_ms\":").and_then(|rest| rest.strip_suffix('}'));
    digits.and_then(|digits| digits.parse().ok()).unwrap_or_else(|| panic!("{body}"))
}

async fn lease(address: SocketAddr, span: &str) {
    let (status, _, body) = ask(address, "POST", &format!("/v1/lease?for={span}")).await;
    assert_eq!(status, 200, "{body}");
}

#[tokio::test]
async fn a_lease_is_one_request_in_progress_until_it_ends() {
    let mut program = Program::start(app().await, &[PORT, ("ZEROSCALE_BIND", "")]);
    let port = program.port("lease");
    assert_eq!(left(port).await, 0);
    lease(port, "10m").await;
    lease(port, "20m").await;
    assert!((1_190_000..=1_200_000).contains(&left(port).await), "the second call set the end anew");
    let busy = program.stat_with("one in progress", |stat| stat.average_concurrent_requests == 1.0).await;
    assert_eq!((busy.request_count, busy.average_proxied_concurrent_requests), (0.0, 0.0), "it is no arrival");
    lease(port, "0").await;
    assert_eq!(left(port).await, 0);
    program.stat_with("idle again", |stat| stat.average_concurrent_requests == 0.0).await;
    lease(port, "3s").await;
    program.stat_with("busy again", |stat| stat.average_concurrent_requests == 1.0).await;
    program.stat_with("it ends by itself", |stat| stat.average_concurrent_requests == 0.0).await;
    // The other ports are on every address, this one is for the app alone.
    assert!(TcpStream::connect(("127.0.0.2", program.main.port())).await.is_ok());
    assert!(TcpStream::connect(("127.0.0.2", port.port())).await.is_err());
}

#[tokio::test]
async fn what_is_wrong_is_told_by_the_name_of_the_parameter() {
    let mut program = Program::start(app().await, &[PORT]);
    let port = program.port("lease");
    for (method, path, status, told) in [
        ("POST", "/v1/lease", 400, "for: is missing, as in /v1/lease?for=10m\n"),
        ("POST", "/v1/lease?for=soon", 400, "for: `soon` is no duration such as 500ms, 60s, 1m30s or 1.5h\n"),
        (
            "POST",
            "/v1/lease?for=2h",
            400,
            "for: `2h` is more than 1h0m0s, which is the most at a time; it can be renewed\n",
        ),
        ("POST", "/v1/lease?until=2h", 400, "until: there is no such parameter; there is `for`\n"),
        ("DELETE", "/v1/lease?for=1s", 405, "POST sets the lease, GET shows what is left of it\n"),
        ("POST", "/v1/leases?for=1s", 404, "404 page not found\n"),
    ] {
        let (got, head, body) = ask(port, method, path).await;
        assert_eq!((got, body.as_str()), (status, told), "{method} {path}: {head}");
        assert_eq!(head.contains("allow: get, head, post"), status == 405, "{head}");
    }
    assert_eq!(left(port).await, 0);
}

#[tokio::test]
async fn a_lease_holds_the_drain_and_its_hook_until_the_app_ends_it() {
    let mut program = Program::start(app().await, &[PORT, SHORT]);
    let port = program.port("lease");
    lease(port, "1h").await;
    program.terminate();
    let mut hook = send(program.admin, HOOK).await;
    // Well beyond the quiet time.
    sleep(Duration::from_millis(800)).await;
    assert!(program.is_running());
    let late = read_until(&mut send(program.main, GET).await, "\r\n\r\n").await;
    assert!(late.starts_with("HTTP/1.1 200"), "requests are served meanwhile: {late}");
    let ended = Instant::now();
    lease(port, "0").await;
    let (answer, _) = read_to_end(&mut hook).await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert_eq!(program.ended().await, 0);
    assert!(ended.elapsed() < Duration::from_secs(10), "{:?}", ended.elapsed());
}

#[tokio::test]
async fn a_lease_that_is_not_renewed_ends_the_drain_by_itself() {
    let mut program = Program::start(app().await, &[PORT, SHORT]);
    let port = program.port("lease");
    lease(port, "1h").await;
    program.terminate();
    let began = Instant::now();
    lease(port, "1500ms").await;
    assert_eq!(program.ended().await, 0);
    assert!(began.elapsed() >= Duration::from_millis(1500), "{:?}", began.elapsed());
}

#[tokio::test]
async fn an_answer_can_say_it_too_and_the_client_does_not_see_it() {
    let mut program = Program::start(app().await, &[PORT, SHORT]);
    let port = program.port("lease");
    let (status, head, _) = ask(program.main, "GET", "/10m").await;
    assert!(status == 200 && !head.contains("lease"), "{head}");
    assert!((590_000..=600_000).contains(&left(port).await));
    program.stat_with("one in progress", |stat| stat.average_concurrent_requests == 1.0).await;
    let (_, head, _) = ask(program.main, "GET", "/0").await;
    assert!(!head.contains("lease"), "{head}");
    assert_eq!(left(port).await, 0);
    for _ in 0..3 {
        let (status, head, _) = ask(program.main, "GET", "/never").await;
        assert!(status == 200 && !head.contains("lease"), "{head}");
    }
    // What a client says never reaches the app, which may send back what it got.
    let asked = "GET / HTTP/1.1\r\nhost: a\r\nx-zeroscale-lease: 1h\r\nconnection: close\r\n\r\n";
    let (answer, _) = read_to_end(&mut send(program.main, asked).await).await;
    assert!(answer.contains("GET / HTTP/1.1") && !answer.contains("lease"), "{answer}");
    program.terminate();
    assert_eq!(program.ended().await, 0);
    let told = program.lines().iter().filter(|line| line.contains("`never` is no duration")).count();
    assert_eq!(told, 1, "{:#?}", program.lines());
}

#[tokio::test]
async fn a_lease_of_an_answer_that_comes_while_all_is_closed_holds_the_end() {
    let mut program = Program::start(app().await, &[PORT, SHORT]);
    let port = program.port("lease");
    let mut late = send(program.main, "GET /late/1500ms HTTP/1.1\r\nhost: a\r\n\r\n").await;
    program.stat_with("it is counted", |stat| stat.average_concurrent_requests > 0.0).await;
    program.terminate();
    let answer = read_until(&mut late, "\r\n\r\n").await;
    let began = Instant::now();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(left(port).await > 0);
    assert_eq!(program.ended().await, 0);
    assert!(began.elapsed() >= Duration::from_millis(1400), "{:?}", began.elapsed());
}

#[tokio::test]
async fn strict_mode_knows_no_lease() {
    let mut program = Program::start(app().await, &[PORT, SHORT, ("ZEROSCALE_COMPAT", "strict")]);
    let asked = "GET /1h HTTP/1.1\r\nhost: a\r\nx-zeroscale-lease: 1h\r\nconnection: close\r\n\r\n";
    let (answer, _) = read_to_end(&mut send(program.main, asked).await).await;
    let lines = answer.to_ascii_lowercase().matches("x-zeroscale-lease: 1h").count();
    assert_eq!(lines, 2, "passed on both ways: {answer}");
    program.terminate();
    assert_eq!(program.ended().await, 0);
    assert!(!program.lines().iter().any(|line| line.contains("server lease")), "{:#?}", program.lines());
}
