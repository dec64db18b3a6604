//! Metrics, traces and the request log of the real binary.

use std::net::{SocketAddr, TcpListener};
use std::time::{Duration, Instant};
use tests::otlp::collector;
use tests::program::Program;
use tests::rig::{self, GET, OK, read_head, read_to_end, read_until, send};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

/// How long a test waits for something that must come.
const PATIENCE: Duration = Duration::from_secs(15);
/// The quiet time and a second.
const END_MAX: Duration = Duration::from_millis(1100);
/// A quiet time that is over soon.
const SETTLE: (&str, &str) = ("ZEROSCALE_DRAIN_SETTLE", "100ms");
const PROMETHEUS: &str = r#"{"requestMetrics":{"protocol":"prometheus","endpoint":":0"}}"#;

/// An app that answers `ok`, but for three paths; the heads that it saw.
async fn app() -> (SocketAddr, UnboundedReceiver<String>) {
    let (seen, heads) = unbounded_channel();
    let address = rig::app(move |mut stream| {
        let seen = seen.clone();
        async move {
            loop {
                let head = read_head(&mut stream).await;
                let length = head.to_ascii_lowercase();
                let length = length.split_once("content-length: ").and_then(|(_, rest)| rest.lines().next());
                let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
                if head.is_empty() || stream.read_exact(&mut body).await.is_err() {
                    return;
                }
                let _ = seen.send(head.clone());
                let answer = match head.split(' ').nth(1) {
                    Some("/cut") => &b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\npart"[..],
                    Some("/switch") => b"HTTP/1.1 101 Switching\r\nconnection: upgrade\r\nupgrade: echo\r\n\r\n",
                    Some("/silent") => b"",
                    _ => OK,
                };
                if stream.write_all(answer).await.is_err() || answer.starts_with(b"HTTP/1.1 101") {
                    return;
                }
                if answer.ends_with(b"part") {
                    return;
                }
            }
        }
    })
    .await;
    (address, heads)
}

async fn ok(stream: &mut TcpStream, request: &str) {
    stream.write_all(request.as_bytes()).await.unwrap();
    let answer = read_until(stream, "\r\n\r\nok").await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}

/// One request to a side port: the answer's head in small letters, and its body.
async fn ask(address: SocketAddr, method: &str, path: &str) -> (String, String) {
    let request = format!("{method} {path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n");
    let (answer, _) = read_to_end(&mut send(address, &request).await).await;
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
    (head.to_ascii_lowercase(), body.to_owned())
}

/// The sum of the series of a metric that have all of the labels.
fn sum(page: &str, name: &str, labels: &[&str]) -> f64 {
    let series = page.lines().filter(|line| line.split(['{', ' ']).next() == Some(name));
    let fits = series.filter(|line| labels.iter().all(|label| line.contains(label)));
    fits.map(|line| line.rsplit_once(' ').unwrap().1.parse::<f64>().unwrap()).sum()
}

