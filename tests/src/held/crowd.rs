//! The crowd: clients that ask, and wait as long as it takes.

use crate::sidecar::h2c;
use anyhow::Context;
use bytes::Bytes;
use h2::SendStream;
use h2::client::ResponseFuture;
use std::net::{Ipv4Addr, SocketAddr};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinSet;

/// Streams on one connection, as many as there may be.
const STREAMS: usize = 250;
/// Connections that are being made at a time.
const AT_ONCE: usize = 100;
/// Addresses that they come from: one has too few ports.
const SOURCES: u8 = 8;

/// By which protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Speaks {
    /// HTTP/1: a connection each.
    Http1,
    /// HTTP/2 without TLS: 250 on a connection.
    Http2,
}

pub(super) struct Crowd {
    speaks: Speaks,
    front: SocketAddr,
    connections: Vec<TcpStream>,
    clients: Vec<h2c::Client>,
    streams: Vec<(ResponseFuture, SendStream<Bytes>)>,
}

impl Crowd {
    pub(super) fn new(speaks: Speaks, front: SocketAddr) -> Crowd {
        Crowd { speaks, front, connections: Vec::new(), clients: Vec::new(), streams: Vec::new() }
    }

    /// More of them come, until there are so many.
    pub(super) async fn grow_to(&mut self, count: usize) -> anyhow::Result<()> {
        while self.speaks == Speaks::Http1 && self.connections.len() < count {
            let mut opening = JoinSet::new();
            for number in self.connections.len()..count.min(self.connections.len() + AT_ONCE) {
                opening.spawn(ask(self.front, number));
            }
            for opened in opening.join_all().await {
                self.connections.push(opened?);
            }
        }
        while self.speaks == Speaks::Http2 && self.streams.len() < count {
            if self.streams.len() >= self.clients.len() * STREAMS {
                self.clients.push(h2c::Client::open(self.front).await?);
            }
            let client = self.clients.last().context("a connection")?;
            self.streams.push(client.begin(h2c::request("GET", "/"), true).await?);
        }
        Ok(())
    }

    /// Reads all answers; how many are good.
    pub(super) async fn answers(&mut self) -> usize {
        let mut reading = JoinSet::new();
        for stream in self.connections.drain(..) {
            reading.spawn(http1(stream));
        }
        for (answer, _) in self.streams.drain(..) {
            reading.spawn(http2(answer));
        }
        let mut good = 0;
        while let Some(answer) = reading.join_next().await {
            good += usize::from(answer.unwrap_or(false));
        }
        good
    }
}

async fn ask(front: SocketAddr, number: usize) -> std::io::Result<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    socket.bind((Ipv4Addr::new(127, 0, 0, 1 + (number % usize::from(SOURCES)) as u8), 0).into())?;
    let mut stream = socket.connect(front).await?;
    stream.write_all(b"GET / HTTP/1.1\r\nhost: shop.example\r\nconnection: close\r\n\r\n").await?;
    Ok(stream)
}

async fn http1(mut stream: TcpStream) -> bool {
    let mut answer = Vec::with_capacity(512);
    stream.read_to_end(&mut answer).await.is_ok() && answer.starts_with(b"HTTP/1.1 200") && answer.ends_with(b"\r\nok")
}

async fn http2(answer: ResponseFuture) -> bool {
    let Ok(answer) = answer.await else { return false };
    let good = answer.status() == 200;
    let mut content = answer.into_body();
    let mut body = Vec::new();
    while let Some(piece) = content.data().await {
        let Ok(piece) = piece else { return false };
        body.extend_from_slice(&piece);
    }
    good && body == b"ok"
}
