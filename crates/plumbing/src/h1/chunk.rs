//! The chunked coding, decoded.
//!
//! Stricter than heads are: lines end in CRLF and nothing else. A chunk size
//! that two parsers read differently is how one request becomes two.

use super::limits::{CHUNK_DIGITS_MAX, CHUNK_LINE_BYTES_MAX, TRAILER_BYTES_MAX, TRAILERS_MAX};
use bytes::{Buf, Bytes, BytesMut};
use http::header::{self, HeaderMap, HeaderName, HeaderValue};

/// What the reference says of a size that is none.
const BAD_SIZE: &str = "invalid byte in chunk length";

/// Where in a chunked body the reader stands.
#[derive(Clone, Debug)]
pub(super) enum Chunked {
    /// Before a chunk's size.
    Size,
    /// In a chunk, with so many bytes to come.
    Data(u64),
    /// Behind a chunk's data.
    DataEnd,
    /// Behind the last chunk.
    Trailers,
    /// Behind everything.
    Done,
}

/// What the next bytes are.
#[derive(Debug)]
pub(super) enum Piece {
    Data(Bytes),
    Trailers(HeaderMap),
    End,
    /// More input is needed.
    More,
}

impl Chunked {
    pub(super) fn decode(&mut self, input: &mut BytesMut) -> Result<Piece, &'static str> {
        loop {
            match *self {
                Chunked::Size => {
                    let Some(line) = line_end(input)? else {
                        return if may_be_size(input) { Ok(Piece::More) } else { Err(BAD_SIZE) };
                    };
                    let size = size(&input[..line])?;
                    input.advance(line + 2);
                    *self = if size == 0 { Chunked::Trailers } else { Chunked::Data(size) };
                }
                Chunked::Data(left) => {
                    if input.is_empty() {
                        return Ok(Piece::More);
                    }
                    let here = input.len().min(usize::try_from(left).unwrap_or(usize::MAX));
                    let data = input.split_to(here).freeze();
                    let left = left - here as u64;
                    *self = if left == 0 { Chunked::DataEnd } else { Chunked::Data(left) };
                    self.settle(input);
                    return Ok(Piece::Data(data));
                }
                Chunked::DataEnd => match input.get(..2) {
                    Some(b"\r\n") => {
                        input.advance(2);
                        *self = Chunked::Size;
                    }
                    Some(_) => return Err("malformed chunked encoding"),
                    None if input.first().is_none_or(|byte| *byte == b'\r') => return Ok(Piece::More),
                    None => return Err("malformed chunked encoding"),
                },
                Chunked::Trailers => {
                    let Some(trailers) = trailers(input)? else { return Ok(Piece::More) };
                    *self = Chunked::Done;
                    return Ok(if trailers.is_empty() { Piece::End } else { Piece::Trailers(trailers) });
                }
                Chunked::Done => return Ok(Piece::End),
            }
        }
    }

    /// Goes on to the end if that is here already, so that the last data is
    /// known to be the last.
    fn settle(&mut self, input: &mut BytesMut) {
        if matches!(self, Chunked::DataEnd) && input.starts_with(b"\r\n0\r\n\r\n") {
            input.advance(b"\r\n0\r\n\r\n".len());
            *self = Chunked::Done;
        }
    }
}

/// False if no line that begins so names a size: why wait for the rest?
fn may_be_size(start: &[u8]) -> bool {
    let digits = start.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
    match start.get(digits) {
        None => true,
        Some(byte) => digits > 0 && matches!(byte, b';' | b' ' | b'\t' | b'\r'),
    }
}

/// Length of the line that the input begins with, without its CRLF.
fn line_end(input: &[u8]) -> Result<Option<usize>, &'static str> {
    let window = &input[..input.len().min(CHUNK_LINE_BYTES_MAX)];
    match window.iter().position(|byte| *byte == b'\n') {
        Some(at) if at > 0 && window[at - 1] == b'\r' => Ok(Some(at - 1)),
        Some(_) => Err("chunked line ends with bare LF"),
        None if window.len() == CHUNK_LINE_BYTES_MAX => Err("chunked line too long"),
        None => Ok(None),
    }
}

