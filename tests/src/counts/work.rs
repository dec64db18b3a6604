//! What is asked of the sidecar while it is counted.

use crate::rig;
use anyhow::ensure;
use std::fmt::Write;
use std::net::SocketAddr;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// One kind of request.
pub struct Work {
    /// Its name in the budget.
    pub name: &'static str,
    /// Fields beside the host.
    fields: usize,
    /// Bytes of its body.
    body: usize,
    /// Bytes of its answer's body.
    answer: usize,
}

/// All kinds, as they are compared with peers.
pub const WORKS: [Work; 4] = [
    Work { name: "get-0", fields: 0, body: 0, answer: 0 },
    Work { name: "get-1k", fields: 1, body: 0, answer: 1024 },
    Work { name: "get-12-headers", fields: 12, body: 0, answer: 1024 },
    Work { name: "post-10k", fields: 1, body: 10 << 10, answer: 2 },
];

/// As browsers and libraries send them.
const FIELDS: [(&str, &str); 12] = [
    ("accept", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"),
    ("user-agent", "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0"),
    ("accept-language", "en-GB,en;q=0.7,de;q=0.3"),
    ("accept-encoding", "gzip, deflate, br, zstd"),
    ("referer", "https://shop.example/catalogue/shoes"),
    ("cookie", "session=0123456789abcdef0123456789abcdef; theme=dark"),
    ("cache-control", "no-cache"),
    ("pragma", "no-cache"),
    ("sec-fetch-dest", "document"),
    ("sec-fetch-mode", "navigate"),
    ("x-request-id", "3f1c2a9e-7b7e-4a51-9f0e-6d2f0c1b5a77"),
    ("authorization", "Bearer eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9"),
];

impl Work {
    /// An app that reads such requests and answers them.
    pub(super) async fn app(&self) -> SocketAddr {
        let answer = self.answer();
        let request = self.request().len();
        rig::app(move |mut stream| {
            let answer = answer.clone();
            async move {
                // The sidecar adds fields: a head ends where it ends.
                let _ = stream.set_nodelay(true);
                let mut read = vec![0; 2 * request + (16 << 10)];
                let mut held = 0;
                loop {
                    match stream.read(&mut read[held..]).await {
                        Ok(0) | Err(_) => return,
                        Ok(count) => held += count,
                    }
                    if is_whole(&read[..held]) {
                        held = 0;
                        if stream.write_all(&answer).await.is_err() {
                            return;
                        }
                    }
                }
            }
        })
        .await
    }

    /// A client on one connection.
    pub(super) async fn client(&self, to: SocketAddr) -> anyhow::Result<Client> {
        let stream = TcpStream::connect(to).await?;
        stream.set_nodelay(true)?;
        Ok(Client { stream, request: self.request(), answer: self.answer })
    }

    fn request(&self) -> Vec<u8> {
        let mut head = String::from(if self.body > 0 { "POST" } else { "GET" });
        head.push_str(" /catalogue/shoes?size=44 HTTP/1.1\r\nhost: shop.example\r\n");
        for (name, value) in &FIELDS[..self.fields] {
            let _ = write!(head, "{name}: {value}\r\n");
        }
        if self.body > 0 {
            let _ = write!(head, "content-length: {}\r\n", self.body);
        }
        head.push_str("\r\n");
        [head.into_bytes(), vec![b'b'; self.body]].concat()
    }

    fn answer(&self) -> Vec<u8> {
        let head = format!(
            "HTTP/1.1 200 OK\r\nserver: app\r\ncontent-type: text/plain\r\ncontent-length: {}\r\n\r\n",
            self.answer
        );
        [head.into_bytes(), vec![b'a'; self.answer]].concat()
    }
}

/// Sends one request after the other.
pub(super) struct Client {
    stream: TcpStream,
    request: Vec<u8>,
    answer: usize,
}

impl Client {
    pub(super) async fn send(&mut self, count: usize) -> anyhow::Result<()> {
        let mut read = vec![0; self.answer + (4 << 10)];
        for _ in 0..count {
            self.stream.write_all(&self.request).await?;
            let mut held = 0;
            while !is_whole(&read[..held]) {
                let more = self.stream.read(&mut read[held..]).await?;
                ensure!(more > 0, "the sidecar closed");
                held += more;
            }
            ensure!(read.starts_with(b"HTTP/1.1 200 "), "{}", String::from_utf8_lossy(&read[..held]));
        }
        Ok(())
    }
}

/// True once head and body are there.
fn is_whole(message: &[u8]) -> bool {
    let Some(end) = message.windows(4).position(|four| four == b"\r\n\r\n") else { return false };
    let head = String::from_utf8_lossy(&message[..end]).to_ascii_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse::<usize>().ok());
    message.len() >= end + 4 + length.unwrap_or(0)
}
