//! The connection to the autoscaler that is recorded.

use crate::admin::folder;
use crate::client::{self, Port};
use crate::status;
use anyhow::{Context, bail};
use autoscaler::record::Ask;
use autoscaler::record::answer::PATH;
use hyper::body::Incoming;
use std::path::Path;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};

/// For the connection and the head of the answer.
const ANSWER_LIMIT: Duration = Duration::from_secs(5);
/// Bytes of a refusal.
const REFUSAL_BYTES_MAX: usize = 4096;

/// As given, or the one instance that runs here; of several the one that
/// has a service of that name.
pub(super) async fn find(given: Option<&str>, services: &[String]) -> anyhow::Result<Port> {
    if let Some(given) = given {
        return Ok(of(given));
    }
    let sockets = folder::sockets()?;
    let mut running = status::running(sockets).await;
    if running.len() > 1 && !services.is_empty() {
        running.retain(|(_, instance)| services.iter().any(|name| status::has(instance, name)));
    }
    match running.as_slice() {
        [] => bail!("no instance is running"),
        [(socket, _)] => Ok(Port::Socket(socket.clone())),
        several => {
            let sockets: Vec<_> = several.iter().map(|(socket, _)| socket.display().to_string()).collect();
            bail!("several instances run; name one by --admin: {}", sockets.join(", "))
        }
    }
}

fn of(text: &str) -> Port {
    match text.contains('/') || !text.contains(':') {
        true => Port::Socket(text.into()),
        false => Port::Address(text.to_owned()),
    }
}

/// Begins; what comes is the body.
pub(super) async fn begin(port: &Port, ask: &Ask) -> anyhow::Result<Incoming> {
    match port {
        Port::Socket(path) => within(path.display().to_string(), over_socket(path, ask)).await,
        Port::Address(address) => within(address.clone(), over_tcp(address, ask)).await,
    }
}

async fn within<T>(place: String, asked: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    let answered = tokio::time::timeout(ANSWER_LIMIT, asked).await;
    answered.unwrap_or_else(|_| bail!("no answer within {ANSWER_LIMIT:?}")).context(place)
}

async fn over_socket(path: &Path, ask: &Ask) -> anyhow::Result<Incoming> {
    over(UnixStream::connect(path).await?, "zeroscale", ask).await
}

async fn over_tcp(address: &str, ask: &Ask) -> anyhow::Result<Incoming> {
    over(TcpStream::connect(address).await?, address, ask).await
}

async fn over<S>(stream: S, host: &str, ask: &Ask) -> anyhow::Result<Incoming>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let answer = client::begin(stream, host, &format!("{PATH}?{}", ask.query())).await?;
    let status = answer.status();
    if status.is_success() {
        return Ok(answer.into_body());
    }
    let why = client::whole(answer, REFUSAL_BYTES_MAX).await?;
    bail!("answers {status}: {}", String::from_utf8_lossy(&why).trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_a_port_and_everything_else_is_a_path() {
        let address = |text: &str| Port::Address(text.to_owned());
        for text in ["10.0.0.1:9090", "autoscaler:9090", "[::1]:9090"] {
            assert_eq!(of(text), address(text));
        }
        for text in ["/run/user/0/zeroscale/1.sock", "1.sock", "./a:b"] {
            assert_eq!(of(text), Port::Socket(text.into()));
        }
    }
}
