//! A plain answer's head: known by its bytes, and made ready for the client.

use super::super::answer::is_bodiless;
use super::super::fields::length;
use super::super::limits::FIELDS_USUAL;
use super::super::{date, encode};
use super::fields::{Field, GRPC, field, write};
use super::heads;
use http::StatusCode;
use std::mem::MaybeUninit;
use tokio::time::Instant;

/// What has come of an answer.
pub(super) enum Seen {
    /// Not all of its head.
    Part,
    Plain(Head),
    /// Something else, or nothing that is valid.
    Other,
}

/// The head of a plain answer.
pub(super) struct Head {
    pub(super) status: StatusCode,
    /// Bytes that it had as it came.
    pub(super) bytes: usize,
    /// Length of its body, in bytes.
    pub(super) length: u64,
    /// The app keeps the connection.
    pub(super) keep_alive: bool,
    /// `Keep-Alive`, where the app says how long.
    pub(super) kept_for: Option<Box<[u8]>>,
    has_date: bool,
    /// When it had come.
    pub(super) at: Instant,
    /// Status line and fields for the client.
    pub(super) out: Vec<u8>,
}

impl Head {
    /// Makes it whole for the client.
    pub(super) fn finish(&mut self, keep_alive: bool) {
        let out = &mut self.out;
        out.extend_from_slice(b"Content-Length: ");
        encode::number(self.length, out);
        out.extend_from_slice(b"\r\n");
        if !self.has_date {
            out.extend_from_slice(b"Date: ");
            out.extend_from_slice(&date::now());
            out.extend_from_slice(b"\r\n");
        }
        out.extend_from_slice(if keep_alive { b"\r\n" } else { b"Connection: close\r\n\r\n" });
    }
}

/// Reads the head of an answer at the front of `input`.
pub(super) fn read(input: &[u8]) -> Seen {
    let mut fields = [const { MaybeUninit::uninit() }; FIELDS_USUAL];
    let mut answer = httparse::Response::new(&mut []);
    let config = httparse::ParserConfig::default();
    let bytes = match config.parse_response_with_uninit_headers(&mut answer, input, &mut fields) {
        Ok(httparse::Status::Complete(bytes)) => bytes,
        Ok(httparse::Status::Partial) => return Seen::Part,
        Err(_) => return Seen::Other,
    };
    let status = answer.code.and_then(|code| StatusCode::from_u16(code).ok());
    match status.filter(|status| input.starts_with(b"HTTP/1.1 ") && !is_bodiless(*status) && status.as_u16() < 600) {
        Some(status) => head(status, bytes, answer.headers).map_or(Seen::Other, Seen::Plain),
        None => Seen::Other,
    }
}

fn head(status: StatusCode, bytes: usize, fields: &[httparse::Header<'_>]) -> Option<Head> {
    let mut out = heads::take();
    out.extend_from_slice(b"HTTP/1.1 ");
    out.extend_from_slice(status.as_str().as_bytes());
    out.push(b' ');
    out.extend_from_slice(status.canonical_reason().unwrap_or("").as_bytes());
    out.extend_from_slice(b"\r\n");
    let (mut keep_alive, mut kept_for, mut has_date, mut body) = (true, None, false, None);
    for this in fields {
        match field(this.name.as_bytes()) {
            Field::Length if body.is_none() => {
                body = Some(length(this.value)?);
                continue;
            }
            Field::Connection if this.value.eq_ignore_ascii_case(b"keep-alive") => continue,
            Field::Connection if this.value.eq_ignore_ascii_case(b"close") => {
                keep_alive = false;
                continue;
            }
            Field::KeepAlive if kept_for.is_none() => {
                kept_for = Some(this.value.into());
                continue;
            }
            Field::ContentType if this.value.starts_with(GRPC) => return None,
            Field::Date => has_date = true,
            Field::Other | Field::ContentType | Field::Host | Field::Agent => {}
            _ => return None,
        }
        write(this.name.as_bytes(), this.value, &mut out);
    }
    Some(Head { status, bytes, length: body?, keep_alive, kept_for, has_date, at: Instant::now(), out })
}
