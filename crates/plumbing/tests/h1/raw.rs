//! Ends of connections that say exactly what they are told to.

use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Longest wait for what should come at once.
pub(crate) const SOON: Duration = Duration::from_secs(5);

pub(crate) struct Raw {
    pub(crate) socket: TcpStream,
    pub(crate) got: Vec<u8>,
}

/// What a connection ended with.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    Closed,
    Reset,
    Open,
}

impl Raw {
    pub(crate) async fn connect(address: SocketAddr) -> Raw {
        Raw::over(TcpStream::connect(address).await.unwrap())
    }

    pub(crate) fn over(socket: TcpStream) -> Raw {
        socket.set_nodelay(true).unwrap();
        Raw { socket, got: Vec::new() }
    }

    pub(crate) async fn say(&mut self, text: impl AsRef<[u8]>) {
        self.socket.write_all(text.as_ref()).await.unwrap();
    }

    async fn more(&mut self) -> usize {
        let read = self.socket.read_buf(&mut self.got);
        tokio::time::timeout(SOON, read).await.expect("nothing came").unwrap_or(0)
    }

    /// Reads up to and with `end`, and gives all that.
    pub(crate) async fn until(&mut self, end: &str) -> String {
        loop {
            if let Some(at) = self.got.windows(end.len()).position(|window| window == end.as_bytes()) {
                let text = self.got.drain(..at + end.len()).collect::<Vec<_>>();
                return String::from_utf8_lossy(&text).into_owned();
            }
            let count = self.more().await;
            assert!(count > 0, "ended before {end:?}: {:?}", String::from_utf8_lossy(&self.got));
        }
    }

    /// Takes a request without a body. False if none comes any more.
    pub(crate) async fn has_request(&mut self) -> bool {
        while !self.got.ends_with(b"\r\n\r\n") {
            if self.more().await == 0 {
                return false;
            }
        }
        self.got.clear();
        true
    }

    /// The next head, without its `Date`.
    pub(crate) async fn head(&mut self) -> String {
        let head = self.until("\r\n\r\n").await;
        let lines = head.split_inclusive("\r\n").filter(|line| !line.starts_with("Date: "));
        lines.collect()
    }

    pub(crate) async fn exactly(&mut self, count: usize) -> Vec<u8> {
        while self.got.len() < count {
            assert!(self.more().await > 0, "ended after {} of {count} bytes", self.got.len());
        }
        self.got.drain(..count).collect()
    }

    /// All until the connection ends or `patience` is over.
    pub(crate) async fn rest_within(&mut self, patience: Duration) -> (String, Ended) {
        let deadline = tokio::time::Instant::now() + patience;
        let ended = loop {
            match tokio::time::timeout_at(deadline, self.socket.read_buf(&mut self.got)).await {
                Err(_) => break Ended::Open,
                Ok(Ok(0)) => break Ended::Closed,
                Ok(Ok(_)) => {}
                Ok(Err(_)) => break Ended::Reset,
            }
        };
        let text = String::from_utf8_lossy(&std::mem::take(&mut self.got)).into_owned();
        (text, ended)
    }

    pub(crate) async fn rest(&mut self) -> (String, Ended) {
        self.rest_within(SOON).await
    }

    /// Nothing comes for a while, and the connection stays.
    pub(crate) async fn silent(&mut self, millis: u64) {
        assert_eq!(self.rest_within(Duration::from_millis(millis)).await, (String::new(), Ended::Open));
    }

    pub(crate) async fn half_close(&mut self) {
        self.socket.shutdown().await.unwrap();
    }

    /// Ends the connection by a reset.
    pub(crate) fn reset(self) {
        self.socket.set_zero_linger().unwrap();
    }
}

/// A server that does what `script` says with each connection.
pub(crate) async fn scripted<S, F>(script: S) -> SocketAddr
where
    S: Fn(Raw) -> F + Send + Sync + 'static,
    F: Future<Output = ()> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            tokio::spawn(script(Raw::over(socket)));
        }
    });
    address
}
