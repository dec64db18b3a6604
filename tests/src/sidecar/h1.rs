//! HTTP/1 on one connection, byte for byte, as a client or as an app.

use super::PATIENCE;
use crate::replay::cases::wire::{Body, Framing, Head};
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// A connection, and what has come on it and was not taken yet.
pub struct Conn {
    /// The connection.
    pub stream: TcpStream,
    /// What has come.
    pub seen: Vec<u8>,
}

/// An answer.
#[derive(Clone, Debug)]
pub struct Answer {
    /// Its status.
    pub status: u16,
    /// Its head.
    pub head: Head,
    /// Its body, or what came of it.
    pub body: Vec<u8>,
    /// True when the body came to its stated end.
    pub whole: bool,
}

impl Answer {
    /// A field of its head, or nothing.
    pub fn field(&self, name: &str) -> &str {
        self.head.get(name).unwrap_or_default()
    }

    /// Status and reason, for messages.
    pub fn summary(&self) -> String {
        let cut = if self.whole { "" } else { ", cut" };
        format!("{} {}{cut}", self.status, self.field("x-zeroscale-reason"))
    }
}

impl Conn {
    /// Over a connection that was accepted.
    pub fn over(stream: TcpStream) -> Conn {
        let _ = stream.set_nodelay(true);
        Conn { stream, seen: Vec::new() }
    }

    /// Connects.
    ///
    /// # Errors
    /// When that fails.
    pub async fn open(address: SocketAddr) -> io::Result<Conn> {
        let connected = timeout(PATIENCE, TcpStream::connect(address)).await;
        Ok(Conn::over(connected.map_err(|_| io::Error::from(ErrorKind::TimedOut))??))
    }

    /// Beside it, a second handle to write with.
    ///
    /// # Errors
    /// When there is no descriptor left.
    pub fn with_writer(self) -> io::Result<(Conn, TcpStream)> {
        let stream = self.stream.into_std()?;
        let writer = TcpStream::from_std(stream.try_clone()?)?;
        Ok((Conn { stream: TcpStream::from_std(stream)?, seen: self.seen }, writer))
    }

    /// Sends bytes.
    ///
    /// # Errors
    /// When that fails.
    pub async fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes).await
    }

    /// Reads some more; 0 at the end.
    ///
    /// # Errors
    /// When that fails.
    pub async fn more(&mut self) -> io::Result<usize> {
        self.seen.reserve(16 * 1024);
        self.stream.read_buf(&mut self.seen).await
    }

    /// Reads until a whole head has come, and takes it.
    ///
    /// # Errors
    /// When the connection fails or ends before.
    pub async fn head(&mut self) -> io::Result<Head> {
        loop {
            if let Some(head) = Head::read(&self.seen) {
                self.seen.drain(..head.len);
                return Ok(head);
            }
            if self.more().await? == 0 {
                return Err(ErrorKind::UnexpectedEof.into());
            }
        }
    }

    /// Reads a whole request: head and body. `None` at the connection's end.
    pub async fn request(&mut self) -> Option<(Head, Vec<u8>)> {
        let head = self.head().await.ok()?;
        let framing = head.request_framing();
        loop {
            let body = Body::read(&self.seen, framing, false);
            if body.whole || body.broken {
                self.seen.drain(..body.len);
                return (!body.broken).then_some((head, body.data));
            }
            if self.more().await.ok()? == 0 {
                return None;
            }
        }
    }

    /// Reads the final answer to a request that was not HEAD.
    ///
    /// # Errors
    /// When none comes in time, or the connection ends before its head has.
    pub async fn answer(&mut self) -> io::Result<Answer> {
        match timeout(PATIENCE, self.read_answer()).await {
            Ok(answer) => answer,
            Err(_) => Err(ErrorKind::TimedOut.into()),
        }
    }

    async fn read_answer(&mut self) -> io::Result<Answer> {
        let head = loop {
            let head = self.head().await?;
            if !head.status().is_some_and(|status| (100..200).contains(&status) && status != 101) {
                break head;
            }
        };
        let status = head.status().ok_or(ErrorKind::InvalidData)?;
        let framing = if status == 101 { Framing::None } else { head.answer_framing(false) };
        let mut ended = false;
        loop {
            let body = Body::read(&self.seen, framing, ended);
            if body.whole || body.broken || ended {
                self.seen.drain(..body.len.min(self.seen.len()));
                return Ok(Answer { status, head, body: body.data, whole: body.whole });
            }
            // A reset ends it just as well: it has not come whole.
            ended = !matches!(self.more().await, Ok(1..));
        }
    }
}

/// Sends one request on a connection of its own; the answer.
///
/// # Errors
/// When no answer comes.
pub async fn ask(address: SocketAddr, request: &[u8]) -> io::Result<Answer> {
    let mut conn = Conn::open(address).await?;
    conn.send(request).await?;
    conn.answer().await
}
