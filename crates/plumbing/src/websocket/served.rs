//! Frames of a client, at a server: whole messages, never more than allowed
//! in memory (RFC 6455, sections 5 and 7).

use super::message::{Kind, code};
use bytes::{Buf, Bytes, BytesMut};

const FIN: u8 = 0x80;
const RESERVED: u8 = 0x70;
const MASKED: u8 = 0x80;
const CONTROL: u8 = 0x8;
/// Payload of a control frame at most; also the last length of one byte.
const SHORT_MAX: usize = 125;
const LENGTH_IN_2: u8 = 126;
const LENGTH_IN_8: u8 = 127;
const MASK_BYTES: usize = 4;
/// An idle connection keeps no larger buffer.
const KEPT_BYTES: usize = 1 << 10;

/// Appends one frame of a server.
pub fn put(out: &mut Vec<u8>, kind: Kind, payload: &[u8]) {
    out.push(FIN | kind as u8);
    match payload.len() {
        length @ 0..=SHORT_MAX => out.push(length as u8),
        length @ 0..=0xffff => {
            out.push(LENGTH_IN_2);
            out.extend_from_slice(&(length as u16).to_be_bytes());
        }
        length => {
            out.push(LENGTH_IN_8);
            out.extend_from_slice(&(length as u64).to_be_bytes());
        }
    }
    out.extend_from_slice(payload);
}

/// Appends a close frame with a reason.
pub fn put_close(out: &mut Vec<u8>, code: u16, text: &str) {
    let text = &text.as_bytes()[..text.len().min(SHORT_MAX - 2)];
    put(out, Kind::Close, &[&code.to_be_bytes()[..], text].concat());
}

/// What a client said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Heard {
    /// A whole message of bytes.
    Binary(Bytes),
    /// A whole message of text.
    Text(Bytes),
    /// To be answered with the same.
    Ping(Bytes),
    /// An answer to a ping.
    Pong(Bytes),
    /// It ends the connection; `None` without a reason.
    Close(Option<u16>),
}

/// Why nothing more can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Broken {
    /// The client broke the protocol.
    #[error("{0}")]
    Protocol(&'static str),
    /// A message is longer than is taken.
    #[error("a message is longer than is taken")]
    TooLong,
}

impl Broken {
    /// The code for the close frame.
    pub fn code(self) -> u16 {
        match self {
            Broken::Protocol(_) => code::PROTOCOL_ERROR,
            Broken::TooLong => code::TOO_LONG,
        }
    }
}

/// Reads what a client says.
#[derive(Debug)]
pub struct Reader {
    came: BytesMut,
    /// A message of which a part has come, and whether it is bytes.
    begun: Option<(bool, BytesMut)>,
    most: usize,
}

struct Frame {
    first: u8,
    payload: BytesMut,
}

impl Reader {
    /// Of messages of at most so many bytes.
    pub fn new(most: usize) -> Reader {
        Reader { came: BytesMut::new(), begun: None, most }
    }

    /// Where bytes are read to.
    pub fn buffer(&mut self) -> &mut BytesMut {
        &mut self.came
    }

    /// Bytes that are kept until what they are part of is whole.
    pub fn held(&self) -> usize {
        self.came.len() + self.begun.as_ref().map_or(0, |(_, message)| message.len())
    }

    /// The next whole thing that was said.
    ///
    /// # Errors
    /// When nothing after it can be read.
    pub fn heard(&mut self) -> Result<Option<Heard>, Broken> {
        while let Some(Frame { first, payload }) = self.frame()? {
            let last = first & FIN != 0;
            match first & 0x0f {
                0x8 => return closed(&payload).map(Some),
                0x9 => return Ok(Some(Heard::Ping(payload.freeze()))),
                0xa => return Ok(Some(Heard::Pong(payload.freeze()))),
                opcode => {
                    let (binary, message) = match self.begun.take() {
                        Some((binary, mut message)) => {
                            message.unsplit(payload);
                            (binary, message)
                        }
                        None => (opcode == 0x2, payload),
                    };
                    if !last {
                        self.begun = Some((binary, message));
                        continue;
                    }
                    let message = message.freeze();
                    return Ok(Some(if binary { Heard::Binary(message) } else { Heard::Text(message) }));
                }
            }
        }
        if self.came.is_empty() && self.came.capacity() > KEPT_BYTES {
            self.came = BytesMut::new();
        }
        Ok(None)
    }

