//! What comes to a sidecar from outside its pod, as the real ones send it.

use super::deployment::{number, text};
use crate::rig::{read_to_end, read_until, send};
use bytes::Bytes;
use http::Request;
use proto::stats::Stat;
use serde_json::Value;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio::time::timeout;

/// A stat that is longer than this the autoscaler does not read.
const STAT_MAX: usize = 336;

/// An answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// 0 when there was none.
    pub status: u16,
    /// As it stands, in lower case.
    pub head: String,
    /// What followed.
    pub body: String,
}

impl Answer {
    fn read(bytes: &str) -> Answer {
        let (head, body) = bytes.split_once("\r\n\r\n").unwrap_or((bytes, ""));
        let status = head.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or_default();
        Answer { status, head: head.to_ascii_lowercase(), body: body.to_owned() }
    }
}

/// A container's readiness probe, sent once by a kubelet; without an answer in
/// `timeoutSeconds` its status is 0.
///
/// # Panics
/// When the probe is no HTTP probe, or nobody listens.
pub async fn kubelet_probe(pod: IpAddr, probe: &Value) -> Answer {
    let get = &probe["httpGet"];
    let (port, path) = (number(&get["port"]), text(&get["path"]));
    let configured = get["httpHeaders"].as_array().into_iter().flatten();
    let fields: String = configured.map(|f| format!("{}: {}\r\n", text(&f["name"]), text(&f["value"]))).collect();
    let request = format!(
        "GET {path} HTTP/1.1\r\nHost: {pod}:{port}\r\nUser-Agent: kube-probe/1.34\r\nAccept: */*\r\n{fields}Connection: close\r\n\r\n"
    );
    let limit = Duration::from_secs(probe["timeoutSeconds"].as_u64().unwrap_or(1));
    let asked = async { read_to_end(&mut send((pod, port).into(), &request).await).await.0 };
    timeout(limit, asked).await.map(|text| Answer::read(&text)).unwrap_or_default()
}

/// A container's preStop hook, called by a kubelet.
///
/// # Panics
/// When the hook is no HTTP hook, or nobody listens.
pub async fn kubelet_hook(pod: IpAddr, hook: &Value) -> Answer {
    let get = &hook["httpGet"];
    let (port, path) = (number(&get["port"]), text(&get["path"]));
    let request = format!(
        "GET {path} HTTP/1.1\r\nHost: {pod}:{port}\r\nUser-Agent: kube-lifecycle/1.34\r\nAccept: */*\r\nConnection: close\r\n\r\n"
    );
    let mut stream = send((pod, port).into(), &request).await;
    // The drain may take its time: a kubelet waits for the grace period.
    let mut bytes = Vec::new();
    let _ = stream.read_to_end(&mut bytes).await;
    Answer::read(&String::from_utf8_lossy(&bytes))
}

/// The activator's question whether the pod is ready.
///
/// # Panics
/// When nobody listens.
pub async fn activator_probe(pod: SocketAddr) -> Answer {
    let request = format!(
        "GET /healthz HTTP/1.1\r\nHost: {pod}\r\nUser-Agent: Knative-Activator-Probe\r\nK-Network-Probe: queue\r\nConnection: close\r\n\r\n"
    );
    Answer::read(&read_to_end(&mut send(pod, &request).await).await.0)
}

/// What the activator adds to a request for `host`.
fn from_activator(host: &str) -> [(&'static str, &str); 6] {
    [
        ("User-Agent", "curl/8.14.1"),
        ("Accept-Encoding", "gzip"),
        ("K-Original-Host", host),
        ("K-Proxy-Request", "activator"),
        ("X-Forwarded-For", "203.0.113.9, 10.244.0.9"),
        ("X-Forwarded-Proto", "http"),
    ]
}

/// A client's request for `host`, passed on by an activator over HTTP/1.1.
///
/// # Panics
/// When nobody listens.
pub async fn proxied_http1(pod: SocketAddr, host: &str, path: &str) -> Answer {
    let fields: String = from_activator(host).iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let mut stream = send(pod, &format!("GET {path} HTTP/1.1\r\nHost: {pod}\r\n{fields}\r\n")).await;
    Answer::read(&read_until(&mut stream, "ok").await)
}

/// The same over HTTP/2 with prior knowledge.
///
/// # Panics
/// When there is no answer.
pub async fn proxied_h2c(pod: SocketAddr, host: &str, path: &str) -> Answer {
    let stream = TcpStream::connect(pod).await.expect("a connection");
    let (mut client, connection) = h2::client::handshake(stream).await.expect("HTTP/2");
    let driver = tokio::spawn(connection);
    let mut request = Request::get(format!("http://{pod}{path}"));
    for (name, value) in from_activator(host) {
        request = request.header(name, value);
    }
    let (answer, _) = client.send_request(request.body(()).expect("a request"), true).expect("a stream");
    let answer = answer.await.expect("an answer");
    let status = answer.status().as_u16();
    let mut body = answer.into_body();
    let mut bytes = Vec::new();
    while let Some(data) = body.data().await {
        let data: Bytes = data.expect("the whole answer");
        let _ = body.flow_control().release_capacity(data.len());
        bytes.extend_from_slice(&data);
    }
    driver.abort();
    Answer { status, head: String::new(), body: String::from_utf8_lossy(&bytes).into_owned() }
}

/// The stat, scraped as the autoscaler does.
///
/// # Panics
/// When it would not take the answer.
pub async fn scrape(pod: SocketAddr) -> Stat {
    let request = format!(
        "GET /metrics HTTP/1.1\r\nHost: {pod}\r\nUser-Agent: Go-http-client/1.1\r\nAccept: application/protobuf\r\nConnection: close\r\n\r\n"
    );
    let mut answer = Vec::new();
    send(pod, &request).await.read_to_end(&mut answer).await.expect("an answer");
    let end = answer.windows(4).position(|window| window == b"\r\n\r\n").expect("a head");
    let head = String::from_utf8_lossy(&answer[..end]).to_ascii_lowercase();
    assert!(head.starts_with("http/1.1 200"), "{head}");
    assert!(head.lines().any(|line| line == "content-type: application/protobuf"), "{head}");
    proto::decode(&answer[end + 4..], STAT_MAX).expect("a stat")
}
