//! HTTP/2 frame by frame, as no library would send it.

use std::net::SocketAddr;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Types of frames.
pub mod kind {
    /// A piece of a body.
    pub const DATA: u8 = 0;
    /// A head, or its beginning.
    pub const HEADERS: u8 = 1;
    /// The end of a stream by force.
    pub const RST_STREAM: u8 = 3;
    /// Settings.
    pub const SETTINGS: u8 = 4;
    /// A ping.
    pub const PING: u8 = 6;
    /// The end of a connection.
    pub const GOAWAY: u8 = 7;
    /// More of a head.
    pub const CONTINUATION: u8 = 9;
}

/// On HEADERS and DATA: the stream ends.
pub const END_STREAM: u8 = 1;
/// On HEADERS and CONTINUATION: the head ends.
pub const END_HEADERS: u8 = 4;
/// On SETTINGS and PING: an answer.
pub const ACK: u8 = 1;

/// What a client says first.
pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// The head of a frame, and what it holds.
pub fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u32).to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// Fields as they stand in a head: literal, in plain, none remembered.
pub fn fields(all: &[(&str, &str)]) -> Vec<u8> {
    let mut out = Vec::new();
    for (name, value) in all {
        out.push(0);
        text(&mut out, name.as_bytes());
        text(&mut out, value.as_bytes());
    }
    out
}

fn text(out: &mut Vec<u8>, bytes: &[u8]) {
    // A whole number with a prefix of seven bits.
    match bytes.len() {
        short @ 0..127 => out.push(short as u8),
        long => {
            out.push(127);
            let mut rest = long - 127;
            while rest >= 128 {
                out.push((rest % 128 + 128) as u8);
                rest /= 128;
            }
            out.push(rest as u8);
        }
    }
    out.extend_from_slice(bytes);
}

/// The simplest head.
pub const GET: &[(&str, &str)] =
    &[(":method", "GET"), (":scheme", "http"), (":authority", "shop.example"), (":path", "/")];

/// A frame that came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Its type.
    pub kind: u8,
    /// Its flags.
    pub flags: u8,
    /// Its stream.
    pub stream: u32,
    /// What it holds.
    pub payload: Vec<u8>,
}

/// Takes the first frame, once it is whole.
pub fn take(seen: &mut Vec<u8>) -> Option<Frame> {
    let head: [u8; 9] = seen.get(..9)?.try_into().ok()?;
    let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
    let payload = seen.get(9..9 + length)?.to_vec();
    seen.drain(..9 + length);
    let stream = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
    Some(Frame { kind: head[3], flags: head[4], stream, payload })
}

/// Connects, and says what a client says first, with these settings.
///
/// # Errors
/// When that fails.
pub async fn open(address: SocketAddr, settings: &[(u16, u32)]) -> std::io::Result<TcpStream> {
    let mut stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let mut payload = Vec::new();
    for (name, value) in settings {
        payload.extend_from_slice(&name.to_be_bytes());
        payload.extend_from_slice(&value.to_be_bytes());
    }
    stream.write_all(&[PREFACE, &frame(kind::SETTINGS, 0, 0, &payload)].concat()).await?;
    Ok(stream)
}

/// Reads the next frame; `None` at the end.
pub async fn next(stream: &mut (impl AsyncReadExt + Unpin), seen: &mut Vec<u8>) -> Option<Frame> {
    loop {
        if let Some(frame) = take(seen) {
            return Some(frame);
        }
        if stream.read_buf(seen).await.unwrap_or(0) == 0 {
            return None;
        }
    }
}
