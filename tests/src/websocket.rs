//! Websockets, either end, frame by frame and without manners: a test decides
//! what is sent, and sees what came (RFC 6455).

use crate::rig::read_to_end;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use std::io;
use std::net::SocketAddr;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};

/// Text, as a whole message.
pub const TEXT: u8 = 1;
/// Bytes, as a whole message.
pub const BINARY: u8 = 2;
/// The end, with a code.
pub const CLOSE: u8 = 8;
/// Are you there?
pub const PING: u8 = 9;
/// Yes.
pub const PONG: u8 = 10;

/// The client's nonce; nothing depends on its being random.
const KEY: &str = "dGhlIHNhbXBsZSBub25jZQ==";
const GUID: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
const MASK: [u8; 4] = [0x1f, 0x2e, 0x3d, 0x4c];

/// One frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The last of its message.
    pub last: bool,
    /// What it is.
    pub opcode: u8,
    /// Unmasked.
    pub payload: Vec<u8>,
}

impl Frame {
    /// The code of a close frame.
    pub fn code(&self) -> Option<u16> {
        (self.opcode == CLOSE).then_some(())?;
        Some(u16::from_be_bytes(self.payload.get(..2)?.try_into().ok()?))
    }
}

/// The reading half.
pub struct Reader<R>(BufReader<R>);

/// The writing half.
pub struct Writer<W> {
    stream: W,
    /// Clients mask what they send, servers do not.
    masks: bool,
}

/// A client's websocket.
pub struct Socket {
    /// What comes.
    pub reader: Reader<OwnedReadHalf>,
    /// What goes.
    pub writer: Writer<OwnedWriteHalf>,
}

impl Socket {
    /// Connects and shakes hands.
    ///
    /// # Errors
    /// When the answer is no 101 with the right key.
    pub async fn open(address: SocketAddr, path: &str) -> io::Result<Socket> {
        let (reader, mut writer) = TcpStream::connect(address).await?.into_split();
        let head = format!(
            "GET {path} HTTP/1.1\r\nhost: sockets.example\r\nconnection: Upgrade\r\nupgrade: websocket\r\n\
             sec-websocket-version: 13\r\nsec-websocket-key: {KEY}\r\n\r\n"
        );
        writer.write_all(head.as_bytes()).await?;
        let mut reader = BufReader::new(reader);
        let answer = read_head(&mut reader).await?;
        let accepted = field(&answer, "sec-websocket-accept") == Some(accept_key(KEY).as_str());
        if !answer.starts_with("HTTP/1.1 101 ") || !accepted {
            return Err(io::Error::other(format!("no websocket: {answer}")));
        }
        Ok(Socket { reader: Reader(reader), writer: Writer { stream: writer, masks: true } })
    }

    /// Sends a message and waits for the next one.
    ///
    /// # Errors
    /// When the connection breaks off or ends.
    pub async fn exchange(&mut self, opcode: u8, payload: &[u8]) -> io::Result<Frame> {
        self.writer.send(opcode, payload).await?;
        self.reader.next().await?.ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    }
}

/// A server's websocket, on a connection whose request was a handshake.
///
/// # Errors
/// When the connection breaks off.
pub async fn accept(stream: TcpStream, handshake: &str) -> io::Result<(Reader<OwnedReadHalf>, Writer<OwnedWriteHalf>)> {
    let (reader, mut writer) = stream.into_split();
    let accept = accept_key(field(handshake, "sec-websocket-key").unwrap_or_default());
    let answer = format!(
        "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\
         sec-websocket-accept: {accept}\r\n\r\n"
    );
    writer.write_all(answer.as_bytes()).await?;
    Ok((Reader(BufReader::new(reader)), Writer { stream: writer, masks: false }))
}

/// The answer to a request for the protocol `raw`, which has no frames.
pub const SWITCH_TO_RAW: &[u8] = b"HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: raw\r\n\r\n";

/// An app's echo of frames, however its client ends.
pub async fn serve_echo(stream: TcpStream, handshake: &str) {
    if let Ok((reader, writer)) = accept(stream, handshake).await {
        let _ = echo(reader, writer).await;
    }
}

/// An app of the protocol `raw`: waits for the end of what the client sends,
/// and tells it then.
///
/// # Panics
/// When the switch cannot be written.
pub async fn serve_raw(mut stream: TcpStream) {
    stream.write_all(SWITCH_TO_RAW).await.expect("the switch is written");
    let (said, ended) = read_to_end(&mut stream).await;
    let _ = stream.write_all(format!("{said} {ended} bye").as_bytes()).await;
}

