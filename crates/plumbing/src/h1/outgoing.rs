//! A request on its way to an app or a pod, and why it did not get there.

use super::encode::{self, Encoder};
use super::request::named_length;
use crate::target::AsItCame;
use crate::wheel::Sleep;
use bytes::Bytes;
use http::header::{CONTENT_LENGTH, EXPECT, HOST, TRANSFER_ENCODING};
use http::{HeaderMap, Method, Request, StatusCode, request};
use http_body::Body;

/// A request that can be handed on unharmed when nothing of it was sent, even
/// if its body had begun to be read.
#[derive(Debug)]
pub struct Outgoing<B> {
    pub(super) parts: request::Parts,
    /// What has been read of the body, to be sent first.
    pub(super) begun: Option<Bytes>,
    pub(super) body: B,
}

impl<B> From<Request<B>> for Outgoing<B> {
    fn from(request: Request<B>) -> Outgoing<B> {
        let (parts, body) = request.into_parts();
        Outgoing { parts, begun: None, body }
    }
}

impl<B> Outgoing<B> {
    /// Method, target and fields.
    pub fn parts(&self) -> &request::Parts {
        &self.parts
    }

    /// The same, to be changed before another try.
    pub fn parts_mut(&mut self) -> &mut request::Parts {
        &mut self.parts
    }

    /// The request again.
    ///
    /// # Errors
    /// Itself, if part of its body has been read.
    pub fn into_request(self: Box<Self>) -> Result<Request<B>, Box<Outgoing<B>>> {
        match self.begun {
            None => Ok(Request::from_parts(self.parts, self.body)),
            Some(_) => Err(self),
        }
    }
}

/// Why a request was not answered.
#[derive(Debug)]
pub enum SendError<B> {
    /// Nothing was sent: it may go elsewhere, whatever it is.
    NotSent {
        /// The request, as it was.
        unsent: Box<Outgoing<B>>,
        /// What failed.
        error: String,
    },
    /// It was sent, or may have been.
    Broken {
        /// What failed.
        error: String,
        /// Where.
        at: Break,
        /// The request's head, for those that may be sent twice.
        head: Option<Box<request::Parts>>,
    },
}

/// Where a request broke off that had been sent, or may have been.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Break {
    /// Its own body failed: the client left, or sent what is no HTTP.
    RequestBody,
    /// The other side closed or reset before it answered.
    BeforeAnswer,
    /// The answer is no valid HTTP.
    Answer,
    /// The other side speaks HTTP/2 alone: the request meant nothing to it.
    Version,
}

/// What to do on the way to an answer.
#[derive(Default)]
pub struct Options<'a> {
    /// Called with each interim answer (1xx, but not 101), in order.
    pub on_interim: Option<&'a mut (dyn FnMut(StatusCode, HeaderMap) + Send)>,
    /// When the body of a request that says `Expect: 100-continue` is asked
    /// for. (Of other requests it is sent at once.) Taken once something has
    /// been sent; what could not be sent is held back again by the next try.
    pub hold_body: Option<&'a mut Hold>,
    /// Largest head of an answer, in bytes; `None` = the codec's own limit.
    pub head_bytes_max: Option<usize>,
}

/// Until when a body is held back.
#[derive(Default)]
pub enum Hold {
    /// It is not.
    #[default]
    No,
    /// Until the other side says 100. If it gives its final answer instead,
    /// the body is not touched at all.
    UntilContinue,
    /// The same, but no longer than this: there are servers that never say it.
    UntilContinueOr(Sleep),
}

impl Hold {
    pub(super) fn for_request(self, fields: &HeaderMap) -> Hold {
        let waits = fields.get(EXPECT).is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"100-continue"));
        if waits { self } else { Hold::No }
    }
}

/// How the body of a request is framed.
pub(super) fn framing<B: Body>(parts: &request::Parts, begun: Option<&Bytes>, body: &B) -> Encoder {
    let begun = begun.map_or(0, |bytes| bytes.len() as u64);
    let exact = if body.is_end_stream() { Some(0) } else { body.size_hint().exact() };
    match named_length(&parts.headers).or(exact.map(|exact| exact + begun)) {
        Some(length) => Encoder::Length(length),
        None => Encoder::Chunked,
    }
}

/// Writes a request's head.
pub(super) fn write_head(parts: &request::Parts, encoder: Encoder, out: &mut Vec<u8>) {
    out.extend_from_slice(parts.method.as_str().as_bytes());
    out.push(b' ');
    let authority = parts.uri.authority();
    match (parts.uri.path_and_query(), authority) {
        (None, Some(authority)) if parts.method == Method::CONNECT => {
            out.extend_from_slice(authority.as_str().as_bytes());
        }
        (path, _) => {
            let path = AsItCame::of(parts).unwrap_or_else(|| path.map_or("/", |path| path.as_str()));
            if !path.starts_with('/') && path != "*" {
                out.push(b'/');
            }
            out.extend_from_slice(path.as_bytes());
        }
    }
    out.extend_from_slice(b" HTTP/1.1\r\n");
    match (parts.headers.get(HOST), authority) {
        (Some(host), _) => encode::field("host", host.as_bytes(), out),
        (None, Some(authority)) => encode::field("host", authority.as_str().as_bytes(), out),
        (None, None) => {}
    }
    let written = |name: &_| *name == HOST || *name == CONTENT_LENGTH || *name == TRANSFER_ENCODING;
    encode::fields(&parts.headers, |name| !written(name), out);
    match encoder {
        // Only where a body is usual is its absence worth a word.
        Encoder::Length(0) if !says_length(parts) => {}
        Encoder::Length(length) => {
            out.extend_from_slice(b"Content-Length: ");
            encode::number(length, out);
            out.extend_from_slice(b"\r\n");
        }
        _ => out.extend_from_slice(b"Transfer-Encoding: chunked\r\n"),
    }
    out.extend_from_slice(b"\r\n");
}

fn says_length(parts: &request::Parts) -> bool {
    parts.headers.contains_key(CONTENT_LENGTH) || has_usually_a_body(&parts.method)
}

/// True for methods whose requests usually have a body.
pub(super) fn has_usually_a_body(method: &Method) -> bool {
    [Method::POST, Method::PUT, Method::PATCH].contains(method)
}
