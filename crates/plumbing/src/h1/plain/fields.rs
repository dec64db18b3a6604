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
    let own = match lower.len() {
        4 => [(&b"host"[..], Field::Host), (b"date", Field::Date)].into_iter().find(|(known, _)| *known == lower),
        10 if lower == b"keep-alive" => return Field::KeepAlive,
        12 if lower == b"content-type" => return Field::ContentType,
        14 if lower == b"content-length" => return Field::Length,
        _ => None,
    };
    if let Some((_, field)) = own {
        return field;
    }
    match mark(lower) {
        Marks::NONE => Field::Other,
        Marks::CONNECTION => Field::Connection,
        Marks::AGENT => Field::Agent,
        _ => Field::Special,
    }
}

fn starts_with(value: &[u8], start: &[u8]) -> bool {
    value.len() >= start.len() && value[..start.len()].eq_ignore_ascii_case(start)
}

/// Writes a field, its name `Like-This` whatever letters it came in: as
/// [`super::super::encode::field`] does.
pub(super) fn write(name: &str, value: &[u8], out: &mut Vec<u8>) {
    let (name, start) = (name.as_bytes(), out.len());
    out.reserve(name.len() + value.len() + 4);
    out.extend_from_slice(name);
    let written = &mut out[start..];
    written.make_ascii_lowercase();
    // Each letter depends on what came before it, and not on what was written.
    let mut first = true;
    for (byte, came) in written.iter_mut().zip(name) {
        *byte &= !(u8::from(first && byte.is_ascii_lowercase()) << 5);
        first = *came == b'-';
    }
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}
