//! A collector of OpenTelemetry, and a reader of its messages that knows only
//! their numbers: nothing of it is shared with what is tested.

use crate::rig::{self, read_head};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

/// A message: the head of its request in small letters, and its bytes.
pub type Got = (String, Vec<u8>);

/// A collector over HTTP.
///
/// # Panics
/// When what comes is no such message.
pub async fn collector() -> (SocketAddr, UnboundedReceiver<Got>) {
    let (send, got) = unbounded_channel();
    let address = rig::app(move |mut stream| {
        let send = send.clone();
        async move {
            let head = read_head(&mut stream).await.to_ascii_lowercase();
            let length = head.split_once("content-length: ").expect("a length").1.lines().next().unwrap_or("");
            let mut message = vec![0; length.parse().expect("a length")];
            stream.read_exact(&mut message).await.expect("a message");
            let _ = send.send((head, message));
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await;
        }
    })
    .await;
    (address, got)
}

/// Names and values, as text.
pub type Attributes = BTreeMap<String, String>;

/// A span, as it was sent.
#[derive(Clone, Debug)]
pub struct Span {
    /// What it is called.
    pub name: String,
    /// 1 internal, 2 server, 3 client.
    pub kind: u64,
    /// The trace, in hexadecimal, as the next two.
    pub trace: String,
    /// Its own id.
    pub id: String,
    /// That of the span above; empty for a root.
    pub parent: String,
    /// In nanoseconds.
    pub start: u64,
    /// In nanoseconds.
    pub end: u64,
    /// What is said of it.
    pub attributes: Attributes,
    /// Set when it failed: why.
    pub failed: Option<String>,
}

/// The spans of a message.
pub fn spans(message: &[u8]) -> Vec<Span> {
    let scopes = parts(message, 1).into_iter().flat_map(|resource| parts(resource, 2));
    scopes.flat_map(|scope| parts(scope, 2)).map(span).collect()
}

fn span(message: &[u8]) -> Span {
    let status = parts(message, 15);
    let failed = status.first().filter(|status| number(status, 3) == 2).map(|status| text(status, 2));
    Span {
        name: text(message, 5),
        kind: number(message, 6),
        trace: hex(message, 1),
        id: hex(message, 2),
        parent: hex(message, 4),
        start: number(message, 7),
        end: number(message, 8),
        attributes: attributes(message, 9),
        failed,
    }
}

/// The series of a message: instrument, kind (`gauge`, `sum`, `histogram`) and labels.
pub fn series(message: &[u8]) -> Vec<(String, &'static str, Attributes)> {
    let scopes = parts(message, 1).into_iter().flat_map(|resource| parts(resource, 2));
    let mut all = Vec::new();
    for metric in scopes.flat_map(|scope| parts(scope, 2)) {
        for (kind, data, labels) in [("gauge", 5, 7), ("sum", 7, 7), ("histogram", 9, 9)] {
            let points = parts(metric, data).into_iter().flat_map(|data| parts(data, 1));
            all.extend(points.map(|point| (text(metric, 1), kind, attributes(point, labels))));
        }
    }
    all
}

/// What the message says of who sent it.
pub fn resource(message: &[u8]) -> Attributes {
    let resources = parts(message, 1).into_iter().flat_map(|resource| parts(resource, 1));
    resources.flat_map(|resource| attributes(resource, 1)).collect()
}

fn attributes(message: &[u8], field: u64) -> Attributes {
    let value = |pair: &[u8]| {
        let value = parts(pair, 2).first().copied().unwrap_or_default();
        match fields(value).first() {
            Some((1, Value::Bytes(text))) => String::from_utf8_lossy(text).into_owned(),
            Some((_, Value::Number(number))) => number.to_string(),
            _ => String::new(),
        }
    };
    parts(message, field).into_iter().map(|pair| (text(pair, 1), value(pair))).collect()
}

enum Value<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

/// All fields in their order, by number.
///
/// # Panics
/// When it is no message.
fn fields(mut message: &[u8]) -> Vec<(u64, Value<'_>)> {
    let mut all = Vec::new();
    while !message.is_empty() {
        let tag = varint(&mut message);
        let value = match tag & 7 {
            0 => Value::Number(varint(&mut message)),
            1 => Value::Number(u64::from_le_bytes(take(&mut message, 8).try_into().expect("eight bytes"))),
            2 => {
                let length = usize::try_from(varint(&mut message)).expect("a length");
                Value::Bytes(take(&mut message, length))
            }
            5 => Value::Number(u64::from(u32::from_le_bytes(take(&mut message, 4).try_into().expect("four bytes")))),
            other => panic!("wire type {other}"),
        };
        all.push((tag >> 3, value));
    }
    all
}

fn take<'a>(message: &mut &'a [u8], count: usize) -> &'a [u8] {
    let (head, rest) = message.split_at(count);
    *message = rest;
    head
}

fn varint(message: &mut &[u8]) -> u64 {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let byte = take(message, 1)[0];
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            break;
        }
    }
    value
}

fn parts(message: &[u8], field: u64) -> Vec<&[u8]> {
    let part = |(number, value)| match value {
        Value::Bytes(bytes) if number == field => Some(bytes),
        _ => None,
    };
    fields(message).into_iter().filter_map(part).collect()
}

fn text(message: &[u8], field: u64) -> String {
    parts(message, field).first().map(|text| String::from_utf8_lossy(text).into_owned()).unwrap_or_default()
}

fn hex(message: &[u8], field: u64) -> String {
    parts(message, field).concat().iter().map(|byte| format!("{byte:02x}")).collect()
}

fn number(message: &[u8], field: u64) -> u64 {
    let number = |(at, value): &(u64, Value<'_>)| match value {
        Value::Number(number) if *at == field => Some(*number),
        _ => None,
    };
    fields(message).iter().find_map(number).unwrap_or_default()
}