/// Sends everything back, as a server, until the other end closes.
///
/// # Errors
/// When the connection breaks off.
pub async fn echo<R, W>(mut reader: Reader<R>, mut writer: Writer<W>) -> io::Result<()>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    while let Some(frame) = reader.next().await? {
        let opcode = if frame.opcode == PING { PONG } else { frame.opcode };
        writer.send(opcode, &frame.payload).await?;
        if opcode == CLOSE {
            break;
        }
    }
    writer.shutdown().await
}

/// Both halves of a server's websocket, after a handshake made elsewhere.
pub fn server<S>(stream: S) -> (Reader<tokio::io::ReadHalf<S>>, Writer<tokio::io::WriteHalf<S>>)
where
    S: AsyncRead + AsyncWrite,
{
    let (reader, writer) = tokio::io::split(stream);
    (Reader(BufReader::new(reader)), Writer { stream: writer, masks: false })
}

/// What a server answers to a key.
pub fn accept_key(key: &str) -> String {
    STANDARD.encode(digest(&SHA1_FOR_LEGACY_USE_ONLY, format!("{key}{GUID}").as_bytes()))
}

impl<R: AsyncRead + Unpin> Reader<R> {
    /// The next frame; `None` when the connection has ended between two.
    ///
    /// # Errors
    /// When it breaks off, or ends within a frame.
    pub async fn next(&mut self) -> io::Result<Option<Frame>> {
        if self.0.fill_buf().await?.is_empty() {
            return Ok(None);
        }
        let [first, second] = self.0.read_u16().await?.to_be_bytes();
        let length = match second & 0x7f {
            126 => self.0.read_u16().await?.into(),
            127 => self.0.read_u64().await?,
            length => length.into(),
        };
        let mut mask = [0; 4];
        if second & 0x80 != 0 {
            self.0.read_exact(&mut mask).await?;
        }
        let mut payload = vec![0; usize::try_from(length).map_err(io::Error::other)?];
        self.0.read_exact(&mut payload).await?;
        apply(mask, &mut payload);
        Ok(Some(Frame { last: first & 0x80 != 0, opcode: first & 0x0f, payload }))
    }
}

impl<W: AsyncWrite + Unpin> Writer<W> {
    /// Sends a frame that is a whole message.
    ///
    /// # Errors
    /// When the connection breaks off.
    pub async fn send(&mut self, opcode: u8, payload: &[u8]) -> io::Result<()> {
        let bytes = self.frame(opcode, payload);
        self.stream.write_all(&bytes).await
    }

    /// Sends bytes as they are.
    ///
    /// # Errors
    /// When the connection breaks off.
    pub async fn send_raw(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes).await
    }

    /// Half-closes.
    ///
    /// # Errors
    /// When the connection breaks off.
    pub async fn shutdown(&mut self) -> io::Result<()> {
        self.stream.shutdown().await
    }

    /// The bytes of a frame.
    pub fn frame(&self, opcode: u8, payload: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0x80 | opcode];
        let masked = if self.masks { 0x80 } else { 0 };
        match payload.len() {
            length @ ..126 => bytes.push(masked | length as u8),
            length @ ..65_536 => {
                bytes.push(masked | 126);
                bytes.extend_from_slice(&(length as u16).to_be_bytes());
            }
            length => {
                bytes.push(masked | 127);
                bytes.extend_from_slice(&(length as u64).to_be_bytes());
            }
        }
        if self.masks {
            bytes.extend_from_slice(&MASK);
        }
        let head = bytes.len();
        bytes.extend_from_slice(payload);
        if self.masks {
            apply(MASK, &mut bytes[head..]);
        }
        bytes
    }
}

fn apply(mask: [u8; 4], payload: &mut [u8]) {
    if mask != [0; 4] {
        payload.chunks_mut(4).for_each(|four| four.iter_mut().zip(mask).for_each(|(byte, mask)| *byte ^= mask));
    }
}

async fn read_head<R: AsyncRead + Unpin>(reader: &mut BufReader<R>) -> io::Result<String> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") && reader.read_line(&mut head).await? > 0 {}
    Ok(head)
}

fn field<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    let mut fields = head.lines().filter_map(|line| line.split_once(':'));
    fields.find(|field| field.0.eq_ignore_ascii_case(name)).map(|field| field.1.trim())
}
