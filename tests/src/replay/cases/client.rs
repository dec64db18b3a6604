//! Client connections, read as soon as something arrives.
//!
//! A task of its own reads, so that it is known when bytes came, and so that
//! an answer that was there before the connection was reset is not lost.

use super::case::Tls;
use super::latin;
use super::tls;
use super::wire::{Body, Head};
use serde_json::{Map, Value, json};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// How long a connection must stay open to count as open.
const STAYS: Duration = Duration::from_millis(120);

/// A client's end of a connection.
pub struct Conn {
    write: Box<dyn AsyncWrite + Send + Unpin>,
    inbox: Arc<Inbox>,
    reader: JoinHandle<()>,
    /// A head that was read by itself, and where it ends.
    head: Option<Head>,
    /// When bytes were sent last.
    sent: Instant,
}

#[derive(Default)]
struct Inbox {
    arrived: Mutex<Arrived>,
    news: Notify,
}

#[derive(Default)]
struct Arrived {
    bytes: Vec<u8>,
    /// How many bytes were taken already.
    taken: usize,
    /// When how many bytes in all had come.
    marks: Vec<(Instant, usize)>,
    end: Option<End>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Eof,
    Reset,
}

impl Conn {
    /// Opens a connection. What was agreed by TLS is told too.
    ///
    /// # Errors
    /// When it cannot be opened, or secured.
    pub async fn open(port: u16, secured: Option<&Tls>, trust: Option<&tls::Trust>) -> io::Result<(Conn, Value)> {
        let stream = TcpStream::connect(("127.0.0.1", port)).await?;
        stream.set_nodelay(true)?;
        let Some(secured) = secured else {
            let (read, write) = stream.into_split();
            return Ok((Conn::over(Box::new(read), Box::new(write)), json!({})));
        };
        let (stream, agreed) = tls::secure(stream, secured, trust).await?;
        let (read, write) = tokio::io::split(stream);
        Ok((Conn::over(Box::new(read), Box::new(write)), agreed))
    }

    fn over(mut read: Box<dyn AsyncRead + Send + Unpin>, write: Box<dyn AsyncWrite + Send + Unpin>) -> Conn {
        let inbox = Arc::new(Inbox::default());
        let into = inbox.clone();
        let reader = tokio::spawn(async move {
            let mut piece = vec![0; 64 * 1024];
            loop {
                let end = match read.read(&mut piece).await {
                    Ok(0) => Some(End::Eof),
                    Ok(length) => {
                        into.put(&piece[..length]);
                        None
                    }
                    Err(error) if error.kind() == io::ErrorKind::ConnectionReset => Some(End::Reset),
                    Err(_) => Some(End::Eof),
                };
                if end.is_some() {
                    into.lock().end = end;
                    return into.news.notify_one();
                }
                into.news.notify_one();
            }
        });
        Conn { write, inbox, reader, head: None, sent: Instant::now() }
    }

    /// Sends bytes.
    ///
    /// # Errors
    /// When the peer takes no more.
    pub async fn send(&mut self, bytes: &[u8], limit: Duration) -> io::Result<()> {
        self.sent = Instant::now();
        let sending = async {
            self.write.write_all(bytes).await?;
            self.write.flush().await
        };
        let sent = timeout(limit, sending).await;
        self.sent = Instant::now();
        sent.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
    }

    /// Ends the sending side.
    pub async fn half_close(&mut self) {
        let _ = self.write.shutdown().await;
    }

    /// Closes both sides.
    pub async fn close(mut self) {
        self.reader.abort();
        let _ = (&mut self.reader).await;
    }

    /// Reads one answer; `stays`: also see whether the connection is open
    /// after it.
    pub async fn recv(&mut self, to_head: bool, stays: bool, limit: Duration) -> Value {
        let deadline = Instant::now() + limit;
        loop {
            if let Some(answer) = self.answer(to_head) {
                return self.finished(answer, stays).await;
            }
            if !self.news(deadline).await {
                let seen = self.unread_text();
                return json!({ "timeout": true, "so_far": seen, "elapsed_ms": self.elapsed() });
            }
        }
    }

    /// Reads the head of an answer; its rest is left to others.
    pub async fn recv_head(&mut self, limit: Duration) -> Value {
        let deadline = Instant::now() + limit;
        loop {
            let (head, ended) = {
                let arrived = self.inbox.lock();
                (Head::read(arrived.unread()), arrived.end.is_some())
            };
            if let Some(head) = head {
                self.inbox.lock().taken += head.len;
                let mut told = told_head(&head);
                told.insert("elapsed_ms".into(), json!(self.elapsed()));
                self.head = Some(head);
                return Value::Object(told);
            }
            if ended {
                return json!({ "eof": true, "so_far": self.unread_text() });
            }
            if !self.news(deadline).await {
                return json!({ "timeout": true, "so_far": self.unread_text(), "elapsed_ms": self.elapsed() });
            }
        }
    }

