//! Heads, parsed: names and values become slices of one copy of the head.

use super::fields::Framing;
use super::limits::{FIELDS_MAX, FIELDS_USUAL};
use super::lines::{Scan, has_fold, unfold};
use bytes::{Buf, Bytes, BytesMut};
use http::header::{HeaderMap, HeaderName, HeaderValue};
use std::mem::MaybeUninit;

/// Fields that a proxy adds to most heads.
const FIELDS_ADDED: usize = 2;

/// Which kind of head is expected.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Request,
    Answer,
}

/// A head in its parts.
pub(super) struct Raw {
    /// Of a request: method and target. Of an answer: the code, and nothing.
    pub(super) first: Bytes,
    pub(super) second: Bytes,
    pub(super) minor_version: u8,
    pub(super) fields: HeaderMap,
    pub(super) framing: Framing,
}

/// Why a head cannot be parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// A byte where it may not stand.
    Byte,
    /// A field's name that is none.
    FieldName,
    /// No version that we know.
    Version,
    TooManyFields,
}

/// Takes a head off the front of `input`, once it is there in full. Empty
/// lines before it must have been taken off.
pub(super) fn head(kind: Kind, input: &mut BytesMut, scan: &mut Scan) -> Result<Option<Raw>, Fault> {
    let mut end = None;
    if scan.unfinished {
        end = scan.end(input);
        if end.is_none() {
            return Ok(None);
        }
    }
    let mut table = Table::new();
    match spans(kind, input, &mut table) {
        Ok(Some(spans)) => {
            *scan = Scan::default();
            // Copied: a slice would keep the whole buffer for as long as the
            // request is held, for a head of a few hundred bytes.
            let head = Bytes::copy_from_slice(&input[..spans.length]);
            input.advance(spans.length);
            build(&head, &spans, &table).map(Some)
        }
        Ok(None) => {
            scan.end(input);
            scan.wait();
            Ok(None)
        }
        Err(Fault::FieldName) if has_fold(input) => {
            let Some(end) = end.or_else(|| Scan::default().end(input)) else {
                scan.end(input);
                scan.wait();
                return Ok(None);
            };
            *scan = Scan::default();
            folded(kind, input, end)
        }
        Err(fault) => Err(fault),
    }
}

fn folded(kind: Kind, input: &mut BytesMut, end: usize) -> Result<Option<Raw>, Fault> {
    let whole = Bytes::from(unfold(&input[..end]).ok_or(Fault::FieldName)?);
    let mut table = Table::new();
    let spans = spans(kind, &whole, &mut table)?.ok_or(Fault::FieldName)?;
    input.advance(end);
    build(&whole, &spans, &table).map(Some)
}

/// Where the parts of a head lie.
struct Spans {
    length: usize,
    first: Span,
    second: Span,
    minor_version: u8,
}

type Span = (u32, u32);

/// Names and values of fields: on the stack unless there are many.
struct Table {
    usual: [(Span, Span); FIELDS_USUAL],
    many: Vec<(Span, Span)>,
    count: usize,
}

impl Table {
    fn new() -> Table {
        Table { usual: [((0, 0), (0, 0)); FIELDS_USUAL], many: Vec::new(), count: 0 }
    }

    fn fill(&mut self, pairs: impl ExactSizeIterator<Item = (Span, Span)>) {
        self.count = pairs.len();
        if self.count > FIELDS_USUAL {
            self.many.extend(pairs);
        } else {
            self.usual.iter_mut().zip(pairs).for_each(|(slot, pair)| *slot = pair);
        }
    }

    fn pairs(&self) -> &[(Span, Span)] {
        if self.count > FIELDS_USUAL { &self.many } else { &self.usual[..self.count] }
    }
}

fn spans(kind: Kind, input: &[u8], table: &mut Table) -> Result<Option<Spans>, Fault> {
    let mut fields = [const { MaybeUninit::uninit() }; FIELDS_USUAL];
    match spans_within(kind, input, &mut fields, table) {
        Err(Fault::TooManyFields) => {
            let mut fields = Vec::new();
            fields.resize_with(FIELDS_MAX, MaybeUninit::uninit);
            spans_within(kind, input, &mut fields, table)
        }
        found => found,
    }
}

fn spans_within<'i>(
    kind: Kind,
    input: &'i [u8],
    fields: &mut [MaybeUninit<httparse::Header<'i>>],
    table: &mut Table,
) -> Result<Option<Spans>, Fault> {
    let config = httparse::ParserConfig::default();
    let (parsed, first, second, version, fields) = match kind {
        Kind::Request => {
            let mut request = httparse::Request::new(&mut []);
            let parsed = config.parse_request_with_uninit_headers(&mut request, input, fields);
            (parsed, request.method, request.path, request.version, &*request.headers)
        }
        Kind::Answer => {
            let mut answer = httparse::Response::new(&mut []);
            let parsed = config.parse_response_with_uninit_headers(&mut answer, input, fields);
            // The code again as text: its three digits stand behind "HTTP/1.x ".
            let code = input.get(9..12).and_then(|code| std::str::from_utf8(code).ok());
            (parsed, code, Some(""), answer.version, &*answer.headers)
        }
    };
    let length = match parsed {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(httparse::Error::HeaderName) => return Err(Fault::FieldName),
        Err(httparse::Error::Version) => return Err(Fault::Version),
        Err(httparse::Error::TooManyHeaders) => return Err(Fault::TooManyFields),
        Err(_) => return Err(Fault::Byte),
    };
    let base = input.as_ptr() as usize;
    let span = |part: &[u8]| {
        let start = (part.as_ptr() as usize).wrapping_sub(base);
        if part.is_empty() { (0, 0) } else { (start as u32, (start + part.len()) as u32) }
    };
    table.fill(fields.iter().map(|field| (span(field.name.as_bytes()), span(field.value))));
    let (first, second) = (first.unwrap_or(""), second.unwrap_or(""));
    let (first, second) = (span(first.as_bytes()), span(second.as_bytes()));
    Ok(Some(Spans { length, first, second, minor_version: version.unwrap_or(1) }))
}

fn build(head: &Bytes, spans: &Spans, table: &Table) -> Result<Raw, Fault> {
    let slice = |(start, end): Span| head.slice(start as usize..end as usize);
    // Room for what is added on the way, so that the map need not grow.
    let mut fields = HeaderMap::with_capacity(table.count + FIELDS_ADDED);
    let mut framing = Framing::default();
    for (name, value) in table.pairs() {
        let name = &head[name.0 as usize..name.1 as usize];
        let name = HeaderName::from_bytes(name).map_err(|_| Fault::FieldName)?;
        let value = HeaderValue::from_maybe_shared(slice(*value)).map_err(|_| Fault::Byte)?;
        if framing.read(&name, &value) {
            fields.try_append(name, value).map_err(|_| Fault::TooManyFields)?;
        }
    }
    let (first, second) = (slice(spans.first), slice(spans.second));
    Ok(Raw { first, second, minor_version: spans.minor_version, fields, framing })
}
