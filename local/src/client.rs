//! One GET of an admin port, with a limit on time and size.

use anyhow::Context;
use bytes::Bytes;
use http::header::HOST;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Empty, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use std::fmt;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio::task::JoinSet;

/// Far more than the status of all pods there can be.
const BODY_BYTES_MAX: usize = 16 << 20;

/// Whom to ask.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Port {
    /// An instance of ours, over its admin socket.
    Socket(PathBuf),
    /// A program with an admin port: host and port.
    Address(String),
}

impl fmt::Display for Port {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Port::Socket(path) => path.display().fmt(f),
            Port::Address(address) => address.fmt(f),
        }
    }
}

/// What came of asking one.
#[derive(Debug)]
pub(crate) enum Reply {
    Answer(StatusCode, Bytes),
    /// Nobody listens there any more.
    Gone,
    Fault(String),
}

/// Asks all at once; in the order of the ports. One that takes longer than
/// `limit` hangs.
pub(crate) async fn ask_all(ports: Vec<Port>, path: &str, limit: Duration) -> Vec<Reply> {
    let mut asking = JoinSet::new();
    for (place, port) in ports.into_iter().enumerate() {
        let path = path.to_owned();
        asking.spawn(async move { (place, ask(&port, &path, limit).await) });
    }
    let mut replies = asking.join_all().await;
    replies.sort_by_key(|(place, _)| *place);
    replies.into_iter().map(|(_, reply)| reply).collect()
}

async fn ask(port: &Port, path: &str, limit: Duration) -> Reply {
    match tokio::time::timeout(limit, get(port, path)).await {
        Ok(Ok(Some((code, body)))) => Reply::Answer(code, body),
        Ok(Ok(None)) => Reply::Gone,
        Ok(Err(error)) => Reply::Fault(format!("{port}: {error:#}")),
        Err(_) => Reply::Fault(format!("{port}: no answer within {limit:?}")),
    }
}

/// `None` when nobody listens on a socket; what is left of it goes.
async fn get(port: &Port, path: &str) -> anyhow::Result<Option<(StatusCode, Bytes)>> {
    let socket = match port {
        Port::Address(address) => {
            let stream = TcpStream::connect(address).await.context("cannot be reached")?;
            return exchange(stream, address, path).await.map(Some);
        }
        Port::Socket(socket) => socket,
    };
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
    exchange(stream, "zeroscale", path).await.map(Some)
}

async fn exchange<S>(stream: S, host: &str, path: &str) -> anyhow::Result<(StatusCode, Bytes)>
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let answer = begin(stream, host, path).await?;
    Ok((answer.status(), whole(answer, BODY_BYTES_MAX).await?))
}

/// Asks over a connection of its own; the head of the answer.
pub(crate) async fn begin<S>(stream: S, host: &str, path: &str) -> anyhow::Result<Response<Incoming>>
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let (mut client, connection) = http1::handshake::<_, Empty<Bytes>>(TokioIo::new(stream)).await?;
    // Its errors come to the request and the body.
    tokio::spawn(connection);
    let request = Request::get(path).header(HOST, host).body(Empty::new())?;
    Ok(client.send_request(request).await?)
}

/// The body of an answer, of so many bytes at most.
pub(crate) async fn whole(answer: Response<Incoming>, bytes_max: usize) -> anyhow::Result<Bytes> {
    let body = Limited::new(answer.into_body(), bytes_max).collect().await.map_err(anyhow::Error::from_boxed)?;
    Ok(body.to_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;
    use std::path::Path;

    const LIMIT: Duration = Duration::from_secs(2);

    fn ask_one(socket: &Path) -> Reply {
        let asked = async { Ok(ask_all(vec![Port::Socket(socket.to_owned())], "/status", LIMIT).await) };
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