/// The size that a line names. Extensions are passed over, but they are read:
/// a control character among them could be a line end to somebody else, and so
/// could a CR behind the digits.
fn size(line: &[u8]) -> Result<u64, &'static str> {
    let (digits, extension) = match line.iter().position(|byte| *byte == b';') {
        Some(at) => (&line[..at], &line[at..]),
        None => (trim_blanks_end(line), &[][..]),
    };
    if extension.iter().any(|byte| byte.is_ascii_control() && *byte != b'\t') {
        return Err("invalid byte in chunk extension");
    }
    if digits.is_empty() {
        return Err("empty hex number for chunk length");
    }
    if digits.len() > CHUNK_DIGITS_MAX {
        return Err("http chunk length too large");
    }
    digits.iter().try_fold(0u64, |size, digit| {
        let digit = (*digit as char).to_digit(16).ok_or(BAD_SIZE)?;
        Ok(size << 4 | u64::from(digit))
    })
}

fn trim_blanks_end(line: &[u8]) -> &[u8] {
    let length = line.iter().rposition(|byte| !matches!(byte, b' ' | b'\t')).map_or(0, |last| last + 1);
    &line[..length]
}

/// The trailers, once they are here in full; empty without any.
fn trailers(input: &mut BytesMut) -> Result<Option<HeaderMap>, &'static str> {
    if input.starts_with(b"\r\n") {
        input.advance(2);
        return Ok(Some(HeaderMap::new()));
    }
    let window = &input[..input.len().min(TRAILER_BYTES_MAX)];
    let mut fields = [httparse::EMPTY_HEADER; TRAILERS_MAX];
    let (length, fields) = match httparse::parse_headers(window, &mut fields) {
        Ok(httparse::Status::Complete(found)) => found,
        Ok(httparse::Status::Partial) if window.len() < TRAILER_BYTES_MAX => return Ok(None),
        Ok(httparse::Status::Partial) | Err(httparse::Error::TooManyHeaders) => return Err("trailers too large"),
        Err(_) => return Err("invalid trailer"),
    };
    if has_bare_lf(&window[..length]) {
        return Err("invalid trailer");
    }
    let mut trailers = HeaderMap::with_capacity(fields.len());
    for field in fields {
        let name = HeaderName::from_bytes(field.name.as_bytes()).map_err(|_| "invalid trailer")?;
        let value = HeaderValue::from_bytes(field.value).map_err(|_| "invalid trailer")?;
        if !is_forbidden(&name) {
            trailers.try_append(name, value).map_err(|_| "trailers too large")?;
        }
    }
    input.advance(length);
    Ok(Some(trailers))
}

fn has_bare_lf(bytes: &[u8]) -> bool {
    bytes.iter().enumerate().any(|(at, byte)| *byte == b'\n' && (at == 0 || bytes[at - 1] != b'\r'))
}

