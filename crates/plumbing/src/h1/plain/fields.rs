//! Fields as bytes: what each means, and how it is written.

use crate::marks::{Marks, mark};

/// Longer names mean nothing to a proxy, but for those of ours.
const NAME_BYTES_MAX: usize = 32;

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
    /// Something that is not for plain messages.
    Special,
}

/// Looks at a name once.
pub(super) fn field(name: &str) -> Field {
    let name = name.as_bytes();
    if name.len() > NAME_BYTES_MAX {
        return if starts_with(name, b"x-zeroscale-") { Field::Special } else { Field::Other };
    }
    let mut lower = [0; NAME_BYTES_MAX];
    let lower = &mut lower[..name.len()];
    lower.copy_from_slice(name);
    lower.make_ascii_lowercase();
    let known = match &*lower {
        b"host" => Field::Host,
        b"date" => Field::Date,
        b"keep-alive" => Field::KeepAlive,
        b"content-length" => Field::Length,
        b"content-type" => Field::ContentType,
        _ => Field::Other,
    };
    if known != Field::Other {
        return known;
    }
    let mark = std::str::from_utf8(lower).map_or(Marks::HOP, mark);
    match mark {
        Marks::NONE => Field::Other,
        Marks::CONNECTION => Field::Connection,
        Marks::AGENT => Field::Agent,
        _ => Field::Special,
    }
}

pub(super) fn starts_with(value: &[u8], start: &[u8]) -> bool {
    value.len() >= start.len() && value[..start.len()].eq_ignore_ascii_case(start)
}

/// Writes a field, its name `Like-This` whatever letters it came in: as
/// [`super::super::encode::field`] does.
pub(super) fn write(name: &str, value: &[u8], out: &mut Vec<u8>) {
    out.reserve(name.len() + value.len() + 4);
    let mut first = true;
    out.extend(name.bytes().map(|byte| {
        let written = if first { byte.to_ascii_uppercase() } else { byte.to_ascii_lowercase() };
        first = byte == b'-';
        written
    }));
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}
