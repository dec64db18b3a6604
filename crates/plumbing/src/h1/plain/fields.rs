//! Fields as bytes: what each means, and how it is written.

use crate::headers::{OFFER, ORIGINAL_HOST, PROXY_REQUEST, SERVING_NAMESPACE, SERVING_REVISION};
use crate::marks::{Marks, is, mark};

/// Content types of gRPC begin with this: such messages are not plain.
pub(super) const GRPC: &[u8] = b"application/grpc";

/// What a field is to a proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Field {
    /// Nothing: it is passed on.
    Other,
    Host,
    Length,
    Connection,
    Agent,
    ContentType,
    Date,
    KeepAlive,
    /// Where a request came from, as proxies before us say it.
    Origin,
    ProxyRequest,
    OriginalHost,
    Offer,
    /// What an ingress says of the revision: not for apps.
    Route,
    /// Something that is not for plain messages.
    Special,
}

/// Looks at a name once.
pub(super) fn field(name: &[u8]) -> Field {
    let is = |known: &[u8]| is(known, name);
    match name.len() {
        4 if is(b"host") => Field::Host,
        4 if is(b"date") => Field::Date,
        10 if is(b"keep-alive") => Field::KeepAlive,
        12 if is(b"content-type") => Field::ContentType,
        14 if is(b"content-length") => Field::Length,
        _ => match mark(name) {
            Marks::NONE => Field::Other,
            Marks::CONNECTION => Field::Connection,
            Marks::AGENT => Field::Agent,
            Marks::ORIGIN => Field::Origin,
            _ => internal(name),
        },
    }
}

fn internal(name: &[u8]) -> Field {
    let known = [
        (PROXY_REQUEST, Field::ProxyRequest),
        (ORIGINAL_HOST, Field::OriginalHost),
        (OFFER, Field::Offer),
        (SERVING_REVISION, Field::Route),
        (SERVING_NAMESPACE, Field::Route),
    ];
    let found = known.into_iter().find(|(known, _)| known.as_str().as_bytes().eq_ignore_ascii_case(name));
    found.map_or(Field::Special, |(_, field)| field)
}

/// Each byte as it is written at the beginning of a word, and within one.
const LETTERS: [[u8; 256]; 2] = {
    let mut letters = [[0; 256]; 2];
    let mut byte = 0;
    while byte < 256 {
        // Below 256 by the loop.
        letters[0][byte] = (byte as u8).to_ascii_lowercase();
        letters[1][byte] = (byte as u8).to_ascii_uppercase();
        byte += 1;
    }
    letters
};

/// Writes a field, its name `Like-This` whatever letters it came in: as
/// [`super::super::encode::field`] does.
pub(super) fn write(name: &[u8], value: &[u8], out: &mut Vec<u8>) {
    out.reserve(name.len() + value.len() + 4);
    let mut first = true;
    out.extend(name.iter().map(|&byte| {
        let written = LETTERS[usize::from(first)][usize::from(byte)];
        first = byte == b'-';
        written
    }));
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}