/// Fields that say how a message is framed, routed or allowed: whoever acts on
/// them behind the body acts too late. They are dropped.
fn is_forbidden(name: &HeaderName) -> bool {
    const FORBIDDEN: [HeaderName; 11] = [
        header::TRANSFER_ENCODING,
        header::CONTENT_LENGTH,
        header::HOST,
        header::CONNECTION,
        header::TRAILER,
        header::TE,
        header::UPGRADE,
        header::EXPECT,
        header::AUTHORIZATION,
        header::PROXY_AUTHORIZATION,
        header::CONTENT_ENCODING,
    ];
    FORBIDDEN.contains(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Decodes input that comes in pieces of `step` bytes.
    fn decode(input: &[u8], step: usize) -> Result<(Vec<u8>, HeaderMap, usize), String> {
        let (mut chunked, mut buffer) = (Chunked::Size, BytesMut::new());
        let (mut data, mut trailers, mut fed) = (Vec::new(), HeaderMap::new(), 0);
        loop {
            match chunked.decode(&mut buffer)? {
                Piece::Data(bytes) => data.extend_from_slice(&bytes),
                Piece::Trailers(fields) => trailers.extend(fields),
                Piece::End => return Ok((data, trailers, buffer.len() + input.len() - fed)),
                Piece::More if fed == input.len() => return Err("more".to_owned()),
                Piece::More => {
                    let next = &input[fed..(fed + step).min(input.len())];
                    buffer.extend_from_slice(next);
                    fed += next.len();
                }
            }
        }
    }

    #[test]
    fn what_is_valid_reads_the_same_however_it_is_cut() {
        let long = format!("5;{}\r\nhello\r\n0\r\n\r\n", "x".repeat(4000));
        for (input, data, trailers, left) in [
            (&b"0\r\n\r\n"[..], &b""[..], 0, 0),
            (b"5\r\nhello\r\n0\r\n\r\nGET", b"hello", 0, 3),
            (b"5\r\nhello\r\n6;ext=1\r\n world\r\n0\r\nX-T: tv\r\n\r\n", b"hello world", 1, 0),
            (b"005 \r\nhello\r\n0;a=\"b\"\r\n\r\n", b"hello", 0, 0),
            (b"A\r\n0123456789\r\n0\r\nA: 1\r\nB: 2\r\n\r\n", b"0123456789", 2, 0),
            (b"1\r\na\r\n0\r\nContent-Length: 7\r\nHost: x\r\nX: 1\r\n\r\n", b"a", 1, 0),
            (long.as_bytes(), b"hello", 0, 0),
        ] {
            for step in 1..=input.len() {
                let (got, fields, rest) = decode(input, step).unwrap();
                assert_eq!((&got[..], fields.len(), rest), (data, trailers, left), "step {step}");
            }
        }
    }

    #[test]
    fn what_is_invalid_is_refused_however_it_is_cut() {
        let long = format!("5;{}\r\nhello\r\n0\r\n\r\n", "x".repeat(5000));
        let many = format!("0\r\n{}\r\n", "A: 1\r\n".repeat(65));
        let large = format!("0\r\nA: {}\r\n\r\n", "1".repeat(17_000));
        for input in [
            &b"zz\r\n"[..],
            b"\r\n",
            b"-1\r\n",
            b"+1\r\n",
            b"0x1\r\n",
            b"1 2\r\n",
            b" 1\r\na\r\n",
            b"5 ;x\r\nhello\r\n",
            b"10000000000000000\r\n",
            b"00000000000000005\r\nhello\r\n",
            b"5\r\r\nhello\r\n0\r\n\r\n",
            b"5\x0c\r\nhello\r\n0\r\n\r\n",
            b"5\nhello\r\n0\r\n\r\n",
            b"5;a\nhello\r\n0\r\n\r\n",
            b"5;a\rb\r\nhello\r\n0\r\n\r\n",
            b"5;a\0b\r\nhello\r\n0\r\n\r\n",
            b"5\r\nhelloX\r\n0\r\n\r\n",
            b"5\r\nhello\n0\r\n\r\n",
            b"5\r\nhello0\r\n\r\n",
            b"0\r\nA: 1\nB: 2\r\n\r\n",
            b"0\r\nA : 1\r\n\r\n",
            b"0\r\n folded\r\n\r\n",
            b"0\r\nA: \0\r\n\r\n",
            b"0\r\nA\r\n\r\n",
            long.as_bytes(),
            many.as_bytes(),
            large.as_bytes(),
        ] {
            let steps = if input.len() > 1000 { 1000..=1001 } else { 1..=input.len() };
            for step in steps {
                let outcome = decode(input, step);
                assert!(
                    matches!(&outcome, Err(why) if why != "more"),
                    "{} step {step}: {outcome:?}",
                    input.escape_ascii()
                );
            }
        }
    }

    #[test]
    fn the_last_data_is_known_to_be_the_last_when_the_end_is_here() {
        let (mut chunked, mut buffer) = (Chunked::Size, BytesMut::from(&b"2\r\nok\r\n0\r\n\r\n"[..]));
        assert!(matches!(chunked.decode(&mut buffer), Ok(Piece::Data(_))));
        assert!(matches!(chunked, Chunked::Done));
    }
}