    /// The next frame, unmasked, once it is there in full. Its rules are
    /// checked as soon as its head is.
    fn frame(&mut self) -> Result<Option<Frame>, Broken> {
        let [first, second, ..] = self.came[..] else { return Ok(None) };
        let opcode = first & 0x0f;
        let in_pieces = self.begun.is_some();
        match opcode {
            _ if first & RESERVED != 0 => return Err(Broken::Protocol("a reserved bit is set")),
            _ if second & MASKED == 0 => return Err(Broken::Protocol("a client's frame is not masked")),
            0x0 if !in_pieces => return Err(Broken::Protocol("a piece of no message")),
            0x1 | 0x2 if in_pieces => return Err(Broken::Protocol("a message within another")),
            0x3..=0x7 | 0xb.. => return Err(Broken::Protocol("there is no such frame")),
            _ => {}
        }
        let short = second & !MASKED;
        if opcode & CONTROL != 0 && (first & FIN == 0 || usize::from(short) > SHORT_MAX) {
            return Err(Broken::Protocol("a control frame is long, or in pieces"));
        }
        let long = |bytes: &[u8]| bytes.iter().fold(0, |length, byte| length << 8 | u64::from(*byte));
        let (head, length) = match short {
            LENGTH_IN_2 if self.came.len() >= 4 => (4, long(&self.came[2..4])),
            LENGTH_IN_8 if self.came.len() >= 10 => (10, long(&self.came[2..10])),
            LENGTH_IN_2 | LENGTH_IN_8 => return Ok(None),
            length => (2, length.into()),
        };
        let before = self.begun.as_ref().map_or(0, |(_, message)| message.len());
        let room = if opcode & CONTROL != 0 { SHORT_MAX } else { self.most.saturating_sub(before) };
        let length = usize::try_from(length).ok().filter(|length| *length <= room).ok_or(Broken::TooLong)?;
        let body = head + MASK_BYTES;
        if self.came.len() < body + length {
            return Ok(None);
        }
        let mut mask = [0; MASK_BYTES];
        mask.copy_from_slice(&self.came[head..body]);
        self.came.advance(body);
        let mut payload = self.came.split_to(length);
        payload.iter_mut().zip(mask.iter().cycle()).for_each(|(byte, mask)| *byte ^= mask);
        Ok(Some(Frame { first, payload }))
    }
}

