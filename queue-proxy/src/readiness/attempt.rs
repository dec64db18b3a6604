//! One attempt: a connection of its own, which is closed after it.

use super::spec::{Check, Target};
use super::{get, grpc};
use policy::compat::Compat;
use std::io::{Error, ErrorKind};
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use tokio::net::TcpStream;

/// What an attempt needs to know beside the probe itself.
pub(crate) struct Terms<'a> {
    /// Strict: HTTP probes have the reference's flaws.
    pub(crate) compat: Compat,
    /// HTTP probes try HTTP/2 first.
    pub(crate) detect_http2: bool,
    /// True once the app has shown that it speaks HTTP/1 only.
    pub(crate) http1_only: &'a AtomicBool,
    /// Told to gRPC servers; whoever calls keeps to it by dropping the attempt.
    pub(crate) limit: Duration,
}

/// Asks once.
///
/// # Errors
/// Why the app is not ready, in one line.
pub(crate) async fn attempt(check: &Check, terms: &Terms<'_>) -> Result<(), String> {
    match check {
        Check::Tcp(target) => connect(target).await.map(drop),
        Check::Http(probe) => get::ask(probe, terms).await,
        Check::Grpc { target, service } => grpc::ask(target, service, terms.limit).await,
        Check::Exec => Err("exec probe not supported".to_owned()),
        Check::Nothing => Err("no probe found".to_owned()),
    }
}

/// Connects; addresses of a name are tried in their order.
pub(crate) async fn connect(target: &Target) -> Result<TcpStream, String> {
    let authority = target.authority();
    let stream = match literal(&target.host) {
        Some(ip) => TcpStream::connect(SocketAddr::new(ip, target.port)).await,
        // Looking a name up costs a thread for a moment; probes name one only
        // by a redirect to another host.
        None => TcpStream::connect(authority.as_str()).await,
    };
    let stream = stream.map_err(|error| format!("dial tcp {authority}: connect: {}", words(&error)))?;
    let _ = stream.set_nodelay(true);
    Ok(stream)
}

fn literal(host: &str) -> Option<IpAddr> {
    if host == "localhost" { Some(IpAddr::from([127, 0, 0, 1])) } else { host.parse().ok() }
}

fn words(error: &Error) -> String {
    match error.kind() {
        ErrorKind::ConnectionRefused => "connection refused".to_owned(),
        ErrorKind::TimedOut => "connection timed out".to_owned(),
        ErrorKind::HostUnreachable => "no route to host".to_owned(),
        ErrorKind::NetworkUnreachable => "network is unreachable".to_owned(),
        _ => error.to_string(),
    }
}