    /// Reads so many bytes, or all until the end.
    pub async fn recv_raw(&mut self, bytes: Option<usize>, limit: Duration) -> Value {
        let deadline = Instant::now() + limit;
        loop {
            let (there, end) = {
                let arrived = self.inbox.lock();
                (arrived.unread().len(), arrived.end)
            };
            let enough = bytes.is_some_and(|wanted| there >= wanted);
            if enough || end.is_some() {
                let mut told = json!({ "raw": self.take(bytes.unwrap_or(there).min(there)) });
                told["elapsed_ms"] = json!(self.elapsed());
                match end {
                    Some(End::Eof) if !enough => told["eof"] = json!(true),
                    Some(End::Reset) if !enough => told["reset"] = json!(true),
                    _ => {}
                }
                return told;
            }
            if !self.news(deadline).await {
                return json!({ "raw": self.take(there), "timeout": true, "elapsed_ms": self.elapsed() });
            }
        }
    }

    /// An answer, if it is whole or will never be.
    fn answer(&self, to_head: bool) -> Option<Answer> {
        let arrived = self.inbox.lock();
        let (head, at) = match &self.head {
            Some(head) => (head.clone(), 0),
            None => match Head::read(arrived.unread()) {
                Some(head) => {
                    let at = head.len;
                    (head, at)
                }
                None => return arrived.end.map(|_| Answer::default()),
            },
        };
        let framing = head.answer_framing(to_head);
        let body = Body::read(&arrived.unread()[at..], framing, arrived.end.is_some());
        if !body.whole && !body.broken && arrived.end.is_none() {
            return None;
        }
        let len = at + body.len;
        let mut told = told_head(&head);
        told.insert("body".into(), json!(latin::text(&body.data)));
        told.insert("framing".into(), json!(framing.name()));
        if !body.trailers.is_empty() {
            told.insert("trailers".into(), json!(body.trailers));
        }
        if !body.whole {
            told.insert("incomplete".into(), json!(true));
        }
        if arrived.came_before(self.sent, len) {
            told.insert("before_last_send".into(), json!(true));
        }
        Some(Answer { told, len })
    }

    async fn finished(&mut self, answer: Answer, stays: bool) -> Value {
        let elapsed = json!(self.elapsed());
        self.head = None;
        let mut told = answer.told;
        self.inbox.lock().taken += answer.len;
        if told.is_empty() {
            let so_far = self.unread_text();
            return json!({ "eof": true, "so_far": so_far, "elapsed_ms": elapsed });
        }
        told.insert("elapsed_ms".into(), elapsed);
        if stays {
            let until = Instant::now() + STAYS;
            while self.inbox.lock().end.is_none() && self.news(until).await {}
            let ended = self.inbox.lock().end.is_some();
            told.insert("connection".into(), json!(if ended { "closed" } else { "open" }));
            let extra = self.unread_text();
            if !extra.is_empty() {
                told.insert("extra".into(), json!(extra));
            }
        }
        Value::Object(told)
    }

    /// Waits for something new; false: nothing came until the deadline.
    async fn news(&self, deadline: Instant) -> bool {
        let left = deadline.saturating_duration_since(Instant::now());
        timeout(left, self.inbox.news.notified()).await.is_ok()
    }

    fn elapsed(&self) -> u64 {
        u64::try_from(self.sent.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    fn unread_text(&self) -> String {
        latin::text(self.inbox.lock().unread())
    }

    fn take(&self, bytes: usize) -> String {
        let mut arrived = self.inbox.lock();
        let text = latin::text(&arrived.unread()[..bytes]);
        arrived.taken += bytes;
        text
    }
}

impl Drop for Conn {
    fn drop(&mut self) {
        self.reader.abort();
    }
}

/// An answer in parts; empty: the connection ended without one.
#[derive(Default)]
struct Answer {
    told: Map<String, Value>,
    len: usize,
}

impl Inbox {
    fn lock(&self) -> MutexGuard<'_, Arrived> {
        self.arrived.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, bytes: &[u8]) {
        let mut arrived = self.lock();
        arrived.bytes.extend_from_slice(bytes);
        let all = arrived.bytes.len();
        arrived.marks.push((Instant::now(), all));
    }
}

impl Arrived {
    fn unread(&self) -> &[u8] {
        &self.bytes[self.taken..]
    }

    /// Whether the next `len` bytes were there at that time.
    fn came_before(&self, time: Instant, len: usize) -> bool {
        let needed = self.taken + len;
        self.marks.iter().any(|(at, all)| *all >= needed && *at < time)
    }
}

fn told_head(head: &Head) -> Map<String, Value> {
    let mut told = Map::new();
    let proto = head.start.split(' ').next().unwrap_or_default();
    told.insert("proto".into(), json!(proto));
    told.insert("status".into(), json!(head.status()));
    told.insert("date_header".into(), json!(head.get("date").is_some()));
    told.insert("headers".into(), json!(head.fields));
    told
}
