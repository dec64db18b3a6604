//! The end of a pod with all that can hold it: a request that runs for long,
//! late requests, and a websocket that never ends. At any size: `cargo test`
//! shows it a tenth as long, the campaign `pod-end` in full.

use crate::program::Program;
use crate::rig::{self, OK, read_head, read_to_end};
use crate::websocket::{self, CLOSE, Socket, TEXT};
use anyhow::{Context, ensure};
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, sleep_until};

/// The times, in seconds after the begin, at full size.
const LIMIT: u32 = 60;
const REQUEST: u32 = 45;
const TERM: u32 = 1;
const LATE_UNTIL: u32 = 10;
const TUNNEL_TIMEOUT: u32 = 5;
/// By default the quiet time is a third of the limit.
const QUIET: u32 = LIMIT / 3;

/// How late anything may be.
const SLACK: Duration = Duration::from_secs(1);

/// Lives through it, with each second as long as `second` (a tenth of a second
/// at least); a line of figures.
///
/// # Errors
/// Saying what was lost, or came at the wrong time.
pub async fn live(second: Duration) -> anyhow::Result<String> {
    let limit = (second * LIMIT).as_secs().to_string();
    let tunnel_timeout = format!("{}ms", (second * TUNNEL_TIMEOUT).as_millis());
    let app = app(second * REQUEST).await;
    let changes = [
        ("REVISION_TIMEOUT_SECONDS", limit.as_str()),
        ("ZEROSCALE_UPGRADE_TIMEOUT", "0"),
        ("ZEROSCALE_DRAIN_TUNNEL_TIMEOUT", tunnel_timeout.as_str()),
    ];
    let mut program = Program::start(app, &changes);
    let address = program.main;
    let began = Instant::now();
    let long = tokio::spawn(request(address, "/long"));
    let socket = tokio::spawn(never_ending(address, second / 2, began));
    sleep_until(began + second * TERM).await;
    program.terminate();
    let (mut served, mut refused) = (0, 0);
    let mut last_late = began.elapsed();
    while began.elapsed() < second * LATE_UNTIL {
        last_late = began.elapsed();
        match request(address, "/late").await.context("a late request")? {
            Some(200) => served += 1,
            Some(503) | None => refused += 1,
            other => anyhow::bail!("a late request was answered with {other:?}"),
        }
        sleep(second / 4).await;
    }
    let patience = second * LIMIT + SLACK * 10;
    let code = program.ended_within(patience).await;
    let exited = began.elapsed();
    ensure!(code == 0, "exit code {code}");
    ensure!(long.await?? == Some(200), "the long request was not served");
    let (close, closed) = socket.await??;
    ensure!(close == 1001, "the websocket was closed with {close}");
    let due = last_late + second * (QUIET + TUNNEL_TIMEOUT);
    let late =
        closed.checked_sub(due).with_context(|| format!("the websocket was closed at {closed:?}, not {due:?}"))?;
    ensure!(late <= SLACK, "the websocket was closed {late:?} too late");
    let last = due.max(second * REQUEST);
    ensure!(exited <= last + SLACK, "the last thing ended at {last:?}, the process at {exited:?}");
    Ok(format!(
        "{served} late requests served and {refused} refused, the websocket closed after {closed:.2?}, \
         exit after {exited:.2?}"
    ))
}

/// `/ws` echoes, `/long` takes that long, all else is quick.
async fn app(long: Duration) -> SocketAddr {
    rig::app(move |mut stream| async move {
        loop {
            let head = read_head(&mut stream).await;
            if head.is_empty() {
                return;
            }
            if head.starts_with("GET /ws") {
                return websocket::serve_echo(stream, &head).await;
            }
            if head.starts_with("GET /long") {
                sleep(long).await;
            }
            if stream.write_all(OK).await.is_err() {
                return;
            }
        }
    })
    .await
}

/// The status of a whole answer; `None` when nobody listens any more.
async fn request(address: SocketAddr, path: &str) -> anyhow::Result<Option<u16>> {
    let Ok(mut stream) = TcpStream::connect(address).await else { return Ok(None) };
    let head = format!("GET {path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).await?;
    let mut answer = String::new();
    // The rig's patience is shorter than some requests are.
    loop {
        let (more, ended) = read_to_end(&mut stream).await;
        answer.push_str(&more);
        if ended {
            break;
        }
    }
    let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok());
    ensure!(status != Some(200) || answer.ends_with("\r\n\r\nok"), "cut: {answer:?}");
    ensure!(status.is_some(), "no answer: {answer:?}");
    Ok(status)
}

/// Says something now and then, until the other end closes: its code, and when.
async fn never_ending(address: SocketAddr, every: Duration, began: Instant) -> anyhow::Result<(u16, Duration)> {
    let mut socket = Socket::open(address, "/ws").await?;
    loop {
        let frame = socket.exchange(TEXT, b"still here").await.context("it ended without a close frame")?;
        if frame.opcode == CLOSE {
            // As the protocol has it: the same code back.
            let code = frame.code().context("no code")?;
            socket.writer.send(CLOSE, &code.to_be_bytes()).await.context("nobody takes the answer")?;
            return Ok((code, began.elapsed()));
        }
        ensure!(frame.payload == b"still here", "{frame:?}");
        sleep(every).await;
    }
}
