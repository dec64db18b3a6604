//! The activator as a program: what it is told, what it answers, how it ends.

use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;
use tests::filehost::world::{self, Line};
use tests::rig::{PATIENCE, lateness, read_to_end, read_until, send, until};
use tests::stock::Stock;

fn binary() -> PathBuf {
    tests::floor::binaries::activator().unwrap()
}

struct Program {
    child: Child,
    http: SocketAddr,
    metrics: SocketAddr,
    profiling: SocketAddr,
    _lines: mpsc::Receiver<String>,
}

impl Program {
    /// Without revisions, its ports free ones.
    fn start(more: &[(&str, &str)]) -> Program {
        let base = [
            ("POD_NAME", "activator-1"),
            ("POD_IP", "127.0.0.1"),
            ("SYSTEM_NAMESPACE", "knative-serving"),
            ("CLUSTER_DOMAIN", "cluster.local"),
            ("ZEROSCALE_PLATFORM", "file:/dev/null"),
            ("ZEROSCALE_BIND", "127.0.0.1"),
            ("ZEROSCALE_HTTP_PORT", "0"),
            ("ZEROSCALE_HTTP2_PORT", "0"),
            ("PROFILING_PORT", "0"),
            ("METRICS_PROMETHEUS_PORT", "0"),
            ("ZEROSCALE_AUTOSCALER", "127.0.0.1:9"),
            ("ZEROSCALE_LOG_FORMAT", "json"),
        ];
        let mut child = Command::new(binary())
            .env_clear()
            .envs(base)
            .envs(more.iter().copied())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (tell, lines) = mpsc::channel();
        let errors = BufReader::new(child.stderr.take().unwrap());
        std::thread::spawn(move || errors.lines().map_while(Result::ok).try_for_each(|line| tell.send(line)));
        let address = |name: &str| loop {
            let line = lines.recv_timeout(PATIENCE).expect("it listens");
            let line: serde_json::Value = serde_json::from_str(&line).expect("a line of JSON");
            if line["message"] == "listening" && line["name"] == name {
                return line["address"].as_str().unwrap().parse().unwrap();
            }
        };
        let (http, profiling, metrics) = (address("http"), address("profiling"), address("metrics"));
        Program { child, http, metrics, profiling, _lines: lines }
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    async fn exit_code(&mut self) -> Option<i32> {
        let deadline = tokio::time::Instant::now() + PATIENCE;
        while tokio::time::Instant::now() < deadline {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code();
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        None
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

async fn ask(address: SocketAddr, request: &str) -> String {
    read_to_end(&mut send(address, request).await).await.0
}

/// True when the page has that value for the link to the autoscaler.
fn shows(page: &str, name: &str, value: &str) -> bool {
    let series = page.lines().filter_map(|line| line.strip_prefix(name)?.rsplit_once(' '));
    let link = |labels: &str| labels.starts_with('{') && labels.contains("peer=\"autoscaler\"");
    series.into_iter().any(|(labels, shown)| link(labels) && shown == value)
}

const KUBELET: &str = "GET / HTTP/1.1\r\nhost: a\r\nuser-agent: kube-probe/1.30\r\nconnection: close\r\n\r\n";
const PROBE: &str = "GET /x HTTP/1.1\r\nhost: a\r\nk-network-probe: activator\r\nconnection: close\r\n\r\n";

#[test]
fn all_faults_are_told_by_name_and_nothing_is_started() {
    let output = Command::new(binary())
        .env_clear()
        .env("POD_IP", "10.0.0.1")
        .env("PROBE_TIMEOUT", "soon")
        .env("ZEROSCALE_PLATFORM", "moon")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    for name in ["POD_NAME", "SYSTEM_NAMESPACE", "PROBE_TIMEOUT", "ZEROSCALE_PLATFORM"] {
        assert!(told.contains(name), "{told}");
    }
    assert_eq!(told.lines().count(), 4, "{told}");
}

#[test]
fn a_port_that_is_taken_is_named() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let mut child = Command::new(binary())
        .env_clear()
        .envs([("POD_NAME", "a"), ("POD_IP", "127.0.0.1"), ("SYSTEM_NAMESPACE", "s"), ("ZEROSCALE_BIND", "127.0.0.1")])
        .envs([("ZEROSCALE_PLATFORM", "file:/dev/null"), ("ZEROSCALE_HTTP_PORT", &port)])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut told = String::new();
    child.stderr.take().unwrap().read_to_string(&mut told).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(1));
    assert!(told.contains(&format!("127.0.0.1:{port}")), "{told}");
}

#[tokio::test]
async fn it_is_healthy_once_the_autoscaler_is_reached_and_stays_so_when_that_is_lost() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let program = Program::start(&[("ZEROSCALE_AUTOSCALER", &address.to_string())]);
    let before = ask(program.http, KUBELET).await;
    assert!(
        before.starts_with("HTTP/1.1 500 ") && before.contains("connection has not yet been established"),
        "{before}"
    );
    let page = ask(program.metrics, "GET /metrics HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n").await;
    assert!(shows(&page, "kn_activator_stats_conn_reachable", "0"), "{page}");
    let (mut stream, _) = listener.accept().unwrap();
    let mut socket = tungstenite::accept(stream.try_clone().unwrap()).unwrap();
    let mut healthy = String::new();
    while !healthy.starts_with("HTTP/1.1 200 ") {
        healthy = ask(program.http, KUBELET).await;
    }
    drop(listener);
    let _ = socket.close(None);
    let _ = stream.read(&mut [0; 64]);
    drop((socket, stream));
    let mut page = String::new();
    while !shows(&page, "kn_activator_stats_conn_errors_total", "1") {
        page = ask(program.metrics, "GET /metrics HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n").await;
    }
    assert!(shows(&page, "kn_activator_stats_conn_reachable", "0"), "{page}");
    assert!(
        ask(program.http, KUBELET).await.starts_with("HTTP/1.1 200 "),
        "it holds requests: it must not be restarted"
    );
}

#[tokio::test]
async fn an_unknown_revision_is_told_in_the_references_words_and_side_ports_are_there() {
    let program = Program::start(&[]);
    let unknown = "GET / HTTP/1.1\r\nhost: rev.ns.svc.cluster.local\r\nconnection: close\r\n\r\n";
    let answer = ask(program.http, unknown).await;
    assert!(answer.starts_with("HTTP/1.1 404 ") && answer.contains("revision.serving.knative.dev \"rev\" not found"));
    let get = "GET /debug/pprof/ HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";
    assert!(ask(program.profiling, get).await.starts_with("HTTP/1.1 404 "));
    let post = "POST /metrics HTTP/1.1\r\nhost: a\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";
    assert!(ask(program.metrics, post).await.starts_with("HTTP/1.1 405 "));
}

#[tokio::test]
async fn two_of_them_find_the_pods_of_a_file_and_share_them_out_by_their_addresses() {
    let (one, two) = (Stock::start(Duration::ZERO).await, Stock::start(Duration::ZERO).await);
    let mut pods = [&one, &two];
    pods.sort_by_key(|pod| pod.address.to_string());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("world.yaml");
    let phases = [(&one, "starting"), (&two, "ready")];
    let lines = phases.map(|(pod, phase)| Line { name: phase.to_owned(), address: pod.address, phase });
    let settings = "  containerConcurrency: 1\n  activators: [10.1.0.1, 10.1.0.2]\n";
    world::put(&path, &world::text(settings, &lines));
    let platform = format!("file:{}", path.display());
    let program = |ip| Program::start(&[("ZEROSCALE_PLATFORM", &platform), ("POD_IP", ip)]);
    let programs = [program("10.1.0.1"), program("10.1.0.2")];
    until("all are asked", || pods.iter().all(|pod| pod.probes() >= 2)).await;
    // Before both are known, either is everybody's.
    tokio::time::sleep(Duration::from_millis(100) + lateness()).await;
    for (program, name) in programs.iter().zip(["a", "b"]) {
        for _ in 0..10 {
            let request = format!("GET /{name} HTTP/1.1\r\nhost: rev.default.svc.cluster.local\r\n\r\n");
            let answer = read_until(&mut send(program.http, &request).await, "\r\n\r\nok").await;
            assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        }
    }
    for (pod, name) in pods.iter().zip(["a", "b"]) {
        assert_eq!(pod.requests(), [(name.to_owned(), 10)].into());
    }
}

#[tokio::test]
async fn when_asked_to_end_it_goes_on_for_the_quiet_time_and_then_ends_with_zero() {
    let mut program = Program::start(&[("ZEROSCALE_DRAIN_SETTLE", "3s")]);
    program.signal(Signal::TERM);
    let mut told = String::new();
    while !told.contains("received SIGTERM from kubelet") {
        told = ask(program.http, KUBELET).await;
        assert!(told.starts_with("HTTP/1.1 500 "), "{told}");
    }
    assert!(ask(program.http, PROBE).await.ends_with("activator"), "an autoscaler is answered still");
    assert_eq!(program.child.try_wait().unwrap(), None);
    assert_eq!(program.exit_code().await, Some(0));
}

#[tokio::test]
async fn a_second_signal_ends_it_at_once_with_one() {
    let mut program = Program::start(&[]);
    program.signal(Signal::TERM);
    let mut told = String::new();
    while !told.contains("received SIGTERM from kubelet") {
        told = ask(program.http, KUBELET).await;
    }
    program.signal(Signal::INT);
    assert_eq!(program.exit_code().await, Some(1));
}

#[tokio::test]
async fn http2_connections_are_told_goaway() {
    let mut program = Program::start(&[("ZEROSCALE_DRAIN_SETTLE", "0s")]);
    let stream = tokio::net::TcpStream::connect(program.http).await.unwrap();
    let (_requests, connection) = h2::client::handshake(stream).await.unwrap();
    let ended = tokio::spawn(connection);
    // A probe on another connection: the server has this one by then.
    let _ = read_until(&mut send(program.http, PROBE).await, "activator").await;
    program.signal(Signal::TERM);
    assert_eq!(program.exit_code().await, Some(0));
    let ended = tokio::time::timeout(PATIENCE, ended).await.expect("it is closed").unwrap();
    assert!(ended.is_ok() || ended.as_ref().is_err_and(h2::Error::is_go_away), "{ended:?}");
}
