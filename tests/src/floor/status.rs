//! What an instance says of itself, over its admin socket. Only what the tests
//! look at: a field more in the answer is none of their business.

use anyhow::Context;
use serde::Deserialize;
use std::path::Path;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

const ANSWER_MAX: Duration = Duration::from_secs(5);

/// The answer to GET /status.
#[derive(Clone, Debug, Deserialize)]
pub struct Status {
    /// One service in these tests.
    pub revisions: Vec<Revision>,
}

/// One revision.
#[derive(Clone, Debug, Deserialize)]
pub struct Revision {
    /// Pods ordered.
    pub wanted: Option<u32>,
    /// Pods that are there.
    pub pods: Vec<Pod>,
    /// Requests that wait.
    pub held: usize,
    /// Requests at pods.
    pub in_flight: usize,
    /// Why pods cannot be started.
    pub trouble: Option<String>,
}

/// One pod.
#[derive(Clone, Debug, Deserialize)]
pub struct Pod {
    /// `starting`, `ready` or `terminating`.
    pub phase: String,
    /// Where its sidecar listens.
    pub address: String,
}

impl Status {
    /// Asks at a socket.
    ///
    /// # Errors
    /// When nobody answers, or not with a status.
    pub async fn ask(socket: &Path) -> anyhow::Result<Status> {
        tokio::time::timeout(ANSWER_MAX, ask(socket)).await.context("no status in time")?
    }

    /// Requests that wait.
    pub fn held(&self) -> usize {
        self.revisions.iter().map(|revision| revision.held).sum()
    }

    /// Requests at pods.
    pub fn in_flight(&self) -> usize {
        self.revisions.iter().map(|revision| revision.in_flight).sum()
    }

    /// Pods in a phase.
    pub fn pods(&self, phase: &str) -> usize {
        self.revisions.iter().flat_map(|revision| &revision.pods).filter(|pod| pod.phase == phase).count()
    }

    /// No pod is there, and none is wanted.
    pub fn is_at_zero(&self) -> bool {
        self.revisions.iter().all(|revision| revision.pods.is_empty() && revision.wanted.unwrap_or(0) == 0)
    }
}

async fn ask(socket: &Path) -> anyhow::Result<Status> {
    let mut stream = UnixStream::connect(socket).await.with_context(|| socket.display().to_string())?;
    stream.write_all(b"GET /status HTTP/1.1\r\nhost: admin\r\nconnection: close\r\n\r\n").await?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await?;
    let answer = String::from_utf8(answer)?;
    let (_, body) = answer.split_once("\r\n\r\n").context("no body")?;
    Ok(serde_json::from_str(body)?)
}