fn closed(payload: &[u8]) -> Result<Heard, Broken> {
    match payload {
        [] => Ok(Heard::Close(None)),
        [_] => Err(Broken::Protocol("half a reason of a close")),
        [high, low, ..] => Ok(Heard::Close(Some(u16::from_be_bytes([*high, *low])))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MASK: [u8; 4] = [0x37, 0xfa, 0x21, 0x3d];

    fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
        let mut bytes = vec![first];
        match payload.len() {
            length @ 0..=125 => bytes.push(MASKED | length as u8),
            length @ 126..=65_535 => {
                bytes.push(MASKED | LENGTH_IN_2);
                bytes.extend((length as u16).to_be_bytes());
            }
            length => {
                bytes.push(MASKED | LENGTH_IN_8);
                bytes.extend((length as u64).to_be_bytes());
            }
        }
        bytes.extend(MASK);
        bytes.extend(payload.iter().zip(MASK.iter().cycle()).map(|(byte, mask)| byte ^ mask));
        bytes
    }

    fn heard(bytes: &[u8], chunk: usize, most: usize) -> Result<Vec<Heard>, Broken> {
        let (mut reader, mut all) = (Reader::new(most), Vec::new());
        for bytes in bytes.chunks(chunk) {
            reader.buffer().extend_from_slice(bytes);
            while let Some(one) = reader.heard()? {
                all.push(one);
            }
            assert!(reader.held() <= most + SHORT_MAX + 14 + chunk);
        }
        Ok(all)
    }

    #[test]
    fn what_a_client_says_is_heard_however_it_is_cut() {
        let long = vec![7; 70_000];
        let bytes = [
            frame(0x82, b"Hello"),
            frame(0x02, b"in "),
            frame(0x89, b"x"),
            frame(0x00, b""),
            frame(0x80, b"pieces"),
            frame(0x81, b"text"),
            frame(0x82, &long),
            frame(0x8a, b""),
            frame(0x88, b"\x03\xe9bye"),
        ]
        .concat();
        let said = [
            Heard::Binary(Bytes::from_static(b"Hello")),
            Heard::Ping(Bytes::from_static(b"x")),
            Heard::Binary(Bytes::from_static(b"in pieces")),
            Heard::Text(Bytes::from_static(b"text")),
            Heard::Binary(long.into()),
            Heard::Pong(Bytes::new()),
            Heard::Close(Some(code::GOING_AWAY)),
        ];
        for chunk in [1, 3, 1000, bytes.len()] {
            assert_eq!(heard(&bytes, chunk, 1 << 20).unwrap(), said, "in pieces of {chunk}");
        }
    }

    #[test]
    fn a_message_beyond_the_bound_is_known_by_its_head_and_by_the_sum_of_its_pieces() {
        assert_eq!(heard(&[0x82, 0xff, 0, 0, 0, 0, 0, 0, 3, 233], 1, 1000), Err(Broken::TooLong));
        assert_eq!(heard(&[0x82, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff], 1, 1000), Err(Broken::TooLong));
        let piece = vec![0; 600];
        assert_eq!(heard(&[frame(0x02, &piece), frame(0x80, &piece)].concat(), 7, 1000), Err(Broken::TooLong));
        assert_eq!(heard(&frame(0x82, &piece), 600, 600).unwrap().len(), 1);
    }

    #[test]
    fn a_client_that_breaks_the_protocol_is_not_listened_to() {
        for bad in [
            &[0x82, 0x01, 0][..],
            &[0xc2, 0x80],
            &[0x80, 0x80],
            &[0x83, 0x80],
            &[0x09, 0x80],
            &[0x89, 0xfe],
            &[0x02, 0x80, 0, 0, 0, 0, 0x82, 0x80],
            &[0x88, 0x81, 0, 0, 0, 0, 3],
        ] {
            assert!(matches!(heard(bad, 1, 100), Err(Broken::Protocol(_))), "{bad:?}");
        }
    }

    #[test]
    fn any_bytes_at_all_are_heard_alike_in_one_piece_and_in_many() {
        for seed in 0..500 {
            fastrand::seed(seed);
            let mut bytes = Vec::new();
            for _ in 0..fastrand::usize(1..8) {
                // Mostly frames as they should be, so that it goes further.
                let first = if fastrand::u8(..8) == 0 {
                    fastrand::u8(..)
                } else {
                    [0x82, 0x02, 0x80, 0x89][fastrand::usize(..4)]
                };
                let payload: Vec<u8> =
                    std::iter::repeat_with(|| fastrand::u8(..)).take(fastrand::usize(..200)).collect();
                bytes.extend(frame(first, &payload));
            }
            bytes.truncate(bytes.len() - fastrand::usize(..4));
            let whole = heard(&bytes, bytes.len().max(1), 300);
            for chunk in [1, 7, 100] {
                assert_eq!(heard(&bytes, chunk, 300), whole, "seed {seed}, in pieces of {chunk}");
            }
        }
    }

    #[test]
    fn an_idle_connection_holds_no_buffer() {
        let mut reader = Reader::new(1 << 20);
        reader.buffer().extend_from_slice(&frame(0x82, &[0; 100_000]));
        assert!(matches!(reader.heard(), Ok(Some(Heard::Binary(_)))));
        assert_eq!(reader.heard(), Ok(None));
        assert_eq!(reader.buffer().capacity(), 0);
    }

    #[test]
    fn a_server_masks_nothing() {
        let mut out = Vec::new();
        put_close(&mut out, code::RESTART, "Restarting");
        assert_eq!(out, b"\x88\x0c\x03\xf4Restarting");
    }
}
