//! The codec on plain bytes, without a socket: for fuzzing. What is read and
//! written here goes through the same functions as on a connection.

use super::answer::{self, Asked, Plan};
use super::chunk::Piece;
use super::decode::Decoder;
use super::encode::Encoder;
use super::limits::ANSWER_HEAD_BYTES_MAX;
use super::lines::Scan;
use super::outbox::Outbox;
use super::outgoing::write_head;
use super::{reply, request};
use bytes::{Bytes, BytesMut};
use http::header::{CONTENT_LENGTH, HOST, HeaderMap, HeaderValue};
use http::{Method, Request, Response, StatusCode, Uri, Version};

/// How far a message could be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Read {
    /// Its head, once it was there.
    pub head: Option<Head>,
    /// What was read of its body.
    pub body: Vec<u8>,
    /// What followed its body.
    pub trailers: HeaderMap,
    /// Where it stopped.
    pub end: End,
}

/// Where a message stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// It is whole, and so many bytes are left.
    Whole(usize),
    /// More must come.
    More,
    /// It is refused.
    Refused(String),
}

/// A head that was accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// Of requests; of answers the method that they answer.
    pub method: Method,
    /// Of requests.
    pub target: Uri,
    /// Of answers.
    pub status: StatusCode,
    /// 1.0 or 1.1.
    pub version: Version,
    /// All that is passed on.
    pub fields: HeaderMap,
    /// The length that it announces; `None` for chunks, or until the end.
    pub length: Option<u64>,
    /// Whether the connection may go on.
    pub keep_alive: bool,
    /// Whether it asks to leave HTTP behind.
    pub upgrade: bool,
}

/// Reads a request that comes in these pieces.
pub fn read_request(pieces: &[&[u8]], head_bytes_max: usize) -> Read {
    let mut scan = Scan::default();
    read(pieces, |input| {
        let Some(head) = request::head(input, &mut scan, head_bytes_max).map_err(|fault| fault.to_string())? else {
            return Ok(None);
        };
        let request::Head { method, uri: target, version, fields, decoder, keep_alive, upgrade, .. } = head;
        let length = length(&decoder);
        let status = StatusCode::OK;
        Ok(Some((Head { method, target, status, version, fields, length, keep_alive, upgrade }, decoder)))
    })
}

/// Reads the answer to a request, which comes in these pieces; then the
/// connection ends.
pub fn read_answer(pieces: &[&[u8]], method: &Method) -> Read {
    let mut scan = Scan::default();
    read(pieces, |input| {
        let head = reply::head(input, &mut scan, method, ANSWER_HEAD_BYTES_MAX).map_err(str::to_owned)?;
        let Some(head) = head else { return Ok(None) };
        let reply::Head { status, fields, decoder, keep_alive, upgrade } = head;
        let length = length(&decoder);
        let (method, target, version) = (method.clone(), Uri::default(), Version::HTTP_11);
        Ok(Some((Head { method, target, status, version, fields, length, keep_alive, upgrade }, decoder)))
    })
}

fn length(decoder: &Decoder) -> Option<u64> {
    match decoder {
        Decoder::Length(length) => Some(*length),
        _ => None,
    }
}

fn read(pieces: &[&[u8]], mut take: impl FnMut(&mut BytesMut) -> Result<Option<(Head, Decoder)>, String>) -> Read {
    let mut input = BytesMut::new();
    let mut read = Read { head: None, body: Vec::new(), trailers: HeaderMap::new(), end: End::More };
    let mut decoder = None;
    for (number, piece) in pieces.iter().enumerate() {
        input.extend_from_slice(piece);
        if decoder.is_none() {
            match take(&mut input) {
                Ok(None) => continue,
                Ok(Some((head, found))) => (read.head, decoder) = (Some(head), Some(found)),
                Err(fault) => {
                    read.end = End::Refused(fault);
                    return read;
                }
            }
        }
        let Some(decoder) = &mut decoder else { continue };
        if let Err(fault) = drain(decoder, &mut input, &mut read) {
            read.end = End::Refused(fault.to_owned());
            return read;
        }
        if decoder.is_done() {
            let to_come: usize = pieces[number + 1..].iter().map(|piece| piece.len()).sum();
            read.end = End::Whole(input.len() + to_come);
            return read;
        }
    }
    if decoder.is_some_and(|mut decoder| decoder.end().is_ok()) {
        read.end = End::Whole(0);
    }
    read
}

fn drain(decoder: &mut Decoder, input: &mut BytesMut, read: &mut Read) -> Result<(), &'static str> {
    loop {
        match decoder.decode(input)? {
            Piece::Data(data) => read.body.extend_from_slice(&data),
            Piece::Trailers(trailers) => read.trailers = trailers,
            Piece::End | Piece::More => return Ok(()),
        }
    }
}

/// Writes a request that was read whole, as it goes to an app.
///
/// # Errors
/// When its body is not as long as its head says.
pub fn write_request(head: &Head, body: &[u8], trailers: &HeaderMap) -> Result<Vec<u8>, String> {
    let mut parts = Request::new(()).into_parts().0;
    (parts.method, parts.uri, parts.headers) = (head.method.clone(), head.target.clone(), head.fields.clone());
    if !parts.headers.contains_key(HOST) {
        parts.headers.insert(HOST, HeaderValue::from_static("app"));
    }
    let encoder = head.length.map_or(Encoder::Chunked, Encoder::Length);
    let mut out = Vec::new();
    write_head(&parts, encoder, &mut out);
    written(out, encoder, body, trailers)
}

/// Writes an answer that was read whole, as it goes to an HTTP/1.1 client.
///
/// # Errors
/// When its body is not as long as its head says.
pub fn write_answer(head: &Head, body: &[u8], trailers: &HeaderMap) -> Result<Vec<u8>, String> {
    let mut parts = Response::new(()).into_parts().0;
    (parts.status, parts.headers) = (head.status, head.fields.clone());
    let asked = Asked::of(&head.method, Version::HTTP_11, head.upgrade, true);
    let exact = head.length.filter(|_| !head.fields.contains_key(CONTENT_LENGTH));
    let plan = Plan::of(&asked, &parts, exact);
    let mut out = Vec::new();
    answer::write(&asked, plan, &parts, exact, &mut out);
    written(out, plan.encoder, body, trailers)
}

fn written(head: Vec<u8>, mut encoder: Encoder, body: &[u8], trailers: &HeaderMap) -> Result<Vec<u8>, String> {
    let mut out = Outbox::default();
    out.flat(&head);
    // More than one chunk where there is enough for it.
    for piece in body.chunks(body.len().div_ceil(3).max(1)) {
        encoder.data(Bytes::copy_from_slice(piece), &mut out).map_err(|fault| fault.to_string())?;
    }
    let trailers = Some(trailers).filter(|trailers| !trailers.is_empty());
    encoder.end(trailers, &mut out).map_err(|fault| fault.to_string())?;
    Ok(out.contents())
}
