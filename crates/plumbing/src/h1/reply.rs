//! An answer's head, checked: tolerant where the reference is, and never so
//! that the next answer could be read as part of this one.

use super::answer::is_bodiless;
use super::chunk::Chunked;
use super::decode::Decoder;
use super::fields::Coding;
use super::lines::{Scan, empty_lines};
use super::parse::{self, Fault, Kind};
use bytes::{Buf, BytesMut};
use http::header::{CONTENT_LENGTH, HeaderMap};
use http::{Method, StatusCode};

/// An answer without its body.
#[derive(Debug)]
pub(super) struct Head {
    pub(super) status: StatusCode,
    pub(super) fields: HeaderMap,
    pub(super) decoder: Decoder,
    pub(super) keep_alive: bool,
    /// The connection leaves HTTP behind.
    pub(super) upgrade: bool,
}

impl Head {
    pub(super) fn is_interim(&self) -> bool {
        self.status.is_informational() && self.status != StatusCode::SWITCHING_PROTOCOLS
    }
}

/// Takes an answer's head off the front of `input`, once it is there in full.
/// `method`: of the request that it answers; `most`: bytes that it may have.
pub(super) fn head(
    input: &mut BytesMut,
    scan: &mut Scan,
    method: &Method,
    most: usize,
) -> Result<Option<Head>, &'static str> {
    if !scan.unfinished {
        input.advance(empty_lines(input));
        // Half an empty line may be all that has come.
        if matches!(&input[..], b"" | b"\r") {
            return Ok(None);
        }
    }
    let before = input.len();
    let raw = match parse::head(Kind::Answer, input, scan) {
        Ok(Some(raw)) => raw,
        Ok(None) if before >= most => return Err("the head is too large"),
        Ok(None) => return Ok(None),
        Err(Fault::Byte) => return Err("malformed HTTP response"),
        Err(Fault::FieldName) => return Err("invalid header name"),
        Err(Fault::Version) => return Err("malformed HTTP version"),
        Err(Fault::TooManyFields) => return Err("too many header fields"),
    };
    let status = StatusCode::from_bytes(&raw.first).map_err(|_| "malformed HTTP status code")?;
    let (mut fields, framing, modern) = (raw.fields, raw.framing, raw.minor_version == 1);
    let connect = *method == Method::CONNECT && status.is_success();
    let upgrade = status == StatusCode::SWITCHING_PROTOCOLS || connect;
    let mut keep_alive = if modern { !framing.close } else { framing.keep_alive && !framing.close };
    let decoder = if upgrade || *method == Method::HEAD || is_bodiless(status) {
        Decoder::EMPTY
    } else {
        match (framing.coding, framing.length) {
            // Chunks win over a length: the length is not passed on.
            (Some(Coding::Chunked), _) if modern => {
                fields.remove(CONTENT_LENGTH);
                Decoder::Chunked(Chunked::Size)
            }
            (Some(Coding::Other), _) if modern => return Err("unsupported transfer encoding"),
            _ if framing.bad_length => return Err("bad Content-Length"),
            (_, Some(length)) => Decoder::Length(length),
            _ => Decoder::UntilClose,
        }
    };
    // An answer with both is whole, but who sends such is not trusted further.
    keep_alive &= !upgrade && !matches!(decoder, Decoder::UntilClose);
    keep_alive &= !(framing.coding.is_some() && (framing.length.is_some() || framing.bad_length));
    Ok(Some(Head { status, fields, decoder, keep_alive, upgrade }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(input: &str, method: Method) -> Result<(Head, usize), &'static str> {
        let mut whole: Option<Result<(Head, usize), &str>> = None;
        for step in [input.len(), 1, 2, 7] {
            let (mut buffer, mut scan) = (BytesMut::new(), Scan::default());
            let mut got = Err("more");
            for piece in input.as_bytes().chunks(step) {
                buffer.extend_from_slice(piece);
                match head(&mut buffer, &mut scan, &method, 1 << 20) {
                    Ok(None) => continue,
                    Ok(Some(head)) => got = Ok((head, 0)),
                    Err(what) => got = Err(what),
                }
                break;
            }
            if let (Ok(got), Some(Ok(whole))) = (&got, &whole) {
                assert_eq!((got.0.status, &got.0.fields), (whole.0.status, &whole.0.fields));
            }
            whole = whole.or(Some(got));
        }
        whole.unwrap_or(Err("nothing"))
    }

    #[test]
    fn answers_are_framed_as_their_heads_say() {
        for (input, method, framing) in [
            ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", Method::GET, "Length(5) true"),
            ("HTTP/1.1 200 OK\nContent-Length: 5\n\n", Method::GET, "Length(5) true"),
            ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\n", Method::GET, "Length(5) true"),
            ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\n", Method::GET, "Length(5) false"),
            ("HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\n", Method::GET, "Length(5) false"),
            ("HTTP/1.0 200 OK\r\nContent-Length: 5\r\nConnection: keep-alive\r\n\r\n", Method::GET, "Length(5) true"),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n", Method::GET, "Chunked(Size) true"),
            (
                "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n",
                Method::GET,
                "Chunked(Size) false",
            ),
            ("HTTP/1.1 200 OK\r\n\r\n", Method::GET, "UntilClose false"),
            ("HTTP/1.1 200\r\n\r\n", Method::GET, "UntilClose false"),
            ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", Method::HEAD, "Length(0) true"),
            ("HTTP/1.1 204 No Content\r\n\r\n", Method::GET, "Length(0) true"),
            ("HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n", Method::GET, "Length(0) true"),
            ("HTTP/1.1 599 Odd\r\nContent-Length: 0\r\n\r\n", Method::GET, "Length(0) true"),
            ("HTTP/1.1 200 OK\r\n\r\n", Method::CONNECT, "Length(0) false"),
            ("HTTP/1.1 101 Switching\r\nUpgrade: x\r\n\r\n", Method::GET, "Length(0) false"),
            ("HTTP/1.1 200 OK\r\nX-A: 1\r\n 2\r\nContent-Length: 0\r\n\r\n", Method::GET, "Length(0) true"),
        ] {
            let (head, _) = parse(input, method).unwrap_or_else(|what| panic!("{input:?}: {what}"));
            assert_eq!(format!("{:?} {}", head.decoder, head.keep_alive), framing, "{input:?}");
        }
    }

    #[test]
    fn what_is_no_answer_is_refused() {
        for input in [
            "garbage\r\n\r\n",
            "HTTP/2.0 200 OK\r\n\r\n",
            "HTTP/1.1 20 OK\r\n\r\n",
            "HTTP/1.1 2000 OK\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: +5\r\n\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
            "HTTP/1.1 200 OK\r\nX-A : 1\r\n\r\n",
            "HTTP/1.1 200 OK\r\nX-A: a\0b\r\n\r\n",
            "HTTP/1.1 200 OK\r\nX-A: a\rb\r\n\r\n",
            "HTTP/1.1 200 OK\r\n folded: first\r\n\r\n",
        ] {
            assert!(matches!(parse(input, Method::GET), Err(what) if what != "more"), "{input:?}");
        }
    }
}
