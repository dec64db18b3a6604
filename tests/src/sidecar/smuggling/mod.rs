//! Requests that two parsers may take for different ones. For each the app
//! gets nothing, or one request that nobody can read as two.
//!
//! | job | module |
//! | --- | --- |
//! | what is sent over HTTP/1 | [`list`] |
//! | what is sent over HTTP/2 | [`list_h2`] |
//! | the app: it writes down bytes and understands next to nothing | [`recorder`] |
//! | two lenient readings of those bytes | [`lenient`] |
//! | the verdict | [`judge`] |

pub mod judge;
pub mod lenient;
pub mod list;
pub mod list_h2;
pub mod recorder;

use super::h1::{self, Conn};
use crate::floor::trial::Report;
use crate::front::{Chain, Through};
use recorder::Recorder;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::timeout;

/// What the app may get of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum May {
    /// Nothing: it must be refused.
    Nothing,
    /// One request at most, made unambiguous.
    One,
    /// One request and no less: it is right, if seldom.
    Just,
    /// Two: the control. Two honest requests on one connection.
    Two,
}

/// Bytes on a connection.
#[derive(Clone, Debug)]
pub struct Case {
    /// Its name.
    pub name: String,
    /// What the client sends.
    pub bytes: Vec<u8>,
    /// What may come of it.
    pub may: May,
    /// The client speaks HTTP/2.
    pub http2: bool,
}

/// How long a client waits for something to come.
const QUIET: Duration = Duration::from_millis(300);
/// Cases at a time.
const AT_ONCE: usize = 16;

/// What came of a case.
#[derive(Debug, Default)]
pub struct Outcome {
    /// What the client got.
    pub answers: Vec<u8>,
    /// What the app got, a connection each.
    pub recorded: Vec<Vec<u8>>,
    /// Status of an honest request of somebody else, sent afterwards.
    pub after: u16,
}

/// Runs them all, each with an app, a sidecar, and perhaps an activator, of
/// its own.
pub async fn run(through: Through, cases: Vec<Case>) -> Report {
    let mut report = Report::new(1);
    let (mut left, mut running, mut faults) = (VecDeque::from(cases), JoinSet::new(), Vec::new());
    let (total, mut refused, mut served) = (left.len(), 0, 0);
    loop {
        while running.len() < AT_ONCE
            && let Some(case) = left.pop_front()
        {
            running.spawn(async move {
                let outcome = try_out(through, &case).await;
                (case, outcome)
            });
        }
        let Some(Ok((case, outcome))) = running.join_next().await else { break };
        let verdict = outcome.map_err(|error| format!("{error:#}")).and_then(|seen| judge::judge(&case, &seen));
        match verdict {
            Ok(0) => refused += 1,
            Ok(_) => served += 1,
            Err(fault) => faults.push((case.name, fault)),
        }
    }
    report.tell("refused", refused);
    report.tell("one request at the app", served);
    report.count("of all cases", refused + served, total);
    faults.sort();
    for (name, fault) in faults {
        report.holds(name, false, fault);
    }
    report
}

async fn try_out(through: Through, case: &Case) -> anyhow::Result<Outcome> {
    let recorder = Recorder::start().await;
    let app = recorder.address;
    // Starting one blocks.
    let chain = tokio::task::spawn_blocking(move || Chain::start(through, app, &[])).await?;
    let answers = speak(chain.main, &case.bytes).await?;
    let after = h1::ask(chain.main, b"GET /after HTTP/1.1\r\nhost: shop.example\r\n\r\n").await?.status;
    Ok(Outcome { answers, recorded: recorder.recorded(), after })
}

/// Sends the bytes; what came until the end, or until nothing more came.
async fn speak(sidecar: SocketAddr, bytes: &[u8]) -> anyhow::Result<Vec<u8>> {
    let Conn { stream, mut seen } = Conn::open(sidecar).await?;
    let (mut read, mut write): (_, _) = TcpStream::into_split(stream);
    let bytes = bytes.to_vec();
    // It may close while we are still sending.
    let sending = tokio::spawn(async move {
        let _ = write.write_all(&bytes).await;
        write
    });
    while let Ok(Ok(1..)) = timeout(QUIET, read.read_buf(&mut seen)).await {}
    sending.abort();
    Ok(seen)
}
