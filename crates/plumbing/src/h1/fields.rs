//! The fields that frame a message and rule its connection, as they are read
//! one by one. The same for requests and answers; what follows from them is not.

use http::header::{self, HeaderName, HeaderValue};

/// What a head says of its framing and its connection.
#[derive(Debug, Default)]
pub(super) struct Framing {
    pub(super) length: Option<u64>,
    pub(super) coding: Option<Coding>,
    /// Content-Length fields that are no number, or differ.
    pub(super) bad_length: bool,
    pub(super) close: bool,
    pub(super) keep_alive: bool,
    pub(super) upgrade: bool,
    pub(super) has_upgrade: bool,
    pub(super) hosts: u32,
    pub(super) bad_host: bool,
    pub(super) expect: Option<Expect>,
}

/// A `Transfer-Encoding`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Coding {
    Chunked,
    /// Anything else, and anything said twice.
    Other,
}

/// An `Expect`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Expect {
    Continue,
    Other,
}

impl Framing {
    /// Reads a field. False: it repeats what is there and can be left out.
    pub(super) fn read(&mut self, name: &HeaderName, value: &HeaderValue) -> bool {
        if *name == header::CONTENT_LENGTH {
            return self.content_length(value.as_bytes());
        }
        if *name == header::TRANSFER_ENCODING {
            let chunked = self.coding.is_none() && value.as_bytes().eq_ignore_ascii_case(b"chunked");
            self.coding = Some(if chunked { Coding::Chunked } else { Coding::Other });
        } else if *name == header::CONNECTION {
            self.close |= has_token(value, b"close");
            self.keep_alive |= has_token(value, b"keep-alive");
            self.upgrade |= has_token(value, b"upgrade");
        } else if *name == header::HOST {
            self.hosts += 1;
            self.bad_host |= !value.as_bytes().iter().all(|byte| is_host_byte(*byte));
        } else if *name == header::UPGRADE {
            self.has_upgrade = true;
        } else if *name == header::EXPECT && !value.is_empty() {
            let asks = has_token(value, b"100-continue") && self.expect != Some(Expect::Other);
            self.expect = Some(if asks { Expect::Continue } else { Expect::Other });
        }
        true
    }

    fn content_length(&mut self, value: &[u8]) -> bool {
        let repeated = self.length.is_some();
        match length(value) {
            Some(length) if self.length.is_none_or(|before| before == length) => self.length = Some(length),
            _ => self.bad_length = true,
        }
        !repeated
    }
}

/// A length: digits and nothing else, and it fits 63 bits.
pub(super) fn length(value: &[u8]) -> Option<u64> {
    if value.is_empty() {
        return None;
    }
    let length = value.iter().try_fold(0_i64, |length, byte| {
        let digit = byte.is_ascii_digit().then(|| i64::from(byte - b'0'))?;
        length.checked_mul(10)?.checked_add(digit)
    })?;
    u64::try_from(length).ok()
}

/// True if a list of tokens holds `token`.
pub(super) fn has_token(value: &HeaderValue, token: &[u8]) -> bool {
    value.as_bytes().split(|byte| *byte == b',').any(|part| part.trim_ascii().eq_ignore_ascii_case(token))
}

/// Bytes that the reference lets stand in a Host field.
const HOST_BYTES: [bool; 256] = table(b"!$%&'()*+,-.:;=[]_~");

/// True for those.
pub(super) fn is_host_byte(byte: u8) -> bool {
    HOST_BYTES[usize::from(byte)]
}

/// A table of letters, digits and these.
pub(super) const fn table(others: &[u8]) -> [bool; 256] {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        // Below 256 by the loop.
        table[byte] = (byte as u8).is_ascii_alphanumeric();
        byte += 1;
    }
    let mut at = 0;
    while at < others.len() {
        table[others[at] as usize] = true;
        at += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_is_digits_and_nothing_else() {
        for (value, length_of) in [("0", Some(0)), ("007", Some(7)), ("9223372036854775807", Some(i64::MAX as u64))] {
            assert_eq!(length(value.as_bytes()), length_of);
        }
        for value in ["", "+2", "-2", "2 ", "2,2", "0x2", "9223372036854775808", "99999999999999999999", "2\u{663}"] {
            assert_eq!(length(value.as_bytes()), None, "{value:?}");
        }
    }

    #[test]
    fn tokens_are_found_whatever_their_case_and_place() {
        let value = HeaderValue::from_static("foo, Keep-Alive ,closed");
        assert!(has_token(&value, b"keep-alive") && !has_token(&value, b"close") && !has_token(&value, b"alive"));
    }
}
