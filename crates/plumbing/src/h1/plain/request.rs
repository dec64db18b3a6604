//! A plain request: known by its bytes, and made ready for the app.

use super::super::fields::{is_host_byte, length, table};
use super::super::inbox::Inbox;
use super::super::incoming::Interim;
use super::super::limits::FIELDS_USUAL;
use super::super::lines::Scan;
use super::super::link::Link;
use super::super::outgoing::has_usually_a_body;
use super::super::request as whole;
use super::super::{buffers, encode};
use super::fields::{Field, GRPC, field, write};
use crate::trust::Trust;
use crate::{forwarded, headers};
use bytes::{Buf, Bytes, BytesMut};
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use policy::compat::Compat;
use std::mem::MaybeUninit;
use std::net::IpAddr;
use std::sync::Arc;

/// Bytes of a plain request's head. Where fewer are allowed, none is plain.
pub(in super::super) const HEAD_BYTES_MAX: usize = 4 << 10;
/// Bytes of a plain request's body: it is here in full, or goes the whole way.
const BODY_BYTES_MAX: u64 = 64 << 10;
/// User agents of probers begin with these: what they send may be for us.
const PROBERS: [&[u8]; 2] = [b"kube-probe/", b"Knative-"];

/// By what the plain requests of a connection are made ready.
pub struct Rules {
    peer: IpAddr,
    /// The peer may speak internally, and say where requests came from.
    may_speak: bool,
    may_say_origin: bool,
    forwarded_for: Vec<u8>,
}

impl Rules {
    /// For requests of a peer.
    pub fn of(peer: IpAddr, trust: &Trust) -> Rules {
        let peer = peer.to_canonical();
        Rules {
            peer,
            may_speak: trust.peers.contains(peer),
            may_say_origin: trust.proxies.contains(peer),
            forwarded_for: format!("X-Forwarded-For: {peer}\r\n").into_bytes(),
        }
    }
}

/// A plain request, ready for the app.
pub struct Plain {
    /// In a box: it is moved about, and may wait.
    found: Box<Found>,
    link: Arc<Link>,
    turn: u64,
}

impl Plain {
    pub(super) fn new(found: Box<Found>, link: Arc<Link>, turn: u64) -> Plain {
        Plain { found, link, turn }
    }

    /// Its method.
    pub fn method(&self) -> &Method {
        &self.found.method
    }

    /// The host that the client named.
    pub fn host(&self) -> &str {
        match &self.found.host {
            Host::Within(from, to) => std::str::from_utf8(&self.found.head[*from as usize..*to as usize]).unwrap_or(""),
            Host::Replaced(host) => host,
        }
    }

    /// True when it came through an activator.
    pub fn is_proxied(&self) -> bool {
        self.found.proxied
    }

    /// The nonce of an offer: serve at once, or hand back.
    pub fn offer(&self) -> Option<&HeaderValue> {
        self.found.offer.as_ref()
    }

    /// The length of its body, in bytes.
    pub fn body_bytes(&self) -> usize {
        self.found.body.iter().map(BytesMut::len).sum()
    }

    /// By which interim answers can be given.
    pub fn interim(&self) -> Interim {
        Interim::new(self.link.clone(), self.turn)
    }

    /// Head and body, to be written in this order.
    pub(super) fn pieces(&self) -> [&[u8]; 3] {
        let Found { head, body, .. } = &*self.found;
        [head, &body[0], &body[1]]
    }

    /// The same request with its fields in a map, and its body.
    pub fn into_whole(self) -> (http::request::Parts, Bytes) {
        let mut found = self.found;
        let [mut first, second] = std::mem::take(&mut found.body);
        let mut input = BytesMut::from(&found.head[..]);
        let head = whole::head(&mut input, &mut Scan::default(), usize::MAX);
        let parts = match head.ok().flatten() {
            Some(head) => head.into_parts(),
            // It cannot be: a head that was found plain has nothing else in it.
            None => http::Request::builder().method(&found.method).body(()).unwrap_or_default().into_parts().0,
        };
        first.extend_from_slice(&second);
        (parts, first.freeze())
    }
}

