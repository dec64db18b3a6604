//! The app answers before it has read the body, reads no more, and keeps its
//! socket: the client gets that answer, whole, whatever it still sends.

use super::h1::Conn;
use super::{PATIENCE, h2c};
use crate::floor::trial::{Report, median_and_worst, show};
use crate::front::{Chain, Through};
use crate::rig;
use anyhow::Context;
use bytes::Bytes;
use http::Response;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until, timeout};

/// How much each client has to send, and how fast.
const BODY_BYTES: usize = 2_000_000;
const PIECE: Bytes = Bytes::from_static(&[b'x'; 20_000]);
const PACE: Duration = Duration::from_millis(20);
/// How long the app thinks about the head.
const THINKS: Duration = Duration::from_millis(100);
/// The whole answer is there by then, and not when all has been sent (2 s).
const ARRIVES: Duration = Duration::from_millis(1000);
/// What the app says.
const VERDICT: &str = "that is too much for me, and I have read only the beginning";
/// Clients at once: each sends 1 MB/s.
const AT_ONCE: usize = 40;

/// How a client goes about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    /// HTTP/1, and reads while it sends.
    Attentive,
    /// HTTP/1, and reads once it has sent everything, as many do.
    Stubborn,
    /// HTTP/2 without TLS.
    Http2,
}

const MANNERS: [Manner; 3] = [Manner::Attentive, Manner::Stubborn, Manner::Http2];

/// Sends `runs` uploads in each manner.
///
/// # Errors
/// When something cannot be tried at all.
pub async fn run(through: Through, runs: usize) -> anyhow::Result<Report> {
    let mut report = Report::new(1);
    let chain = Chain::start(through, rig::app(serve).await, &[]);
    for manner in MANNERS {
        judge(&mut report, manner, uploads(chain.main, manner, runs).await);
    }
    Ok(report)
}

fn judge(report: &mut Report, manner: Manner, ends: Vec<anyhow::Result<Duration>>) {
    let faults: Vec<String> =
        ends.iter().filter_map(|end| end.as_ref().err()).map(|error| format!("{error:#}")).collect();
    report.count(format!("{manner:?}: answers of the app, whole"), ends.len() - faults.len(), ends.len());
    if let Some(first) = faults.first() {
        report.tell(format!("{manner:?}: first of {} faults", faults.len()), first);
    }
    let (median, worst) = median_and_worst(ends.into_iter().flatten().collect());
    report.tell(format!("{manner:?}: from the request to its answer, worst"), show(worst));
    if manner != Manner::Stubborn {
        report.time(format!("{manner:?}: from the request to its answer, median"), median, ARRIVES);
    }
}

async fn uploads(sidecar: SocketAddr, manner: Manner, runs: usize) -> Vec<anyhow::Result<Duration>> {
    let (mut under_way, mut ends) = (JoinSet::new(), Vec::new());
    let mut left = runs;
    while ends.len() < runs {
        while left > 0 && under_way.len() < AT_ONCE {
            left -= 1;
            under_way.spawn(upload(sidecar, manner));
        }
        let Some(end) = under_way.join_next().await else { break };
        ends.push(end.unwrap_or_else(|error| Err(error.into())));
    }
    ends
}

/// How long the answer took, from the head's sending.
async fn upload(sidecar: SocketAddr, manner: Manner) -> anyhow::Result<Duration> {
    let began = Instant::now();
    let (status, body) = match manner {
        Manner::Attentive => attentive(sidecar).await?,
        Manner::Stubborn => stubborn(sidecar).await?,
        Manner::Http2 => http2(sidecar).await?,
    };
    anyhow::ensure!(status == 413 && body == VERDICT.as_bytes(), "{status} {:?}", String::from_utf8_lossy(&body));
    Ok(began.elapsed())
}

fn head() -> String {
    format!("POST /upload HTTP/1.1\r\nhost: shop.example\r\ncontent-length: {BODY_BYTES}\r\n\r\n")
}

async fn attentive(sidecar: SocketAddr) -> anyhow::Result<(u16, Vec<u8>)> {
    let mut conn = Conn::open(sidecar).await?;
    conn.send(head().as_bytes()).await?;
    let (mut conn, mut writing) = conn.with_writer()?;
    let sending = tokio::spawn(async move {
        let _ = send_slowly(&mut writing).await;
        writing
    });
    let got = conn.answer().await;
    sending.abort();
    let got = got?;
    anyhow::ensure!(got.whole, "the answer is cut: {}", got.summary());
    Ok((got.status, got.body))
}

async fn stubborn(sidecar: SocketAddr) -> anyhow::Result<(u16, Vec<u8>)> {
    let mut conn = Conn::open(sidecar).await?;
    conn.send(head().as_bytes()).await?;
    // A reset here, and elsewhere the answer would be lost with it.
    timeout(PATIENCE, send_slowly(&mut conn.stream)).await?.context("while it sends")?;
    let got = conn.answer().await?;
    anyhow::ensure!(got.whole, "the answer is cut: {}", got.summary());
    Ok((got.status, got.body))
}

async fn http2(sidecar: SocketAddr) -> anyhow::Result<(u16, Vec<u8>)> {
    let client = h2c::Client::open(sidecar).await?;
    let (answer, mut stream) = client.begin(h2c::request("POST", "/upload"), false).await?;
    let sending = tokio::spawn(async move { h2c::send_slowly(&mut stream, pieces(), PACE).await });
    let got = h2c::read(answer).await;
    sending.abort();
    got.map(|got| (got.status, got.body))
}

fn pieces() -> impl Iterator<Item = Bytes> {
    std::iter::repeat_n(PIECE, BODY_BYTES / PIECE.len())
}

async fn send_slowly(stream: &mut TcpStream) -> std::io::Result<()> {
    let mut next = Instant::now();
    for piece in pieces() {
        stream.write_all(&piece).await?;
        next += PACE;
        sleep_until(next).await;
    }
    Ok(())
}

/// The app.
async fn serve(stream: TcpStream) {
    let mut preface = [0; 3];
    while stream.peek(&mut preface).await.is_ok_and(|seen| (1..3).contains(&seen)) {
        sleep(Duration::from_millis(1)).await;
    }
    if preface == *b"PRI" { serve_http2(stream).await } else { serve_http1(stream).await }
}

async fn serve_http1(stream: TcpStream) {
    let mut conn = Conn::over(stream);
    if conn.head().await.is_err() {
        return;
    }
    sleep(THINKS).await;
    let answer = format!("HTTP/1.1 413 Too much\r\ncontent-length: {}\r\n\r\n{VERDICT}", VERDICT.len());
    let _ = conn.send(answer.as_bytes()).await;
    sleep(PATIENCE).await;
}

async fn serve_http2(stream: TcpStream) {
    let Ok(mut connection) = h2::server::handshake(stream).await else { return };
    while let Some(Ok((request, mut answer))) = connection.accept().await {
        tokio::spawn(async move {
            sleep(THINKS).await;
            let head = Response::builder().status(413).body(()).expect("a head");
            if let Ok(mut stream) = answer.send_response(head, false) {
                let _ = stream.send_data(Bytes::from_static(VERDICT.as_bytes()), true);
            }
            // The stream is neither read nor given up.
            sleep(PATIENCE).await;
            drop(request);
        });
    }
}
