//! A body on its way out, and the fields of a head.

use super::outbox::Outbox;
use bytes::Bytes;
use http::header::{HeaderMap, HeaderName};

/// How a body is framed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Encoder {
    /// There is none; what the body yields is dropped.
    Nothing,
    /// So many bytes to come.
    Length(u64),
    Chunked,
    UntilClose,
}

/// A body that is not as long as its head says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the body is not as long as its head says")]
pub(super) struct WrongLength;

impl Encoder {
    /// True when nothing can follow, whatever the body still yields.
    pub(super) fn is_full(self) -> bool {
        matches!(self, Encoder::Nothing | Encoder::Length(0))
    }

    pub(super) fn data(&mut self, bytes: Bytes, out: &mut Outbox) -> Result<(), WrongLength> {
        match self {
            Encoder::Nothing => {}
            Encoder::Length(left) => {
                *left = left.checked_sub(bytes.len() as u64).ok_or(WrongLength)?;
                out.data(bytes);
            }
            Encoder::Chunked if bytes.is_empty() => {}
            Encoder::Chunked => {
                size_line(bytes.len(), out);
                out.data(bytes);
                out.flat(b"\r\n");
            }
            Encoder::UntilClose => out.data(bytes),
        }
        Ok(())
    }

    pub(super) fn end(self, trailers: Option<&HeaderMap>, out: &mut Outbox) -> Result<(), WrongLength> {
        match self {
            Encoder::Length(left) if left > 0 => return Err(WrongLength),
            Encoder::Chunked => match trailers {
                None => out.flat(b"0\r\n\r\n"),
                Some(trailers) => {
                    let mut lines = b"0\r\n".to_vec();
                    fields(trailers, |_| true, &mut lines);
                    lines.extend_from_slice(b"\r\n");
                    out.flat(&lines);
                }
            },
            _ => {}
        }
        Ok(())
    }
}

fn size_line(size: usize, out: &mut Outbox) {
    let mut line = [0; 18];
    let (mut at, mut left) = (16, size);
    loop {
        at -= 1;
        line[at] = b"0123456789abcdef"[left & 15];
        left >>= 4;
        if left == 0 {
            break;
        }
    }
    line[16..].copy_from_slice(b"\r\n");
    out.flat(&line[at..]);
}

/// Writes fields, those of one name in their order.
pub(super) fn fields(map: &HeaderMap, keep: impl Fn(&HeaderName) -> bool, out: &mut Vec<u8>) {
    for (name, value) in map {
        if keep(name) {
            field(name.as_str(), value.as_bytes(), out);
        }
    }
}

/// Writes one field; its name as the reference writes it, `Like-This`: there
/// are apps that compare letters.
pub(super) fn field(name: &str, value: &[u8], out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(name.as_bytes());
    let mut first = true;
    for byte in &mut out[start..] {
        if first {
            byte.make_ascii_uppercase();
        }
        first = *byte == b'-';
    }
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}

/// Writes a number.
pub(super) fn number(value: u64, out: &mut Vec<u8>) {
    let (mut digits, mut at, mut left) = ([0; 20], 20, value);
    loop {
        at -= 1;
        digits[at] = b'0' + (left % 10) as u8;
        left /= 10;
        if left == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_names_are_written_as_they_should() {
        let mut out = Vec::new();
        for value in [0, 7, 10, 4096, u64::MAX] {
            number(value, &mut out);
            out.push(b' ');
        }
        field("x-lower-case", b"v", &mut out);
        field("etag", b"", &mut out);
        assert_eq!(out, format!("0 7 10 4096 {} X-Lower-Case: v\r\nEtag: \r\n", u64::MAX).as_bytes());
    }
}
