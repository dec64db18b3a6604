//! An app that understands next to nothing: it writes down the bytes of each
//! connection, and says 200 when something like a head has come and then
//! nothing more for a while. It never closes a connection.
//!
//! Over HTTP/2 a library behind it answers; the bytes are written down before
//! it sees them.

use super::super::dual::{self, Reply};
use crate::rig;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

/// It takes a request for whole when nothing came for so long.
const QUIET: Duration = Duration::from_millis(30);

type Recorded = Arc<Mutex<Vec<Vec<u8>>>>;

/// The app.
pub struct Recorder {
    /// Where it listens.
    pub address: SocketAddr,
    recorded: Recorded,
}

impl Recorder {
    /// Starts it.
    pub async fn start() -> Recorder {
        let recorded = Recorded::default();
        let into = recorded.clone();
        let address = rig::app(move |stream| record(stream, into.clone())).await;
        Recorder { address, recorded }
    }

    /// All bytes so far, a connection each.
    pub fn recorded(&self) -> Vec<Vec<u8>> {
        self.recorded.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

async fn record(mut stream: TcpStream, recorded: Recorded) {
    let own = {
        let mut all = recorded.lock().unwrap_or_else(PoisonError::into_inner);
        all.push(Vec::new());
        all.len() - 1
    };
    let note = |bytes: &[u8]| {
        recorded.lock().unwrap_or_else(PoisonError::into_inner)[own].extend_from_slice(bytes);
    };
    let (mut unanswered, mut piece) = (Vec::new(), vec![0; 64 * 1024]);
    loop {
        match timeout(QUIET, stream.read(&mut piece)).await {
            Ok(Ok(0) | Err(_)) => return,
            Ok(Ok(read)) => {
                note(&piece[..read]);
                unanswered.extend_from_slice(&piece[..read]);
                if unanswered.starts_with(b"PRI ") {
                    return pass_on(stream, &unanswered, note).await;
                }
            }
            Err(_) if unanswered.windows(4).any(|four| four == b"\r\n\r\n") => {
                unanswered.clear();
                if stream.write_all(rig::OK).await.is_err() {
                    return;
                }
            }
            Err(_) => {}
        }
    }
}

/// To a library that speaks HTTP/2.
async fn pass_on(mut stream: TcpStream, first: &[u8], note: impl Fn(&[u8])) {
    let Ok(listener) = TcpListener::bind("127.0.0.1:0").await else { return };
    let Ok(address) = listener.local_addr() else { return };
    tokio::spawn(async move {
        if let Ok((stream, _)) = listener.accept().await {
            dual::serve(stream, |call| async move { Reply::ok(call.path) }).await;
        }
    });
    let Ok(mut inner) = TcpStream::connect(address).await else { return };
    let ((mut from, mut to), (mut back, mut out)) = (stream.split(), inner.split());
    let forth = async {
        let mut piece = vec![0; 64 * 1024];
        if out.write_all(first).await.is_err() {
            return;
        }
        while let Ok(read @ 1..) = from.read(&mut piece).await {
            note(&piece[..read]);
            if out.write_all(&piece[..read]).await.is_err() {
                return;
            }
        }
    };
    tokio::select! {
        () = forth => {}
        _ = tokio::io::copy(&mut back, &mut to) => {}
    }
}