/// Waits until the page says so: an answer's last byte may be seen before it is counted.
async fn page_with(address: SocketAddr, holds: impl Fn(&str) -> bool) -> String {
    let began = Instant::now();
    loop {
        let page = ask(address, "GET", "/metrics").await.1;
        if holds(&page) {
            return page;
        }
        assert!(began.elapsed() < PATIENCE, "{page}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Waits until so many lines of the log of requests are there, which end in `LOG`.
async fn logged(program: &Program, count: usize) -> Vec<String> {
    let began = Instant::now();
    loop {
        let all = program.lines();
        let lines: Vec<String> = all.iter().filter(|line| line.ends_with("|LOG")).cloned().collect();
        if lines.len() >= count {
            return lines;
        }
        assert!(began.elapsed() < PATIENCE, "{all:#?}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn requests_are_counted_on_the_user_metrics_port_under_bounded_labels() {
    let app = app().await.0;
    let changes = [("OBSERVABILITY_CONFIG", PROMETHEUS), ("CONTAINER_CONCURRENCY", "5")];
    let mut program = Program::start(app, &changes);
    let user_metrics = program.port("user-metrics");
    let mut stream = TcpStream::connect(program.main).await.unwrap();
    for n in 0..40 {
        ok(&mut stream, &format!("POST /{n} HTTP/1.1\r\nhost: h{n}.example\r\ncontent-length: 5\r\n\r\nhello")).await;
    }
    let count = "http_server_request_duration_seconds_count";
    let page = page_with(user_metrics, |page| sum(page, count, &[]) >= 40.0).await;
    let fine = ["http_response_status_code=\"200\"", "http_request_method=\"POST\""];
    for (name, wanted) in [
        (count, 40.0),
        ("http_server_request_body_size_bytes_sum", 200.0),
        ("http_server_response_body_size_bytes_sum", 80.0),
        ("http_client_request_duration_seconds_count", 40.0),
        ("http_client_request_body_size_bytes_sum", 200.0),
    ] {
        assert!((sum(&page, name, &fine) - wanted).abs() < 1e-9, "{name}: {page}");
    }
    let invoked = sum(&page, "kn_serving_invocation_duration_seconds_count", &fine[..1]);
    assert!((invoked - 40.0).abs() < 1e-9, "{page}");
    let hosts = page.lines().filter(|line| line.starts_with(count)).count();
    assert_eq!(hosts, 21, "20 hosts and the rest: {page}");
    assert!((sum(&page, count, &["server_address=\"other\""]) - 20.0).abs() < 1e-9, "{page}");
    assert!(page.lines().any(|line| line.starts_with("target_info{") && line.contains("k8s_pod_name=\"pod-1\"")));
    page_with(user_metrics, |page| page.lines().any(|line| depth_of(line) == Some("0"))).await;
}

fn depth_of(line: &str) -> Option<&str> {
    line.starts_with("kn_serving_queue_depth{").then(|| line.rsplit_once(' ').unwrap().1)
}

#[tokio::test]
async fn the_user_metrics_port_answers_get_and_head_of_one_path() {
    let mut program = Program::start(app().await.0, &[("OBSERVABILITY_CONFIG", PROMETHEUS)]);
    let user_metrics = program.port("user-metrics");
    let (head, body) = ask(user_metrics, "HEAD", "/metrics").await;
    assert!(head.starts_with("http/1.1 200") && head.contains("content-length: ") && body.is_empty(), "{head}");
    assert!(head.contains("text/plain; version=0.0.4"), "{head}");
    let (head, _) = ask(user_metrics, "POST", "/metrics").await;
    assert!(head.starts_with("http/1.1 405") && head.contains("allow: get, head"), "{head}");
    let (head, body) = ask(user_metrics, "GET", "/").await;
    assert!(head.starts_with("http/1.1 404") && body == "404 page not found\n", "{head}");
}

#[tokio::test]
async fn a_user_metrics_port_that_is_taken_does_not_keep_requests_from_being_served() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let config = format!(r#"{{"requestMetrics":{{"protocol":"prometheus","endpoint":":{port}"}}}}"#);
    let program = Program::start(app().await.0, &[("OBSERVABILITY_CONFIG", &config)]);
    ok(&mut TcpStream::connect(program.main).await.unwrap(), GET).await;
    let told = program.lines().into_iter().find(|line| line.contains("user metrics port stays closed")).unwrap();
    assert!(told.contains("\"ERROR\"") && told.contains(&port.to_string()), "{told}");
}

const LOG: &str = concat!(
    r#"{"enableRequestLog":true,"requestLogTemplate":"#,
    r#""{{.Request.Method}} {{.Request.URL.Path}}|{{.Response.Code}}|{{.Response.Size}}|{{.TraceID}}|LOG"}"#
);

#[tokio::test]
async fn each_request_has_its_line_and_it_says_how_it_ended() {
    let (app, mut seen) = app().await;
    let changes = [("OBSERVABILITY_CONFIG", LOG), ("REVISION_RESPONSE_START_TIMEOUT_SECONDS", "1")];
    let program = Program::start(app, &changes);
    let mut stream = TcpStream::connect(program.main).await.unwrap();
    ok(&mut stream, "GET /a?x HTTP/1.1\r\nhost: a\r\ntraceparent: 00-abc-def-01\r\n\r\n").await;
    assert_eq!(logged(&program, 1).await, ["GET /a|200|2|abc|LOG"]);
    let probe = "GET /p HTTP/1.1\r\nhost: a\r\nuser-agent: kube-probe/1\r\nk-network-probe: queue\r\n\r\n";
    assert!(read_until(&mut send(program.main, probe).await, "queue").await.contains("200"));
    let cut = "GET /cut HTTP/1.1\r\nhost: a\r\n\r\n";
    let (answer, _) = read_to_end(&mut send(program.main, cut).await).await;
    assert!(!answer.ends_with("0\r\n\r\n"), "{answer}");
    assert_eq!(logged(&program, 2).await[1..], ["GET /cut|500|0||LOG"]);
    let slow = "GET /silent HTTP/1.1\r\nhost: a\r\n\r\n";
    assert!(read_until(&mut send(program.main, slow).await, "request timeout").await.contains("504"));
    assert_eq!(logged(&program, 3).await[2..], ["GET /silent|504|15||LOG"]);
    while seen.try_recv().is_ok() {}
    let leaver = send(program.main, slow).await;
    seen.recv().await.unwrap();
    drop(leaver);
    assert_eq!(logged(&program, 4).await[3..], ["GET /silent|499|0||LOG"]);
    let switch = "GET /switch HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: echo\r\n\r\n";
    let (answer, ended) = read_to_end(&mut send(program.main, switch).await).await;
    assert!(answer.starts_with("HTTP/1.1 101") && ended, "{answer}");
    assert_eq!(logged(&program, 5).await[4..], ["GET /switch|101|0||LOG"]);
}

#[tokio::test]
async fn a_template_with_an_unsupported_action_is_told_by_name_and_requests_are_served() {
    let config = r#"{"enableRequestLog":true,"requestLogTemplate":"{{template \"other\"}}|LOG"}"#;
    let program = Program::start(app().await.0, &[("OBSERVABILITY_CONFIG", config)]);
    let began = Instant::now();
    let told = loop {
        let found = program.lines().into_iter().find(|line| line.contains("requestLogTemplate"));
        match found {
            Some(line) => break line,
            None => assert!(began.elapsed() < PATIENCE, "{:#?}", program.lines()),
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    };
    assert!(told.contains("\"ERROR\"") && told.contains("template"), "{told}");
    ok(&mut TcpStream::connect(program.main).await.unwrap(), GET).await;
    assert!(!program.lines().iter().any(|line| line.ends_with("|LOG")));
}

fn contains(message: &[u8], part: &[u8]) -> bool {
    message.windows(part.len()).any(|window| window == part)
}

#[tokio::test]
async fn a_trace_goes_on_at_the_app_and_to_the_collector() {
    let (app, mut seen) = app().await;
    let (collector, mut got) = collector().await;
    let config = format!(
        r#"{{"tracing":{{"protocol":"http/protobuf","endpoint":"http://{collector}/v1/traces","samplingRate":1}},
            "requestMetrics":{{"protocol":"http/protobuf","endpoint":"http://{collector}/v1/metrics"}}}}"#
    );
    let mut program = Program::start(app, &[("OBSERVABILITY_CONFIG", &config), ("CONTAINER_CONCURRENCY", "1"), SETTLE]);
    let parent = "traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let request = format!("GET /t HTTP/1.1\r\nhost: a\r\n{parent}\r\ntracestate: a=1\r\nbaggage: k=v\r\n\r\n");
    ok(&mut TcpStream::connect(program.main).await.unwrap(), &request).await;
    let head = seen.recv().await.unwrap().to_ascii_lowercase();
    assert!(head.contains("tracestate: a=1") && head.contains("baggage: k=v"), "{head}");
    let ours = head.split_once("traceparent: 00-0af7651916cd43dd8448eb211c80319c-").unwrap().1;
    assert!(ours[16..].starts_with("-01") && !ours.starts_with("b7ad6b7169203331"), "{head}");
    program.terminate();
    assert_eq!(program.ended().await, 0);
    let mut messages = Vec::new();
    while let Ok(message) = got.try_recv() {
        messages.push(message);
    }
    let (_, spans) = messages.iter().find(|(head, _)| head.starts_with("post /v1/traces ")).expect("spans");
    let span = u64::from_str_radix(&ours[..16], 16).unwrap().to_be_bytes();
    for name in [&b"kn.queueproxy.wait"[..], b"kn.queueproxy.proxy", b"HTTP GET", &[0x0a, 0xf7, 0x65, 0x19], &span] {
        assert!(contains(spans, name), "{name:?}");
    }
    let (_, metrics) = messages.iter().find(|(head, _)| head.starts_with("post /v1/metrics ")).expect("metrics");
    for name in [&b"http.server.request.duration"[..], b"kn.serving.invocation.duration", b"pod-1"] {
        assert!(contains(metrics, name), "{name:?}");
    }
}

#[tokio::test]
async fn a_collector_that_hangs_does_not_hold_the_end() {
    let hanging = rig::app(|stream| async move {
        let _stream = stream;
        std::future::pending().await
    })
    .await;
    for protocol in ["http/protobuf", "grpc"] {
        let config = format!(
            r#"{{"tracing":{{"protocol":"{protocol}","endpoint":"http://{hanging}","samplingRate":1}},
                "requestMetrics":{{"protocol":"{protocol}","endpoint":"http://{hanging}","exportInterval":1000000}}}}"#
        );
        // The best of three, since the machine may be busy.
        let mut took = Duration::MAX;
        for _ in 0..3 {
            let mut program = Program::start(app().await.0, &[("OBSERVABILITY_CONFIG", &config), SETTLE]);
            ok(&mut TcpStream::connect(program.main).await.unwrap(), GET).await;
            let began = Instant::now();
            program.terminate();
            assert_eq!(program.ended().await, 0);
            took = took.min(began.elapsed());
            if took < END_MAX {
                break;
            }
        }
        assert!(took < END_MAX, "{protocol}: {took:?}");
    }
}

#[tokio::test]
async fn telemetry_wakes_nobody_while_there_are_no_requests() {
    let config = r#"{"requestMetrics":{"protocol":"prometheus","endpoint":":0"},"enableRequestLog":true,
        "tracing":{"protocol":"http/protobuf","endpoint":"http://127.0.0.1:1","samplingRate":0}}"#;
    let app = app().await.0;
    let programs = [&[][..], &[("OBSERVABILITY_CONFIG", config)]].map(|changes| Program::start(app, changes));
    let mut kept = Vec::new();
    for program in programs.iter().cycle().take(200) {
        let mut stream = TcpStream::connect(program.main).await.unwrap();
        ok(&mut stream, GET).await;
        kept.push(stream);
    }
    // What follows the last request comes to rest.
    tokio::time::sleep(Duration::from_millis(500)).await;
    let sleeps = || programs.each_ref().map(Program::sleeps);
    let before = sleeps();
    tokio::time::sleep(Duration::from_secs(4)).await;
    let after = sleeps();
    let (without, with) = (after[0] - before[0], after[1] - before[1]);
    assert!(with <= without + 1, "{without} without, {with} with");
}
