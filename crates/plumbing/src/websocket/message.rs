//! Frames of a client, and what a server says to one that only sends (RFC
//! 6455, sections 5 and 7).

use ring::rand::{SecureRandom, SystemRandom};

/// What a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A whole message of bytes.
    Binary = 0x2,
    /// The end, with its reason.
    Close = 0x8,
    /// To be answered with the same payload.
    Ping = 0x9,
    /// The answer.
    Pong = 0xa,
}

const FIN: u8 = 0x80;
const RESERVED: u8 = 0x70;
const MASKED: u8 = 0x80;
/// Payload of a control frame at most; also the last length of one byte.
const SHORT_MAX: usize = 125;
const LENGTH_IN_2: u8 = 126;
const LENGTH_IN_8: u8 = 127;

/// Reason codes of a close.
pub mod code {
    /// The work is done.
    pub const NORMAL: u16 = 1000;
    /// The process ends.
    pub const GOING_AWAY: u16 = 1001;
    /// The other side broke the protocol.
    pub const PROTOCOL_ERROR: u16 = 1002;
    /// A message is longer than is taken.
    pub const TOO_LONG: u16 = 1009;
    /// The server restarts: come back.
    pub const RESTART: u16 = 1012;
    /// The server has no room now: come back later.
    pub const TRY_LATER: u16 = 1013;
}

/// Makes masked frames.
pub struct Writer {
    random: SystemRandom,
}

impl Default for Writer {
    fn default() -> Writer {
        Writer { random: SystemRandom::new() }
    }
}

impl Writer {
    /// Appends one frame, whole.
    pub fn put(&self, out: &mut Vec<u8>, kind: Kind, payload: &[u8]) {
        let mut mask = [0; 4];
        // A mask hides nothing from us: it keeps intermediaries from taking
        // payloads for requests, and there are none that a caller makes up.
        let _ = self.random.fill(&mut mask);
        put(out, kind, payload, mask);
    }

    /// Appends a close frame with a reason.
    pub fn put_close(&self, out: &mut Vec<u8>, code: u16, text: &str) {
        let text = &text.as_bytes()[..text.len().min(SHORT_MAX - 2)];
        self.put(out, Kind::Close, &[&code.to_be_bytes()[..], text].concat());
    }
}

fn put(out: &mut Vec<u8>, kind: Kind, payload: &[u8], mask: [u8; 4]) {
    out.push(FIN | kind as u8);
    match payload.len() {
        length @ 0..=SHORT_MAX => out.push(MASKED | length as u8),
        length @ 0..=0xffff => {
            out.push(MASKED | LENGTH_IN_2);
            out.extend_from_slice(&(length as u16).to_be_bytes());
        }
        length => {
            out.push(MASKED | LENGTH_IN_8);
            out.extend_from_slice(&(length as u64).to_be_bytes());
        }
    }
    out.extend_from_slice(&mask);
    out.extend(payload.iter().zip(mask.iter().cycle()).map(|(byte, mask)| byte ^ mask));
}

/// What a server said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said {
    /// Answer with this.
    Ping(Vec<u8>),
    /// An answer to a ping with this.
    Pong(Vec<u8>),
    /// It ends the connection.
    Close {
        /// Its reason; `None` without one.
        code: Option<u16>,
        /// In words.
        text: String,
    },
    /// A frame of a message, which nobody here reads.
    Message,
}

/// The server broke the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Broken(&'static str);

/// Reads what a server says. Control frames are kept until they are whole, of
/// messages only lengths are followed.
#[derive(Default)]
pub struct Reader {
    came: Vec<u8>,
    /// Bytes of a message that are still to come.
    skip: u64,
}

impl Reader {
    /// Takes bytes in.
    pub fn feed(&mut self, bytes: &[u8]) {
        let skipped = usize::try_from(self.skip).unwrap_or(usize::MAX).min(bytes.len());
        self.skip -= skipped as u64;
        self.came.extend_from_slice(&bytes[skipped..]);
    }

