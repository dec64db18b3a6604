//! How sloppy servers read a connection. Two kinds: one believes
//! `Content-Length` first, the other `Transfer-Encoding`. Both take what
//! standards forbid: bare line feeds, blanks before colons, folded lines, signs
//! and rubbish around numbers.

/// Which of the two a reading believes when both are there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum First {
    /// `Content-Length`.
    Length,
    /// `Transfer-Encoding`.
    Chunks,
}

/// A request, as it was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// Its first line.
    pub line: String,
    /// Its fields, names in lower case.
    pub fields: Vec<(String, String)>,
    /// Its body.
    pub body: Vec<u8>,
    /// Its end was there.
    pub whole: bool,
    /// Its head, byte by byte.
    pub head: Vec<u8>,
}

/// All requests that `bytes` hold.
pub fn requests(bytes: &[u8], first: First) -> Vec<Request> {
    let mut rest = Lines { bytes, at: 0 };
    let mut all = Vec::new();
    while let Some(request) = rest.request(first) {
        all.push(request);
    }
    all
}

struct Lines<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Lines<'_> {
    /// Up to a line feed, with or without a carriage return before it.
    fn line(&mut self) -> Option<String> {
        let rest = &self.bytes[self.at..];
        let end = rest.iter().position(|byte| *byte == b'\n')?;
        self.at += end + 1;
        let line = rest[..end].strip_suffix(b"\r").unwrap_or(&rest[..end]);
        Some(line.iter().map(|byte| char::from(*byte)).collect())
    }

    fn request(&mut self, first: First) -> Option<Request> {
        let began = self.at;
        let line = loop {
            match self.line() {
                Some(line) if line.trim().is_empty() => {}
                Some(line) => break line,
                // What is left is no line; a beginning of something still counts.
                None => {
                    let rest = &self.bytes[self.at..];
                    self.at = self.bytes.len();
                    let line = String::from_utf8_lossy(rest).into_owned();
                    let empty = Request { line, head: rest.to_vec(), ..Request::default() };
                    return (!rest.is_empty()).then_some(empty);
                }
            }
        };
        let mut request = Request { line, ..Request::default() };
        loop {
            let Some(line) = self.line() else {
                self.at = self.bytes.len();
                request.head = self.bytes[began..].to_vec();
                return Some(request);
            };
            if line.is_empty() {
                break;
            }
            let folded = line.starts_with([' ', '\t']);
            if let (true, Some((_, value))) = (folded, request.fields.last_mut()) {
                value.push(' ');
                value.push_str(line.trim());
                continue;
            }
            let (name, value) = line.split_once(':').unwrap_or((&line, ""));
            request.fields.push((name.trim().to_ascii_lowercase(), value.trim().to_owned()));
        }
        request.head = self.bytes[began..self.at].to_vec();
        let get = |wanted: &str| request.fields.iter().find(|(name, _)| name == wanted).map(|(_, value)| value);
        let length = get("content-length").map(|value| number(value, 10));
        let chunks = get("transfer-encoding").is_some_and(|value| value.to_ascii_lowercase().contains("chunked"));
        let framed = match (first, length, chunks) {
            (First::Length, Some(length), _) | (First::Chunks, Some(length), false) => self.sized(length),
            (_, _, true) => self.chunked(),
            (_, None, false) => (Vec::new(), true),
        };
        (request.body, request.whole) = framed;
        Some(request)
    }

    fn sized(&mut self, length: usize) -> (Vec<u8>, bool) {
        let rest = &self.bytes[self.at..];
        let body = rest[..length.min(rest.len())].to_vec();
        self.at += body.len();
        let whole = body.len() == length;
        (body, whole)
    }

    fn chunked(&mut self) -> (Vec<u8>, bool) {
        let mut body = Vec::new();
        while let Some(line) = self.line() {
            let size = number(&line, 16);
            if size == 0 {
                // Trailers, up to the empty line.
                while let Some(line) = self.line() {
                    if line.is_empty() {
                        return (body, true);
                    }
                }
                break;
            }
            let (data, whole) = self.sized(size);
            body.extend(data);
            if !whole || self.line().is_none() {
                break;
            }
        }
        self.at = self.bytes.len();
        (body, false)
    }
}

/// The digits at the beginning, after blanks and a sign.
fn number(text: &str, radix: u32) -> usize {
    let text = text.trim_start().trim_start_matches('+');
    let text = if radix == 16 { text.strip_prefix("0x").unwrap_or(text) } else { text };
    let digits = text.find(|c: char| !c.is_digit(radix)).map_or(text, |end| &text[..end]);
    usize::from_str_radix(digits, radix).unwrap_or(if digits.is_empty() { 0 } else { usize::MAX })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(bytes: &str, first: First) -> Vec<String> {
        requests(bytes.as_bytes(), first).into_iter().map(|request| request.line).collect()
    }

    #[test]
    fn honest_requests_are_read_alike() {
        let two = "POST /1 HTTP/1.1\r\ncontent-length: 5\r\n\r\nhelloGET /2 HTTP/1.1\r\n\r\n";
        let chunks =
            "POST /1 HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n5;x\r\nhello\r\n0\r\na: b\r\n\r\nGET /2 x\r\n\r\n";
        for first in [First::Length, First::Chunks] {
            assert_eq!(lines(two, first).len(), 2);
            assert_eq!(lines(chunks, first), ["POST /1 HTTP/1.1", "GET /2 x"]);
        }
    }

    #[test]
    fn the_classics_are_read_differently() {
        let both = "POST /1 HTTP/1.1\r\ncontent-length: 29\r\ntransfer-encoding: xchunked\r\n\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\n\r\n";
        assert_eq!(lines(both, First::Length).len(), 1);
        assert_eq!(lines(both, First::Chunks)[1], "GET /smuggled HTTP/1.1");
        assert_ne!(requests(both.as_bytes(), First::Length), requests(both.as_bytes(), First::Chunks));
        let bare = "POST /1 HTTP/1.1\r\nx: y\ncontent-length : +3\n\nabcGET /2 HTTP/1.1\n\n";
        assert_eq!(lines(bare, First::Chunks), ["POST /1 HTTP/1.1", "GET /2 HTTP/1.1"]);
    }

    #[test]
    fn what_is_left_over_counts_as_a_request() {
        assert_eq!(lines("GET /1 HTTP/1.1\r\n\r\nGET /sm", First::Length), ["GET /1 HTTP/1.1", "GET /sm"]);
        let cut = requests(b"POST /1 HTTP/1.1\r\ncontent-length: 9\r\n\r\nabc", First::Length);
        assert!(cut.len() == 1 && !cut[0].whole && cut[0].body == b"abc");
    }
}
