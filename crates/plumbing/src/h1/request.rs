//! A request's head, checked: one that two servers could read differently is
//! refused.

use super::fields::{Coding, Expect};
use super::lines::{Scan, empty_lines};
use super::malformed::Malformed;
use super::parse::{self, Fault, Kind, Raw};
use super::{chunk::Chunked, decode::Decoder};
use crate::target::{self, AsItCame};
use bytes::{Buf, Bytes, BytesMut};
use http::header::{CONTENT_LENGTH, HOST, HeaderMap, HeaderValue, TRANSFER_ENCODING};
use http::uri::Uri;
use http::{Method, Version};

/// A request without its body, and what its head says of the connection.
#[derive(Debug)]
pub(super) struct Head {
    pub(super) method: Method,
    pub(super) uri: Uri,
    /// The target, where the URI could not hold it.
    pub(super) as_it_came: Option<AsItCame>,
    pub(super) version: Version,
    pub(super) fields: HeaderMap,
    pub(super) decoder: Decoder,
    pub(super) keep_alive: bool,
    pub(super) expects_continue: bool,
    pub(super) upgrade: bool,
}

impl Head {
    /// As the parts of a request, without what it says of the connection.
    pub(super) fn into_parts(self) -> http::request::Parts {
        let (mut parts, ()) = http::Request::new(()).into_parts();
        (parts.method, parts.uri, parts.version, parts.headers) = (self.method, self.uri, self.version, self.fields);
        if let Some(target) = self.as_it_came {
            parts.extensions.insert(target);
        }
        parts
    }
}

/// Takes a request's head off the front of `input`, once it is there in full.
pub(super) fn head(input: &mut BytesMut, scan: &mut Scan, bytes_max: usize) -> Result<Option<Head>, Malformed> {
    if !scan.unfinished {
        input.advance(empty_lines(input));
        // Half an empty line may be all that has come.
        if matches!(&input[..], b"" | b"\r") {
            return Ok(None);
        }
    }
    let before = input.len();
    match parse::head(Kind::Request, input, scan) {
        Ok(Some(_)) if before - input.len() > bytes_max => Err(Malformed::HeadTooLarge),
        Ok(Some(raw)) => check(raw).map(Some),
        Ok(None) if before >= bytes_max => Err(Malformed::HeadTooLarge),
        Ok(None) => Ok(None),
        Err(Fault::Byte) => Err(Malformed::Request("")),
        Err(Fault::FieldName) => Err(Malformed::Request("invalid header name")),
        Err(Fault::TooManyFields) => Err(Malformed::HeadTooLarge),
        Err(Fault::Version) if before >= bytes_max => Err(Malformed::HeadTooLarge),
        Err(Fault::Version) => version_fault(input),
    }
}

/// A version that we do not speak, or none at all: the whole line tells.
fn version_fault(input: &[u8]) -> Result<Option<Head>, Malformed> {
    let Some(end) = input.iter().position(|byte| *byte == b'\n') else { return Ok(None) };
    let line = input[..end].strip_suffix(b"\r").unwrap_or(&input[..end]);
    match line.splitn(3, |byte| *byte == b' ').last() {
        Some([b'H', b'T', b'T', b'P', b'/', major, b'.', minor])
            if major.is_ascii_digit() && minor.is_ascii_digit() =>
        {
            Err(Malformed::Version)
        }
        _ => Err(Malformed::Request("")),
    }
}

fn check(raw: Raw) -> Result<Head, Malformed> {
    let Raw { first, second, minor_version, mut fields, framing } = raw;
    let version = if minor_version == 0 { Version::HTTP_10 } else { Version::HTTP_11 };
    let modern = version == Version::HTTP_11;
    let method = Method::from_bytes(&first).map_err(|_| Malformed::Request(""))?;
    if modern && framing.hosts == 0 && method != Method::CONNECT {
        return Err(Malformed::Request("missing required Host header"));
    }
    if framing.hosts > 1 || framing.bad_length || (framing.coding.is_some() && framing.length.is_some()) {
        return Err(Malformed::Request(""));
    }
    if framing.bad_host {
        return Err(Malformed::Request("malformed Host header"));
    }
    let mut keep_alive = if modern { !framing.close } else { framing.keep_alive && !framing.close };
    let decoder = match (framing.coding, framing.length) {
        (Some(Coding::Other), _) if modern => return Err(Malformed::TransferEncoding),
        (Some(Coding::Chunked), _) if modern => Decoder::Chunked(Chunked::Size),
        // HTTP/1.0 knows no codings: what follows is nobody's, and not read.
        (Some(_), _) => {
            fields.remove(TRANSFER_ENCODING);
            keep_alive = false;
            Decoder::EMPTY
        }
        (None, length) => Decoder::Length(length.unwrap_or(0)),
    };
    if framing.expect == Some(Expect::Other) {
        return Err(Malformed::Expectation);
    }
    let (uri, as_it_came) = target_of(&method, second, &mut fields)?;
    Ok(Head {
        method,
        uri,
        as_it_came,
        version,
        fields,
        expects_continue: modern && framing.expect.is_some() && !decoder.is_done(),
        decoder,
        keep_alive,
        upgrade: modern && framing.upgrade && framing.has_upgrade,
    })
}

/// The target in origin form. The authority of one in absolute form takes the
/// place of the Host field, so that nothing is left to choose between.
fn target_of(method: &Method, raw: Bytes, fields: &mut HeaderMap) -> Result<(Uri, Option<AsItCame>), Malformed> {
    if raw.len() > usize::from(u16::MAX) - 1 {
        return Err(Malformed::TargetTooLong);
    }
    let bad = |_| Malformed::Request("");
    if raw.first() == Some(&b'/') {
        let (path, as_it_came) = target::path_and_query(raw).ok_or(Malformed::Request(""))?;
        return Ok((Uri::from(path), as_it_came));
    }
    let uri = Uri::from_maybe_shared(raw).map_err(bad)?;
    let uri = match (uri.scheme(), uri.authority()) {
        (None, None) if uri.path() == "*" && uri.query().is_none() => Ok(uri),
        (None, Some(_)) if method == Method::CONNECT => Ok(uri),
        (Some(_), Some(authority)) => {
            let host = authority.as_str();
            let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
            fields.insert(HOST, HeaderValue::from_str(host).map_err(|_| Malformed::Request(""))?);
            // One without a path has an empty one there, which means the root.
            let path = uri.path_and_query().filter(|path| path.as_str() != "/").cloned();
            Ok(path.map_or(Uri::from_static("/"), Uri::from))
        }
        _ => Err(Malformed::Request("")),
    }?;
    Ok((uri, None))
}

/// The length that a request's fields name, as they are left after checking.
pub(super) fn named_length(fields: &HeaderMap) -> Option<u64> {
    let mut values = fields.get_all(CONTENT_LENGTH).iter();
    let first = super::fields::length(values.next()?.as_bytes())?;
    values.all(|value| super::fields::length(value.as_bytes()) == Some(first)).then_some(first)
}

#[cfg(test)]
#[path = "request_tests.rs"]
mod tests;