    /// The next whole thing that was said.
    ///
    /// # Errors
    /// When it is against the protocol: nothing after it can be read.
    pub fn said(&mut self) -> Result<Option<Said>, Broken> {
        let [first, second, ..] = self.came[..] else { return Ok(None) };
        if first & RESERVED != 0 {
            return Err(Broken("a reserved bit is set"));
        }
        if second & MASKED != 0 {
            return Err(Broken("a server's frame is masked"));
        }
        let opcode = first & 0x0f;
        let control = opcode & 0x8 != 0;
        if control && (first & FIN == 0 || usize::from(second) > SHORT_MAX) {
            return Err(Broken("a control frame is long, or in pieces"));
        }
        let long = |bytes: &[u8]| bytes.iter().fold(0, |length, byte| length << 8 | u64::from(*byte));
        let (head, length) = match second {
            LENGTH_IN_2 if self.came.len() >= 4 => (4, long(&self.came[2..4])),
            LENGTH_IN_8 if self.came.len() >= 10 => (10, long(&self.came[2..10])),
            LENGTH_IN_2 | LENGTH_IN_8 => return Ok(None),
            length => (2, length.into()),
        };
        if !control {
            if opcode > 0x2 {
                return Err(Broken("there is no such frame"));
            }
            let here = (self.came.len() - head) as u64;
            self.skip = length.saturating_sub(here);
            self.came.drain(..head + usize::try_from(length.min(here)).unwrap_or_default());
            return Ok(Some(Said::Message));
        }
        let end = head + usize::from(second);
        if self.came.len() < end {
            return Ok(None);
        }
        let payload: Vec<u8> = self.came.drain(..end).skip(head).collect();
        match opcode {
            0x8 => closed(&payload).map(Some),
            0x9 => Ok(Some(Said::Ping(payload))),
            0xa => Ok(Some(Said::Pong(payload))),
            _ => Err(Broken("there is no such frame")),
        }
    }
}

fn closed(payload: &[u8]) -> Result<Said, Broken> {
    match payload {
        [] => Ok(Said::Close { code: None, text: String::new() }),
        [_] => Err(Broken("half a reason of a close")),
        [high, low, text @ ..] => {
            let code = u16::from_be_bytes([*high, *low]);
            Ok(Said::Close { code: Some(code), text: String::from_utf8_lossy(text).into_owned() })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_masked_and_its_length_has_three_forms() {
        // The masked example of the standard.
        let mut out = Vec::new();
        put(&mut out, Kind::Binary, b"Hello", [0x37, 0xfa, 0x21, 0x3d]);
        assert_eq!(out, [0x82, 0x85, 0x37, 0xfa, 0x21, 0x3d, 0x7f, 0x9f, 0x4d, 0x51, 0x58]);
        for (length, head) in [
            (125, &[0xfd][..]),
            (126, &[0xfe, 0, 126]),
            (65_535, &[0xfe, 0xff, 0xff]),
            (65_536, &[0xff, 0, 0, 0, 0, 0, 1, 0, 0]),
        ] {
            let mut out = Vec::new();
            put(&mut out, Kind::Binary, &vec![0; length], [1, 2, 3, 4]);
            assert_eq!(&out[1..=head.len()], head);
            assert_eq!(out.len(), 1 + head.len() + 4 + length);
        }
    }

    #[test]
    fn masks_differ() {
        let (writer, mut out) = (Writer::default(), Vec::new());
        writer.put(&mut out, Kind::Ping, b"");
        writer.put(&mut out, Kind::Ping, b"");
        assert!(out.len() == 12 && out[..6] != out[6..]);
    }

    /// Everything said in bytes that come one by one, or all at once.
    fn heard(bytes: &[u8], chunk: usize) -> Result<Vec<Said>, Broken> {
        let (mut reader, mut said) = (Reader::default(), Vec::new());
        for bytes in bytes.chunks(chunk) {
            reader.feed(bytes);
            while let Some(one) = reader.said()? {
                said.push(one);
            }
        }
        Ok(said)
    }

    #[test]
    fn what_a_server_says_is_heard_however_it_is_cut() {
        let long = [&[0x82, 127, 0, 0, 0, 0, 0, 1, 0, 0][..], &vec![7; 65_536]].concat();
        let all = [&[0x89, 2, b'h', b'i'][..], &long, &[0x01, 3, 1, 2, 3, 0x8a, 0], b"\x88\x0c\x03\xf4Restarting"];
        let restarting = Said::Close { code: Some(code::RESTART), text: "Restarting".into() };
        let said = [Said::Ping(b"hi".into()), Said::Message, Said::Message, Said::Pong(Vec::new()), restarting];
        let bytes = all.concat();
        for chunk in [1, 3, 1000, bytes.len()] {
            assert_eq!(heard(&bytes, chunk).unwrap(), said, "in pieces of {chunk}");
        }
        assert_eq!(heard(&[0x88, 0], 1).unwrap(), [Said::Close { code: None, text: String::new() }]);
    }

    #[test]
    fn a_server_that_breaks_the_protocol_is_not_listened_to() {
        for bad in [
            &[0x89, 0x80, 0, 0, 0, 0][..],
            &[0xc9, 0],
            &[0x09, 0],
            &[0x89, 126, 0, 200],
            &[0x83, 0],
            &[0x8b, 0],
            &[0x88, 1, 3],
        ] {
            assert!(heard(bad, 1).is_err(), "{bad:?}");
        }
    }
}
