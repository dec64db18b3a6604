//! A client over HTTP/2 without TLS.

use super::PATIENCE;
use anyhow::Context;
use bytes::Bytes;
use h2::SendStream;
use h2::client::{ResponseFuture, SendRequest};
use http::{HeaderMap, Request};
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep_until, timeout};

/// A connection. Clones share it.
#[derive(Clone)]
pub struct Client {
    send: SendRequest<Bytes>,
}

/// An answer.
#[derive(Clone, Debug)]
pub struct Answer {
    /// Its status.
    pub status: u16,
    /// Its fields.
    pub fields: HeaderMap,
    /// Its body.
    pub body: Vec<u8>,
    /// What followed the body.
    pub trailers: HeaderMap,
}

impl Answer {
    /// A field of its head, or nothing.
    pub fn field(&self, name: &str) -> &str {
        self.fields.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }
}

impl Client {
    /// Connects.
    ///
    /// # Errors
    /// When that fails.
    pub async fn open(address: SocketAddr) -> anyhow::Result<Client> {
        let stream = timeout(PATIENCE, TcpStream::connect(address)).await??;
        stream.set_nodelay(true)?;
        let (send, connection) = h2::client::Builder::new().handshake(stream).await?;
        tokio::spawn(connection);
        Ok(Client { send })
    }

    /// Begins a request; `ended`: it has no body.
    ///
    /// # Errors
    /// When the connection is of no use any more.
    pub async fn begin(&self, head: Request<()>, ended: bool) -> anyhow::Result<(ResponseFuture, SendStream<Bytes>)> {
        let mut send = timeout(PATIENCE, self.send.clone().ready()).await.context("no stream is free")??;
        Ok(send.send_request(head, ended)?)
    }

    /// One request without a body.
    ///
    /// # Errors
    /// When no whole answer comes.
    pub async fn ask(&self, head: Request<()>) -> anyhow::Result<Answer> {
        let (answer, _stream) = self.begin(head, true).await?;
        read(answer).await
    }
}

/// A request for a path.
///
/// # Panics
/// When that is none.
pub fn request(method: &str, path: &str) -> Request<()> {
    let uri = format!("http://shop.example{path}");
    Request::builder().method(method).uri(uri).version(http::Version::HTTP_2).body(()).expect("a request")
}

/// Reads a whole answer.
///
/// # Errors
/// When it does not come, or not whole.
pub async fn read(answer: ResponseFuture) -> anyhow::Result<Answer> {
    timeout(PATIENCE, read_all(answer)).await.context("no whole answer in time")?
}

async fn read_all(answer: ResponseFuture) -> anyhow::Result<Answer> {
    let (head, mut content) = answer.await.context("no head")?.into_parts();
    let mut body = Vec::new();
    while let Some(piece) = content.data().await {
        let piece = piece.context("the body is cut")?;
        content.flow_control().release_capacity(piece.len())?;
        body.extend_from_slice(&piece);
    }
    let trailers = content.trailers().await.context("the trailers are cut")?.unwrap_or_default();
    Ok(Answer { status: head.status.as_u16(), fields: head.headers, body, trailers })
}

/// Sends a body piece by piece, as flow control lets it; one piece a `pace`.
/// Ends early when the stream is reset.
pub async fn send_slowly(stream: &mut SendStream<Bytes>, pieces: impl Iterator<Item = Bytes>, pace: Duration) {
    let mut next = Instant::now();
    for mut piece in pieces {
        while !piece.is_empty() {
            stream.reserve_capacity(piece.len());
            let Some(Ok(room)) = std::future::poll_fn(|cx| stream.poll_capacity(cx)).await else { return };
            if stream.send_data(piece.split_to(room.min(piece.len())), false).is_err() {
                return;
            }
        }
        next += pace;
        sleep_until(next).await;
    }
    let _ = stream.send_data(Bytes::new(), true);
}
