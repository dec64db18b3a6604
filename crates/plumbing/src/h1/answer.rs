//! The head of an answer: how its body is framed, and whether the connection
//! goes on.

use super::date;
use super::encode::{self, Encoder};
use super::fields::has_token;
use super::request::named_length;
use http::header::{CONNECTION, CONTENT_LENGTH, DATE, HeaderMap, TRANSFER_ENCODING};
use http::{Method, StatusCode, Version, response};
use std::cell::RefCell;

/// What an answer has to respect of its request.
pub(super) struct Asked {
    pub(super) version: Version,
    pub(super) is_head: bool,
    pub(super) is_connect: bool,
    pub(super) may_upgrade: bool,
    /// The connection may be used again.
    pub(super) keep_alive: bool,
}

impl Asked {
    pub(super) fn of(method: &Method, version: Version, upgrade: bool, keep_alive: bool) -> Asked {
        let is_connect = method == Method::CONNECT;
        let may_upgrade = upgrade || is_connect;
        Asked { version, is_head: method == Method::HEAD, is_connect, may_upgrade, keep_alive }
    }
}

/// How an answer is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Plan {
    pub(super) encoder: Encoder,
    pub(super) keep_alive: bool,
    /// The connection leaves HTTP behind.
    pub(super) upgrade: bool,
}

impl Plan {
    /// `exact`: the body's length, if it is known.
    pub(super) fn of(asked: &Asked, parts: &response::Parts, exact: Option<u64>) -> Plan {
        let status = parts.status;
        let upgrade = asked.may_upgrade
            && (status == StatusCode::SWITCHING_PROTOCOLS || (asked.is_connect && status.is_success()));
        if upgrade {
            return Plan { encoder: Encoder::Nothing, keep_alive: false, upgrade };
        }
        let close = parts.headers.get_all(CONNECTION).iter().any(|value| has_token(value, b"close"));
        let keep_alive = asked.keep_alive && !close;
        let bodiless = asked.is_head || is_bodiless(status);
        let encoder = match named_length(&parts.headers).or(exact) {
            _ if bodiless => Encoder::Nothing,
            Some(length) => Encoder::Length(length),
            None if asked.version == Version::HTTP_11 => Encoder::Chunked,
            None => Encoder::UntilClose,
        };
        Plan { encoder, keep_alive: keep_alive && encoder != Encoder::UntilClose, upgrade }
    }
}

/// Statuses whose answers have no body, whatever their fields say.
pub(super) fn is_bodiless(status: StatusCode) -> bool {
    status.is_informational() || status == StatusCode::NO_CONTENT || status == StatusCode::NOT_MODIFIED
}

thread_local! {
    static SCRATCH: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Lends an empty buffer in which a head is put together.
pub(super) fn with_scratch<R>(work: impl FnOnce(&mut Vec<u8>) -> R) -> R {
    let mut scratch = SCRATCH.with(RefCell::take);
    scratch.clear();
    let done = work(&mut scratch);
    // One huge head must not stay for ever.
    scratch.shrink_to(16 << 10);
    SCRATCH.with(|kept| kept.replace(scratch));
    done
}

/// Writes the head.
pub(super) fn write(asked: &Asked, plan: Plan, parts: &response::Parts, exact: Option<u64>, out: &mut Vec<u8>) {
    let (status, fields) = (parts.status, &parts.headers);
    out.extend_from_slice(if asked.version == Version::HTTP_10 { b"HTTP/1.0 " } else { b"HTTP/1.1 " });
    out.extend_from_slice(status.as_str().as_bytes());
    out.push(b' ');
    out.extend_from_slice(status.canonical_reason().unwrap_or("").as_bytes());
    out.extend_from_slice(b"\r\n");
    let keeps_connection = plan.upgrade;
    let left_out =
        |name: &_| *name == TRANSFER_ENCODING || *name == CONTENT_LENGTH || (*name == CONNECTION && !keeps_connection);
    encode::fields(fields, |name| !left_out(name), out);
    if let Some(length) = content_length(asked, plan, status, fields, exact) {
        out.extend_from_slice(b"Content-Length: ");
        encode::number(length, out);
        out.extend_from_slice(b"\r\n");
    }
    if plan.encoder == Encoder::Chunked {
        out.extend_from_slice(b"Transfer-Encoding: chunked\r\n");
    }
    if !status.is_informational() && !fields.contains_key(DATE) {
        encode::field("date", &date::now(), out);
    }
    // Nothing is said where it is understood: HTTP/1.0 closes, 1.1 does not.
    match (asked.version == Version::HTTP_10, plan.keep_alive) {
        _ if plan.upgrade => {}
        (true, true) => out.extend_from_slice(b"Connection: keep-alive\r\n"),
        (false, false) => out.extend_from_slice(b"Connection: close\r\n"),
        _ => {}
    }
    out.extend_from_slice(b"\r\n");
}

fn content_length(
    asked: &Asked,
    plan: Plan,
    status: StatusCode,
    fields: &HeaderMap,
    exact: Option<u64>,
) -> Option<u64> {
    match plan.encoder {
        Encoder::Length(length) => Some(length),
        Encoder::Nothing if plan.upgrade || status == StatusCode::NO_CONTENT || status.is_informational() => None,
        // What it would be for GET; a body of no bytes says nothing of that.
        Encoder::Nothing if asked.is_head => named_length(fields).or(exact.filter(|length| *length > 0)),
        Encoder::Nothing => named_length(fields),
        Encoder::Chunked | Encoder::UntilClose => None,
    }
}

#[cfg(test)]
#[path = "answer_tests.rs"]
mod tests;
