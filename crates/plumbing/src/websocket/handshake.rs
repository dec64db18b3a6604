//! The client's opening handshake (RFC 6455, section 4.1).

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use ring::rand::{SecureRandom, SystemRandom};
use std::io;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// What the key is put together with, in the standard.
const MAGIC: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
/// Largest head of an answer.
const HEAD_BYTES_MAX: usize = 16 << 10;
const FIELDS_MAX: usize = 64;

/// Why there is no websocket.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    /// The connection failed.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The server does not switch.
    #[error("the server answered {0} to the handshake")]
    Status(u16),
    /// What came is no answer, or not the one to our key.
    #[error("{0}")]
    Malformed(&'static str),
}

/// Asks a server to speak the protocol. Returns what it has sent after its
/// answer.
///
/// # Errors
/// When it does not.
pub async fn open<S>(stream: &mut S, host: &str, path: &str) -> Result<Vec<u8>, Refused>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let key = new_key()?;
    let request = format!(
        "GET {path} HTTP/1.1\r\nHost: {host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await?;
    let mut came = Vec::with_capacity(512);
    loop {
        if stream.read_buf(&mut came).await? == 0 {
            return Err(Refused::Malformed("the server closed the connection in the handshake"));
        }
        if let Some(length) = answered(&came, &key)? {
            return Ok(came.split_off(length));
        }
        if came.len() > HEAD_BYTES_MAX {
            return Err(Refused::Malformed("the head of the answer is too long"));
        }
    }
}

/// The length of the head, once it is there and right.
fn answered(came: &[u8], key: &str) -> Result<Option<usize>, Refused> {
    let mut fields = [httparse::EMPTY_HEADER; FIELDS_MAX];
    let mut answer = httparse::Response::new(&mut fields);
    let length = match answer.parse(came) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(_) => return Err(Refused::Malformed("the answer to the handshake is no HTTP")),
    };
    let status = answer.code.unwrap_or_default();
    if status != 101 {
        return Err(Refused::Status(status));
    }
    let has = |name: &str, word: &str| {
        let named = answer.headers.iter().filter(|field| field.name.eq_ignore_ascii_case(name));
        let mut words = named.flat_map(|field| field.value.split(|byte| *byte == b','));
        words.any(|part| part.trim_ascii().eq_ignore_ascii_case(word.as_bytes()))
    };
    if !has("upgrade", "websocket") || !has("connection", "upgrade") {
        return Err(Refused::Malformed("the server switches to another protocol"));
    }
    let accept = answer.headers.iter().find(|field| field.name.eq_ignore_ascii_case("sec-websocket-accept"));
    if accept.is_none_or(|field| field.value.trim_ascii() != accept_of(key).as_bytes()) {
        return Err(Refused::Malformed("the answer is not to this handshake"));
    }
    Ok(Some(length))
}

/// What a server makes of the client's key.
pub fn accept_of(key: &str) -> String {
    STANDARD.encode(digest(&SHA1_FOR_LEGACY_USE_ONLY, format!("{key}{MAGIC}").as_bytes()))
}

fn new_key() -> io::Result<String> {
    let mut bytes = [0; 16];
    SystemRandom::new().fill(&mut bytes).map_err(|_| io::Error::other("there is no randomness"))?;
    Ok(STANDARD.encode(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of the standard.
    const KEY: &str = "dGhlIHNhbXBsZSBub25jZQ==";
    const GOOD: &str = "HTTP/1.1 101 Switching Protocols\r\nupgrade: WebSocket\r\nconnection: keep-alive, Upgrade\r\n\
                        sec-websocket-accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n";

    #[test]
    fn the_answer_to_our_key_is_taken_and_no_other() {
        assert_eq!(answered(GOOD.as_bytes(), KEY).unwrap(), Some(GOOD.len()));
        for end in 0..GOOD.len() {
            assert_eq!(answered(&GOOD.as_bytes()[..end], KEY).unwrap(), None);
        }
        let followed = format!("{GOOD}\x01");
        assert_eq!(answered(followed.as_bytes(), KEY).unwrap(), Some(GOOD.len()));
        for (was, is) in [("s3pP", "s3pQ"), ("WebSocket", "h2c"), ("Upgrade\r", "close\r"), ("HTTP", "HTCP")] {
            assert!(matches!(answered(GOOD.replace(was, is).as_bytes(), KEY), Err(Refused::Malformed(_))), "{is}");
        }
        let other = answered(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", KEY);
        assert!(matches!(other, Err(Refused::Status(200))));
    }

    #[test]
    fn keys_differ_and_have_sixteen_bytes() {
        let (one, other) = (new_key().unwrap(), new_key().unwrap());
        assert!(one != other && STANDARD.decode(one).unwrap().len() == 16);
    }
}
