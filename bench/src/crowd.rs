//! Clients that come and stay, within this process.

use anyhow::{Context, ensure};
use rustix::net::{AddressFamily, SocketType, bind, connect, socket};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

/// Addresses that they come from: one has too few ports.
const SOURCES: usize = 8;
const PATIENCE: Duration = Duration::from_secs(20);

/// One more connection, its source taken in turn.
pub(crate) fn connected(to: SocketAddr, number: usize) -> anyhow::Result<TcpStream> {
    let source = Ipv4Addr::new(127, 0, 0, 1 + u8::try_from(number % SOURCES)?);
    let descriptor = socket(AddressFamily::INET, SocketType::STREAM, None)?;
    bind(&descriptor, &SocketAddr::from((source, 0)))?;
    connect(&descriptor, &to).with_context(|| format!("connecting to {to}"))?;
    let stream = TcpStream::from(descriptor);
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// So many connections, each idle after one request.
pub(crate) fn idle_after_a_request(to: SocketAddr, count: usize) -> anyhow::Result<Vec<TcpStream>> {
    let mut kept = Vec::new();
    for number in 0..count {
        let mut stream = connected(to, number)?;
        ask(&mut stream, "/0")?;
        kept.push(stream);
    }
    Ok(kept)
}

/// A request, and the head of its answer.
pub(crate) fn ask(stream: &mut TcpStream, path: &str) -> anyhow::Result<()> {
    write!(stream, "GET {path} HTTP/1.1\r\nHost: bench.example\r\n\r\n")?;
    let mut answer = [0; 4096];
    let read = stream.read(&mut answer)?;
    ensure!(answer[..read].starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&answer[..read]));
    Ok(())
}

/// The text of a page.
pub(crate) fn page(of: SocketAddr, path: &str) -> anyhow::Result<String> {
    let mut stream = connected(of, 0)?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: bench.example\r\nConnection: close\r\n\r\n")?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    Ok(text)
}
