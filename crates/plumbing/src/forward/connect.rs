//! Making connections.

use crate::fds::{Budget, Taken};
use crate::wheel::Wheel;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::Instant;

/// Longest wait for a connection to be made.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Between two tries at a server that refuses; doubles up to the cap.
const PAUSE: Duration = Duration::from_millis(5);
const PAUSE_CAP: Duration = Duration::from_millis(80);

#[derive(Clone)]
pub(super) struct Connector {
    pub(super) wheel: Wheel,
    pub(super) fds: Budget,
}

/// A connection that was made.
pub(super) struct Made {
    pub(super) stream: TcpStream,
    /// Goes with it.
    pub(super) fd: Taken,
}

impl Connector {
    /// Connects. A server that is not there is tried again for `patience`.
    pub(super) async fn connect(&self, address: SocketAddr, patience: Duration) -> Result<Made, String> {
        let until = (!patience.is_zero()).then(|| Instant::now() + patience);
        let mut pause = PAUSE;
        loop {
            let failed = match self.once(address).await {
                Ok(stream) => {
                    let _ = stream.set_nodelay(true);
                    return Ok(Made { stream, fd: self.fds.take(1) });
                }
                Err(failed) => failed,
            };
            let again = failed.kind() != io::ErrorKind::TimedOut && until.is_some_and(|until| Instant::now() < until);
            if !again {
                return Err(format!("dial tcp {address}: connect: {}", words(&failed)));
            }
            self.wheel.sleep(pause).await;
            pause = (pause * 2).min(PAUSE_CAP);
        }
    }

    /// True if the server is gone: nobody takes a connection. One that does,
    /// and has closed another before it answered, has done so on purpose.
    pub(super) async fn is_gone(&self, address: SocketAddr) -> bool {
        self.once(address).await.is_err()
    }

    async fn once(&self, address: SocketAddr) -> io::Result<TcpStream> {
        tokio::select! {
            stream = TcpStream::connect(address) => stream,
            () = self.wheel.sleep(CONNECT_TIMEOUT) => {
                Err(io::Error::new(io::ErrorKind::TimedOut, "connection timed out"))
            }
        }
    }
}

/// As the field writes it: without the number, in small letters.
fn words(error: &io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or_default();
    text.to_lowercase()
}
