//! HTTP/1 on the wire, read without judgement: the tests must see what was
//! sent, not what a library makes of it.

use super::latin;

/// Names and values, in the order in which they came.
pub type Fields = Vec<(String, String)>;

/// The head of a request or of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// Its first line.
    pub start: String,
    /// Its header fields.
    pub fields: Fields,
    /// Its length, with the empty line.
    pub len: usize,
}

/// How the end of a body is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// There is none.
    None,
    /// By its length.
    Length(usize),
    /// By its last chunk.
    Chunked,
    /// By the end of the connection.
    Close,
}

/// A body, or what is there of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Body {
    /// Its content.
    pub data: Vec<u8>,
    /// What followed the last chunk.
    pub trailers: Fields,
    /// How long it is on the wire.
    pub len: usize,
    /// It has its end.
    pub whole: bool,
    /// It can have none: a chunk size makes no sense.
    pub broken: bool,
}

impl Head {
    /// The head that `bytes` begin with, once it is whole.
    pub fn read(bytes: &[u8]) -> Option<Head> {
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")?;
        let mut lines = bytes[..end].split(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line));
        let start = latin::text(lines.next().unwrap_or_default());
        Some(Head { start, fields: lines.map(field).collect(), len: end + 4 })
    }

    /// The first value of a field.
    pub fn get(&self, name: &str) -> Option<&str> {
        get(&self.fields, name)
    }

    /// The status, of an answer.
    pub fn status(&self) -> Option<u16> {
        self.start.strip_prefix("HTTP/")?.split(' ').nth(1)?.parse().ok()
    }

    /// How the body of a request ends.
    pub fn request_framing(&self) -> Framing {
        self.stated_framing().unwrap_or(Framing::None)
    }

    /// How the body of an answer ends; `to_head`: it answers HEAD.
    pub fn answer_framing(&self, to_head: bool) -> Framing {
        match self.status() {
            _ if to_head => Framing::None,
            Some(100..=199 | 204 | 304) => Framing::None,
            _ => self.stated_framing().unwrap_or(Framing::Close),
        }
    }

    fn stated_framing(&self) -> Option<Framing> {
        if self.get("transfer-encoding").is_some_and(|value| value.to_ascii_lowercase().ends_with("chunked")) {
            return Some(Framing::Chunked);
        }
        self.get("content-length")?.parse().ok().map(Framing::Length)
    }
}

impl Framing {
    /// What rows call it.
    pub fn name(self) -> &'static str {
        match self {
            Framing::None => "none",
            Framing::Length(_) => "length",
            Framing::Chunked => "chunked",
            Framing::Close => "close",
        }
    }
}

impl Body {
    /// The body that `bytes` begin with; `ended`: nothing will follow them.
    pub fn read(bytes: &[u8], framing: Framing, ended: bool) -> Body {
        match framing {
            Framing::None => Body { whole: true, ..Body::default() },
            Framing::Length(length) => {
                let data = bytes[..length.min(bytes.len())].to_vec();
                Body { len: data.len(), whole: data.len() == length, data, ..Body::default() }
            }
            Framing::Chunked => chunked(bytes),
            Framing::Close => Body { data: bytes.to_vec(), len: bytes.len(), whole: ended, ..Body::default() },
        }
    }
}

/// The first value of a field among `fields`.
pub fn get<'a>(fields: &'a [(String, String)], name: &str) -> Option<&'a str> {
    fields.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
}

fn chunked(bytes: &[u8]) -> Body {
    let mut body = Body::default();
    loop {
        let Some(line) = line(&bytes[body.len..]) else {
            return body;
        };
        let size = latin::text(line);
        let size = size.split(';').next().unwrap_or_default().trim();
        let Ok(size) = usize::from_str_radix(size, 16) else {
            body.broken = true;
            return body;
        };
        let data = body.len + line.len() + 2;
        if size == 0 {
            return with_trailers(body, bytes, data);
        }
        let there = &bytes[data..bytes.len().min(data.saturating_add(size))];
        body.data.extend_from_slice(there);
        if bytes.len() < data.saturating_add(size).saturating_add(2) {
            return body;
        }
        body.len = data + size + 2;
    }
}

fn with_trailers(mut body: Body, bytes: &[u8], mut at: usize) -> Body {
    while let Some(line) = line(&bytes[at..]) {
        at += line.len() + 2;
        if line.is_empty() {
            (body.len, body.whole) = (at, true);
            return body;
        }
        body.trailers.push(field(line));
    }
    body
}

/// A line without its end, once it is whole.
fn line(bytes: &[u8]) -> Option<&[u8]> {
    let end = bytes.windows(2).position(|two| two == b"\r\n")?;
    Some(&bytes[..end])
}

fn field(line: &[u8]) -> (String, String) {
    let line = latin::text(line);
    let (name, value) = line.split_once(':').unwrap_or((&line, ""));
    (name.to_owned(), value.trim_matches([' ', '\t']).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_read_once_it_is_whole() {
        let text = b"HTTP/1.1 200 OK\r\nA: 1\r\nb:  x:y\xe9 \r\n\r\nok";
        let head = Head::read(text).unwrap();
        assert_eq!((head.status(), head.len), (Some(200), text.len() - 2));
        assert_eq!((head.get("B"), head.get("c")), (Some("x:yé"), None));
        assert!(Head::read(&text[..head.len - 1]).is_none());
    }

    #[test]
    fn a_chunked_body_has_its_end_only_with_the_last_chunk() {
        let text = b"5;x=1\r\nhello\r\n1\r\n!\r\n0\r\nT: v\r\n\r\nrest";
        let body = Body::read(text, Framing::Chunked, false);
        assert_eq!((body.whole, body.len, body.data.as_slice()), (true, text.len() - 4, &b"hello!"[..]));
        assert_eq!(body.trailers, [("T".to_owned(), "v".to_owned())]);
        let cut = Body::read(&text[..9], Framing::Chunked, true);
        assert_eq!((cut.whole, cut.broken, cut.data.as_slice()), (false, false, &b"he"[..]));
        assert!(Body::read(b"zz\r\n", Framing::Chunked, false).broken);
    }

    #[test]
    fn statuses_without_a_body_have_none_whatever_is_stated() {
        let head = |start: &str| Head::read(format!("{start}\r\nContent-Length: 9\r\n\r\n").as_bytes()).unwrap();
        assert_eq!(head("HTTP/1.1 304 X").answer_framing(false), Framing::None);
        assert_eq!(head("HTTP/1.1 200 X").answer_framing(true), Framing::None);
        assert_eq!(head("HTTP/1.1 200 X").answer_framing(false), Framing::Length(9));
        assert_eq!(Head::read(b"HTTP/1.1 200 X\r\n\r\n").unwrap().answer_framing(false), Framing::Close);
    }
}
