//! A client: mostly simple requests on a kept connection, and all that goes
//! wrong with clients.

use crate::replay::cases::wire::{Body, Head};
use crate::simulation::draw::Draw;
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// No answer takes longer.
const ANSWER_MAX: Duration = Duration::from_secs(30);

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Get,
    /// With a body of so many bytes.
    Post(usize),
    /// The same, of unknown length.
    Chunked(usize),
    /// An answer that comes in pieces, for so many milliseconds.
    Stream(u64),
    /// The client leaves before the answer.
    Leave,
    /// The client leaves within the answer.
    LeaveStream,
    /// The client leaves within its own body.
    LeaveBody,
}

/// What came of it.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    pub(super) kind: Kind,
    pub(super) began: Instant,
    pub(super) ended: Instant,
    /// 0 without an answer.
    pub(super) status: u16,
    pub(super) reason: Option<String>,
    pub(super) whole: bool,
    /// The client did not wait for it.
    pub(super) left: bool,
}

impl Seen {
    pub(super) fn is_good(&self) -> bool {
        !self.left && self.status == 200 && self.whole
    }

    pub(super) fn what(&self) -> &str {
        match (self.left, self.whole, &self.reason) {
            (true, ..) => "left",
            (_, true, None) => "whole",
            (_, false, None) => "cut",
            (.., Some(reason)) => reason,
        }
    }
}

pub(super) struct Client {
    address: SocketAddr,
    draw: Draw,
    kept: Option<TcpStream>,
}

impl Client {
    pub(super) fn new(address: SocketAddr, seed: u64) -> Client {
        Client { address, draw: Draw::new(seed), kept: None }
    }

    /// Whatever comes next.
    pub(super) async fn step(&mut self) -> Seen {
        // So few of those that take long that they do not fill the limit.
        let kind = match self.draw.below(400) {
            0 => Kind::Leave,
            1 => Kind::LeaveStream,
            2 => Kind::LeaveBody,
            3 => Kind::Stream(200),
            4..44 => Kind::Post(self.draw.between(1, 20_000) as usize),
            44..64 => Kind::Chunked(self.draw.between(1, 20_000) as usize),
            _ => Kind::Get,
        };
        if self.draw.one_in(15) {
            self.kept = None;
        }
        self.ask(kind).await
    }

    pub(super) async fn ask(&mut self, kind: Kind) -> Seen {
        let began = Instant::now();
        let left = matches!(kind, Kind::Leave | Kind::LeaveStream | Kind::LeaveBody);
        let answer = timeout(ANSWER_MAX, self.exchange(kind)).await.ok().flatten();
        let (status, reason, whole) = answer.unwrap_or_default();
        Seen { kind, began, ended: Instant::now(), status, reason, whole, left }
    }

    async fn exchange(&mut self, kind: Kind) -> Option<(u16, Option<String>, bool)> {
        let mut stream = match self.kept.take() {
            Some(stream) => stream,
            None => TcpStream::connect(self.address).await.ok()?,
        };
        stream.write_all(&request(kind)).await.ok()?;
        if matches!(kind, Kind::Leave | Kind::LeaveBody) {
            tokio::time::sleep(Duration::from_millis(self.draw.below(20))).await;
            return None;
        }
        let (mut bytes, mut chunk) = (Vec::new(), [0; 8192]);
        loop {
            let count = stream.read(&mut chunk).await.unwrap_or_default();
            bytes.extend_from_slice(&chunk[..count]);
            if let Some(head) = Head::read(&bytes) {
                let body = Body::read(&bytes[head.len..], head.answer_framing(false), count == 0);
                let reason = head.get("x-zeroscale-reason").map(str::to_owned);
                if kind == Kind::LeaveStream || count == 0 || body.whole {
                    let closes = head.get("connection").is_some_and(|value| value.eq_ignore_ascii_case("close"));
                    self.kept = (body.whole && !closes && count > 0).then_some(stream);
                    return Some((head.status()?, reason, body.whole));
                }
            } else if count == 0 {
                return None;
            }
        }
    }
}

fn request(kind: Kind) -> Vec<u8> {
    let head = |line: &str, more: &str| format!("{line} HTTP/1.1\r\nhost: shop.example\r\n{more}\r\n").into_bytes();
    match kind {
        Kind::Get => head("GET /", ""),
        Kind::Post(length) => {
            let mut bytes = head("POST /", &format!("content-length: {length}\r\n"));
            bytes.resize(bytes.len() + length, b'x');
            bytes
        }
        Kind::Chunked(length) => {
            let mut bytes = head("POST /", "transfer-encoding: chunked\r\n");
            for piece in vec![b'x'; length].chunks(3000) {
                bytes.extend_from_slice(format!("{:x}\r\n", piece.len()).as_bytes());
                bytes.extend_from_slice(piece);
                bytes.extend_from_slice(b"\r\n");
            }
            bytes.extend_from_slice(b"0\r\n\r\n");
            bytes
        }
        Kind::Stream(millis) => head(&format!("GET /stream/{millis}"), ""),
        Kind::Leave => head("GET /work/50", ""),
        Kind::LeaveStream => head("GET /stream/500", ""),
        Kind::LeaveBody => head("POST /", "content-length: 50000\r\n"),
    }
}
