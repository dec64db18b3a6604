//! Requests in: just enough of HTTP/1.1, and no more.

use std::io::{self, BufRead, Read};

/// Longest head that is read.
const HEAD_BYTES_MAX: u64 = 64 << 10;

/// The head of a request.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) path: String,
    /// `x-id`, by which tests know their requests; `-` without.
    pub(super) id: String,
    pub(super) length: Option<u64>,
    pub(super) chunked: bool,
    /// It waits for a `100 Continue`.
    pub(super) expects: bool,
    /// The connection ends after the answer.
    pub(super) close: bool,
}

impl Head {
    /// The next one; `None` at the connection's end.
    pub(super) fn read(stream: &mut impl BufRead) -> io::Result<Option<Head>> {
        let mut head = Head { id: "-".to_owned(), ..Head::default() };
        let mut lines = stream.take(HEAD_BYTES_MAX);
        let mut line = String::new();
        if lines.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        head.path = line.split(' ').nth(1).unwrap_or("/").to_owned();
        loop {
            line.clear();
            if lines.read_line(&mut line)? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let Some((name, value)) = line.trim_end().split_once(':') else { return Ok(Some(head)) };
            head.note(&name.to_ascii_lowercase(), value.trim());
        }
    }

    fn note(&mut self, name: &str, value: &str) {
        let says = |word: &str| value.eq_ignore_ascii_case(word);
        match name {
            "x-id" => value.clone_into(&mut self.id),
            "content-length" => self.length = value.parse().ok(),
            "transfer-encoding" => self.chunked |= says("chunked"),
            "expect" => self.expects |= says("100-continue"),
            "connection" => self.close |= says("close"),
            _ => {}
        }
    }

    /// Reads the body to its end; how long it was.
    pub(super) fn drain(&self, stream: &mut impl BufRead) -> io::Result<u64> {
        if !self.chunked {
            return skip(stream, self.length.unwrap_or(0));
        }
        let mut all = 0;
        loop {
            let mut line = String::new();
            stream.read_line(&mut line)?;
            let size = u64::from_str_radix(line.trim_end(), 16).map_err(|_| io::ErrorKind::InvalidData)?;
            all += skip(stream, size)?;
            skip(stream, 2)?;
            if size == 0 {
                return Ok(all);
            }
        }
    }
}

fn skip(stream: &mut impl BufRead, length: u64) -> io::Result<u64> {
    match io::copy(&mut stream.take(length), &mut io::sink())? {
        read if read == length => Ok(read),
        _ => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_follow_each_other_on_a_connection() {
        let mut stream: &[u8] = b"POST /a HTTP/1.1\r\nX-Id: 7\r\nContent-Length: 3\r\n\r\nabc\
            PUT /b HTTP/1.1\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n2\r\nhi\r\n0\r\n\r\n";
        let first = Head::read(&mut stream).unwrap().unwrap();
        assert_eq!((first.path.as_str(), first.id.as_str(), first.close), ("/a", "7", false));
        assert_eq!(first.drain(&mut stream).unwrap(), 3);
        let second = Head::read(&mut stream).unwrap().unwrap();
        assert_eq!((second.path.as_str(), second.id.as_str(), second.close), ("/b", "-", true));
        assert_eq!(second.drain(&mut stream).unwrap(), 2);
        assert_eq!(Head::read(&mut stream).unwrap(), None);
    }

    #[test]
    fn a_body_that_breaks_off_is_an_error() {
        let mut stream: &[u8] = b"abc";
        let head = Head { length: Some(4), ..Head::default() };
        assert!(head.drain(&mut stream).is_err());
    }
}