/// The host that the client named.
enum Host {
    /// It stands here in the head.
    Within(u32, u32),
    /// It was an activator's, and the app is told the one before.
    Replaced(Box<str>),
}

/// A plain request as it was found: its head as it is sent, its body in up to
/// two pieces as it came.
pub(in super::super) struct Found {
    method: Method,
    head: Vec<u8>,
    host: Host,
    proxied: bool,
    offer: Option<HeaderValue>,
    body: [BytesMut; 2],
}

impl Drop for Found {
    fn drop(&mut self) {
        self.body.iter_mut().for_each(|piece| buffers::give(std::mem::take(piece)));
    }
}

impl Found {
    /// Its head as it goes to the app, and its body.
    #[cfg(test)]
    pub(super) fn pieces(&self) -> (&[u8], Vec<u8>) {
        (&self.head, self.body.concat())
    }

    #[cfg(test)]
    pub(super) fn is_proxied(&self) -> bool {
        self.proxied
    }

    #[cfg(test)]
    pub(super) fn offer(&self) -> Option<&HeaderValue> {
        self.offer.as_ref()
    }
}

/// Takes a plain request off the front of what came in; `None`: there is none
/// that is known to be one, and nothing was touched. `more` reads once what is
/// there already; a body that has just filled a buffer may be.
pub(in super::super) fn take(inbox: &mut Inbox, rules: &Rules, more: impl FnOnce(&mut Inbox)) -> Option<Box<Found>> {
    let (mut found, head_bytes, body_bytes) = read(&inbox.bytes, rules)?;
    let whole = head_bytes + body_bytes;
    if inbox.bytes.len() >= whole {
        inbox.bytes.advance(head_bytes);
        let body = match body_bytes {
            0 => BytesMut::new(),
            _ if inbox.bytes.len() == body_bytes => std::mem::take(&mut inbox.bytes),
            _ => inbox.bytes.split_to(body_bytes),
        };
        found.body[0] = body;
        return Some(found);
    }
    if !inbox.was_filled() {
        return None;
    }
    let mut first = std::mem::take(&mut inbox.bytes);
    more(inbox);
    let missing = whole - first.len();
    if inbox.bytes.len() < missing {
        first.extend_from_slice(&inbox.bytes);
        inbox.bytes = first;
        return None;
    }
    first.advance(head_bytes);
    let second =
        if inbox.bytes.len() == missing { std::mem::take(&mut inbox.bytes) } else { inbox.bytes.split_to(missing) };
    found.body = [first, second];
    Some(found)
}

/// The head of a plain request, ready for the app; bytes of the head as it
/// came, and of the body.
fn read(input: &[u8], rules: &Rules) -> Option<(Box<Found>, usize, usize)> {
    let mut fields = [const { MaybeUninit::uninit() }; FIELDS_USUAL];
    let mut request = httparse::Request::new(&mut []);
    let config = httparse::ParserConfig::default();
    let parsed = config.parse_request_with_uninit_headers(&mut request, input, &mut fields);
    let Ok(httparse::Status::Complete(head_bytes @ ..=HEAD_BYTES_MAX)) = parsed else { return None };
    let (method, target) = (method(request.method?)?, request.path?);
    // An empty line before the head is the whole way's to pass over.
    if request.version != Some(1) || !is_plain_target(target) || !input.starts_with(method.as_str().as_bytes()) {
        return None;
    }
    let mut head = Head::default();
    for (at, this) in request.headers.iter().enumerate() {
        head.look(at, this, rules)?;
    }
    let body_bytes = head.length.unwrap_or(0);
    if body_bytes > BODY_BYTES_MAX {
        return None;
    }
    let mut out = Vec::with_capacity(head_bytes + rules.forwarded_for.len() + 32);
    for part in [method.as_str(), " ", target, " HTTP/1.1\r\nHost: "] {
        out.extend_from_slice(part.as_bytes());
    }
    let (from, named) = (out.len() as u32, head.host?);
    out.extend_from_slice(head.original_host.unwrap_or(named));
    let host = match head.original_host {
        None => Host::Within(from, out.len() as u32),
        Some(_) => Host::Replaced(std::str::from_utf8(named).ok()?.into()),
    };
    out.extend_from_slice(b"\r\n");
    for (at, this) in request.headers.iter().enumerate() {
        if head.passed_on >> at & 1 == 1 {
            write(this.name.as_bytes(), this.value, &mut out);
        }
    }
    match head.origin {
        None => out.extend_from_slice(&rules.forwarded_for),
        Some(mut origin) => {
            forwarded::add(&mut origin, Compat::Better);
            headers::forwarded_for(&mut origin, rules.peer);
            encode::fields(&origin, |_| true, &mut out);
        }
    }
    if head.length.is_some() || has_usually_a_body(&method) {
        out.extend_from_slice(b"Content-Length: ");
        encode::number(body_bytes, &mut out);
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(b"\r\n");
    let (proxied, offer) = (head.proxied.unwrap_or(false), head.offer);
    let found = Found { method, head: out, host, proxied, offer, body: Default::default() };
    Some((Box::new(found), head_bytes, body_bytes as usize))
}

/// What is gathered of a head.
#[derive(Default)]
struct Head<'i> {
    host: Option<&'i [u8]>,
    length: Option<u64>,
    /// Set when its peer may say where it came from, and does.
    origin: Option<Box<HeaderMap>>,
    original_host: Option<&'i [u8]>,
    proxied: Option<bool>,
    offer: Option<HeaderValue>,
    /// A bit for each field that goes on as it is.
    passed_on: u64,
}

