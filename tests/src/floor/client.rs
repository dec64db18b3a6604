//! Clients that speak raw HTTP/1.1: one request, one connection.

use crate::testapp::monotonic_ns;
use std::io;
use std::io::{Read as _, Write as _};
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Longest wait for an answer.
const ANSWER_MAX: Duration = Duration::from_secs(120);

/// What is asked.
#[derive(Clone, Debug)]
pub struct Ask {
    /// Where it goes.
    pub path: String,
    /// By which the app's journal names it.
    pub id: String,
    /// So many bytes are sent with it; `None` = a GET.
    pub body_bytes: Option<usize>,
}

/// What came back.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    /// The status; 0 when there was none.
    pub status: u16,
    /// Head and body as they came.
    pub text: String,
    /// The answer came to its own end; false when it was cut off.
    pub whole: bool,
}

impl Ask {
    /// A GET of `/`.
    pub fn get(id: impl ToString) -> Ask {
        Ask { path: "/".to_owned(), id: id.to_string(), body_bytes: None }
    }

    /// To another path.
    pub fn path(self, path: impl Into<String>) -> Ask {
        Ask { path: path.into(), ..self }
    }

    /// With a body.
    pub fn body(self, bytes: usize) -> Ask {
        Ask { body_bytes: Some(bytes), ..self }
    }

    /// Sends it and reads the answer.
    ///
    /// # Errors
    /// When there is no connection, or no answer in time.
    pub async fn send(&self, address: SocketAddr) -> io::Result<Answer> {
        let exchange = async {
            let mut stream = TcpStream::connect(address).await?;
            let sent = stream.write_all(self.head().as_bytes()).await;
            let sent = match self.body_bytes {
                Some(bytes) if sent.is_ok() => stream.write_all(&vec![b'x'; bytes]).await,
                _ => sent,
            };
            let mut answer = Vec::new();
            // A refusal may come before the body has gone out; read it anyhow.
            match (stream.read_to_end(&mut answer).await, sent) {
                (Err(error), _) | (Ok(0), Err(error)) if answer.is_empty() => Err(error),
                _ => Ok(Answer::parse(answer)),
            }
        };
        tokio::time::timeout(ANSWER_MAX, exchange).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
    }

    /// Sends it and leaves when `patience` has passed since its head went out,
    /// wherever it is then. True when the head did go out.
    pub async fn leave_after(&self, address: SocketAddr, patience: Duration) -> bool {
        let Ok(mut stream) = TcpStream::connect(address).await else { return false };
        if stream.write_all(self.head().as_bytes()).await.is_err() {
            return false;
        }
        let rest = async {
            let sent = stream.write_all(&vec![b'x'; self.body_bytes.unwrap_or(0)]).await;
            sent.is_ok() && stream.read_u8().await.is_ok()
        };
        drop(tokio::time::timeout(patience, rest).await);
        true
    }

    fn head(&self) -> String {
        let Ask { path, id, body_bytes } = self;
        let method = if body_bytes.is_some() { "POST" } else { "GET" };
        let length = body_bytes.map_or(String::new(), |bytes| format!("content-length: {bytes}\r\n"));
        format!("{method} {path} HTTP/1.1\r\nhost: floor.example\r\nx-id: {id}\r\nconnection: close\r\n{length}\r\n")
    }

    /// Sends it from a thread of its own and waits for the first byte only:
    /// when it was sent, and when that byte was here, on the clock of all
    /// processes.
    ///
    /// # Errors
    /// When there is no connection or no answer.
    pub async fn first_byte(&self, address: SocketAddr) -> anyhow::Result<(u64, u64)> {
        let head = self.head();
        let asked = tokio::task::spawn_blocking(move || -> io::Result<(u64, u64)> {
            let sent = monotonic_ns();
            let mut stream = std::net::TcpStream::connect(address)?;
            stream.set_nodelay(true)?;
            stream.set_read_timeout(Some(ANSWER_MAX))?;
            stream.write_all(head.as_bytes())?;
            stream.read_exact(&mut [0])?;
            let first = monotonic_ns();
            io::copy(&mut stream, &mut io::sink())?;
            Ok((sent, first))
        });
        Ok(asked.await??)
    }
}

impl Answer {
    fn parse(bytes: Vec<u8>) -> Answer {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let Some((head, body)) = text.split_once("\r\n\r\n") else { return Answer { text, ..Answer::default() } };
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
        let field = |name: &str| {
            let fields = head.lines().filter_map(|line| line.split_once(':'));
            fields.into_iter().find(|field| field.0.eq_ignore_ascii_case(name)).map(|field| field.1.trim())
        };
        let whole = match field("content-length") {
            Some(length) => length.parse() == Ok(body.len()),
            None => field("transfer-encoding").is_some() && body.ends_with("0\r\n\r\n"),
        };
        Answer { status, whole, text }
    }

    /// A whole answer with status 200.
    pub fn is_good(&self) -> bool {
        self.status == 200 && self.whole
    }

    /// `x-zeroscale-reason`, if there is one.
    pub fn reason(&self) -> Option<&str> {
        let fields = self.text.lines().filter_map(|line| line.split_once(": "));
        fields.into_iter().find(|field| field.0.eq_ignore_ascii_case("x-zeroscale-reason")).map(|field| field.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_that_was_cut_off_is_not_good() {
        let parse = |text: &str| Answer::parse(text.as_bytes().to_vec());
        assert!(parse("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").is_good());
        assert!(parse("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n").is_good());
        for cut in [
            "",
            "HTTP/1.1 200 OK\r\n",
            "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\no",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n",
        ] {
            assert!(!parse(cut).is_good(), "{cut}");
        }
        let refusal = parse("HTTP/1.1 503 No\r\nx-zeroscale-reason: start_failed\r\ncontent-length: 0\r\n\r\n");
        assert_eq!((refusal.status, refusal.reason()), (503, Some("start_failed")));
    }
}
