//! One GET over a Unix socket, with a limit on time and size.

use crate::admin::report::Instance;
use anyhow::{Context, bail};
use bytes::Bytes;
use http::Request;
use http::header::HOST;
use http_body_util::{BodyExt, Empty, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::net::UnixStream;
use tokio::task::JoinSet;

/// An instance that takes longer hangs.
const ANSWER_LIMIT: Duration = Duration::from_secs(2);
/// Far more than the status of all pods there can be.
const BODY_BYTES_MAX: usize = 16 << 20;

/// What came of asking one socket.
#[derive(Debug)]
pub(super) enum Reply {
    Instance(Box<Instance>),
    /// Nobody listens there any more.
    Gone,
    Fault(String),
}

/// Asks all at once; in the order of the sockets.
pub(super) async fn ask_all(sockets: Vec<PathBuf>) -> Vec<Reply> {
    let mut asking = JoinSet::new();
    for (place, socket) in sockets.into_iter().enumerate() {
        asking.spawn(async move { (place, ask(&socket).await) });
    }
    let mut replies = asking.join_all().await;
    replies.sort_by_key(|(place, _)| *place);
    replies.into_iter().map(|(_, reply)| reply).collect()
}

async fn ask(socket: &Path) -> Reply {
    match tokio::time::timeout(ANSWER_LIMIT, get(socket)).await {
        Ok(Ok(Some(instance))) => Reply::Instance(Box::new(instance)),
        Ok(Ok(None)) => Reply::Gone,
        Ok(Err(error)) => Reply::Fault(format!("{}: {error:#}", socket.display())),
        Err(_) => Reply::Fault(format!("{}: no answer within {ANSWER_LIMIT:?}", socket.display())),
    }
}

/// `None` when nobody listens; what is left of it goes.
async fn get(socket: &Path) -> anyhow::Result<Option<Instance>> {
    let stream = match UnixStream::connect(socket).await {
        Ok(stream) => stream,
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
            // Whether that works is no matter: the next one tries again.
            let _ = std::fs::remove_file(socket);
            return Ok(None);
        }
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let (mut client, connection) = http1::handshake::<_, Empty<Bytes>>(TokioIo::new(stream)).await?;
    // Its errors come to the request.
    tokio::spawn(connection);
    let request = Request::get("/status").header(HOST, "zeroscale").body(Empty::new())?;
    let answer = client.send_request(request).await?;
    if !answer.status().is_success() {
        bail!("answers {}", answer.status());
    }
    let body = Limited::new(answer.into_body(), BODY_BYTES_MAX).collect().await.map_err(anyhow::Error::from_boxed)?;
    let instance = serde_json::from_slice(&body.to_bytes()).context("an answer that is no status of ours")?;
    Ok(Some(instance))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;

    fn ask_one(socket: &Path) -> Reply {
        let asked = async { Ok(ask_all(vec![socket.to_owned()]).await) };
        crate::run::on_runtime(asked).unwrap().remove(0)
    }

    #[test]
    fn a_stale_socket_is_removed_without_a_word() {
        let here = tempfile::tempdir().unwrap();
        let socket = here.path().join("1.sock");
        drop(UnixListener::bind(&socket).unwrap());
        assert!(socket.exists());
        assert!(matches!(ask_one(&socket), Reply::Gone));
        assert!(!socket.exists());
        assert!(matches!(ask_one(&socket), Reply::Gone));
    }

    #[test]
    fn an_instance_that_hangs_is_named_after_the_limit() {
        let here = tempfile::tempdir().unwrap();
        let socket = here.path().join("1.sock");
        let _silent = UnixListener::bind(&socket).unwrap();
        let Reply::Fault(words) = ask_one(&socket) else { panic!("no fault") };
        assert!(words.contains("1.sock: no answer within 2s"), "{words}");
        assert!(socket.exists());
    }
}