const _: () = assert!(FIELDS_USUAL <= u64::BITS as usize);

impl<'i> Head<'i> {
    /// Looks at a field; `None`: the request is not plain.
    fn look(&mut self, at: usize, this: &httparse::Header<'i>, rules: &Rules) -> Option<()> {
        let value = this.value;
        let passed_on = match field(this.name.as_bytes()) {
            Field::Host if self.host.is_none() && value.iter().all(|byte| is_host_byte(*byte)) => {
                self.host = Some(value);
                false
            }
            Field::Length if self.length.is_none() => {
                self.length = Some(length(value)?);
                false
            }
            Field::Connection if value.eq_ignore_ascii_case(b"keep-alive") => false,
            Field::Agent if !PROBERS.iter().any(|prober| value.starts_with(prober)) => true,
            Field::ContentType if !value.starts_with(GRPC) => true,
            Field::Other | Field::Date => true,
            Field::Origin => {
                if rules.may_say_origin {
                    let (name, value) = (HeaderName::from_bytes(this.name.as_bytes()), HeaderValue::from_bytes(value));
                    self.origin.get_or_insert_default().append(name.ok()?, value.ok()?);
                }
                false
            }
            Field::Route => false,
            // What nobody may say who is not believed is not there.
            Field::ProxyRequest | Field::OriginalHost | Field::Offer if !rules.may_speak => false,
            Field::ProxyRequest if self.proxied.is_none() => {
                self.proxied = Some(value == b"activator");
                true
            }
            Field::OriginalHost if self.original_host.is_none() && is_host(value) => {
                self.original_host = Some(value);
                false
            }
            Field::Offer if self.offer.is_none() => {
                self.offer = Some(HeaderValue::from_bytes(value).ok()?);
                false
            }
            _ => return None,
        };
        self.passed_on |= u64::from(passed_on) << at;
        Some(())
    }
}

/// A host that can stand in for another.
fn is_host(value: &[u8]) -> bool {
    !value.is_empty() && value.iter().all(|byte| is_host_byte(*byte))
}

/// Methods of plain requests. (The answer to HEAD has a length and no body.)
fn method(name: &str) -> Option<Method> {
    Some(match name {
        "GET" => Method::GET,
        "POST" => Method::POST,
        "PUT" => Method::PUT,
        "DELETE" => Method::DELETE,
        "PATCH" => Method::PATCH,
        "OPTIONS" => Method::OPTIONS,
        _ => return None,
    })
}

/// Bytes of a target that mean the same to everybody.
const TARGET_BYTES: [bool; 256] = table(b"-._~!$&'()*+,;=:@%/?");

fn is_plain_target(target: &str) -> bool {
    target.starts_with('/') && target.bytes().all(|byte| TARGET_BYTES[usize::from(byte)])
}
