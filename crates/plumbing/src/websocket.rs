//! Where the frames of a websocket end (RFC 6455, section 5.2), so that a
//! close frame of ours can go between two of the app's and never into one.
//!
//! Pure: bytes in, places out. It keeps no byte of a payload and looks at
//! nothing but lengths; the rules of the protocol are for the two ends.
//!
//! Where we are an end ourselves: as a client [`handshake`] and [`message`],
//! as a server [`accept`] and [`served`].

pub mod accept;
pub mod handshake;
pub mod message;
pub mod served;

/// A close frame of a server with code 1001, "going away".
pub const GOING_AWAY: [u8; 4] = [FIN | OPCODE_CLOSE, 2, 0x03, 0xe9];

const FIN: u8 = 0x80;
const MASKED: u8 = 0x80;
const OPCODE: u8 = 0x0f;
const OPCODE_CLOSE: u8 = 0x8;
/// In the place of the length: it follows, in two bytes or in eight.
const LENGTH_IN_2: u8 = 126;
const LENGTH_IN_8: u8 = 127;
const MASK_BYTES: u64 = 4;

/// Follows one direction of a websocket from its first byte on.
///
/// Fragments of a message are frames too: a close frame may go between them.
#[derive(Clone, Debug, Default)]
pub struct Frames {
    place: Place,
    /// The frame that goes on, or went last, is a close frame.
    closing: bool,
}

#[derive(Clone, Copy, Debug, Default)]
enum Place {
    /// Between two frames.
    #[default]
    Boundary,
    /// The first byte of a head has passed.
    Length,
    /// So many bytes of the length are to come; what there was of it.
    LongLength { masked: bool, left: u8, so_far: u64 },
    /// So many bytes of the frame are to come; never 0.
    Rest(u64),
    /// A length that no frame has: where frames end is not known any more.
    Lost,
}

impl Frames {
    /// Nothing has passed yet.
    pub fn new() -> Frames {
        Frames::default()
    }

    /// True when a frame of ours may be written now.
    pub fn at_boundary(&self) -> bool {
        matches!(self.place, Place::Boundary) && !self.closing
    }

    /// True when a close frame has passed, or begun to: nothing may follow it.
    pub fn is_closing(&self) -> bool {
        self.closing
    }

    /// True when the bytes were no frames: nothing of ours can be put among them.
    pub fn is_lost(&self) -> bool {
        matches!(self.place, Place::Lost)
    }

    /// Follows bytes that are passed on in full.
    pub fn pass(&mut self, mut bytes: &[u8]) {
        while let Some((&first, rest)) = bytes.split_first() {
            bytes = match self.place {
                Place::Lost => return,
                Place::Rest(left) => {
                    let here = left.min(bytes.len() as u64);
                    self.place = rest_of(left - here);
                    // Not more than there is, so it fits.
                    &bytes[here as usize..]
                }
                _ => {
                    self.head(first);
                    rest
                }
            };
        }
    }

    /// How many bytes may be passed before one has to look again, so that none
    /// is passed beyond the next place where a frame of ours may go: 0 at that
    /// place, `None` when there will be none.
    pub fn before_boundary(&self) -> Option<u64> {
        match self.place {
            _ if self.closing => None,
            Place::Lost => None,
            Place::Boundary => Some(0),
            Place::Length | Place::LongLength { .. } => Some(1),
            Place::Rest(left) => Some(left),
        }
    }

    /// Takes a byte of a frame's head.
    fn head(&mut self, byte: u8) {
        self.place = match self.place {
            Place::Boundary => {
                self.closing |= byte & OPCODE == OPCODE_CLOSE;
                Place::Length
            }
            Place::Length => {
                let masked = byte & MASKED != 0;
                match byte & !MASKED {
                    LENGTH_IN_2 => Place::LongLength { masked, left: 2, so_far: 0 },
                    LENGTH_IN_8 => Place::LongLength { masked, left: 8, so_far: 0 },
                    length => payload(masked, length.into()),
                }
            }
            Place::LongLength { masked, left, so_far } => {
                let so_far = so_far << 8 | u64::from(byte);
                match left {
                    1 => payload(masked, so_far),
                    _ => Place::LongLength { masked, left: left - 1, so_far },
                }
            }
            place @ (Place::Rest(_) | Place::Lost) => place,
        };
    }
}

/// The head has ended.
fn payload(masked: bool, length: u64) -> Place {
    // The highest bit of a long length must not be set.
    if length >> 63 != 0 { Place::Lost } else { rest_of(length + if masked { MASK_BYTES } else { 0 }) }
}

fn rest_of(left: u64) -> Place {
    if left == 0 { Place::Boundary } else { Place::Rest(left) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Passes bytes up to the next boundary; how many those are, if it is there.
    fn pass_to_boundary(frames: &mut Frames, bytes: &[u8]) -> Option<usize> {
        let mut at = 0;
        loop {
            match frames.before_boundary()? {
                0 => return Some(at),
                _ if at == bytes.len() => return None,
                most => {
                    let end = bytes.len().min(at + usize::try_from(most).unwrap());
                    frames.pass(&bytes[at..end]);
                    at = end;
                }
            }
        }
    }

    const TEXT: u8 = 1;
    /// Lengths around each change of the form that they are written in.
    const LENGTHS: &[usize] = &[0, 1, 2, 124, 125, 126, 127, 300, 65_535, 65_536, 70_000];

    fn frame(opcode: u8, length: usize, masked: bool) -> Vec<u8> {
        let mask = if masked { MASKED } else { 0 };
        let mut bytes = vec![fastrand::u8(..) & !OPCODE | opcode];
        match length {
            0..=125 => bytes.push(mask | length as u8),
            126..=65_535 => {
                bytes.push(mask | LENGTH_IN_2);
                bytes.extend_from_slice(&(length as u16).to_be_bytes());
            }
            _ => {
                bytes.push(mask | LENGTH_IN_8);
                bytes.extend_from_slice(&(length as u64).to_be_bytes());
            }
        }
        // Bytes that would be heads, and close frames, in the wrong place.
        let payload = length + if masked { 4 } else { 0 };
        bytes.extend(GOING_AWAY.iter().cycle().skip(fastrand::usize(..4)).take(payload));
        bytes
    }

    /// Some frames one after the other, and the places between them.
    fn stream() -> (Vec<u8>, Vec<usize>) {
        let (mut bytes, mut ends) = (Vec::new(), vec![0]);
        for _ in 0..fastrand::usize(1..12) {
            // Any but close.
            let opcode = [0, TEXT, 2, 9, 10][fastrand::usize(..5)];
            let length = LENGTHS[fastrand::usize(..LENGTHS.len())];
            bytes.extend(frame(opcode, length, fastrand::u8(..4) == 0));
            ends.push(bytes.len());
        }
        (bytes, ends)
    }

    /// Cuts at random, often within heads.
    fn cut(mut bytes: &[u8]) -> Vec<&[u8]> {
        let mut pieces = Vec::new();
        while !bytes.is_empty() {
            let most = if fastrand::bool() { 4 } else { 30_000 };
            let (piece, rest) = bytes.split_at(fastrand::usize(0..=most).min(bytes.len()));
            pieces.push(piece);
            bytes = rest;
        }
        pieces
    }

    #[test]
    fn boundaries_are_where_frames_end_however_the_bytes_are_cut() {
        for seed in 0..200 {
            fastrand::seed(seed);
            let (bytes, ends) = stream();
            let (mut frames, mut at) = (Frames::new(), 0);
            for piece in cut(&bytes) {
                frames.pass(piece);
                at += piece.len();
                assert_eq!(frames.at_boundary(), ends.contains(&at), "seed {seed}, byte {at}");
                assert!(!frames.is_closing() && !frames.is_lost(), "seed {seed}");
            }
        }
    }

    #[test]
    fn what_is_begun_is_finished_up_to_the_next_boundary_and_no_further() {
        for seed in 0..200 {
            fastrand::seed(seed);
            let (bytes, ends) = stream();
            let begun = fastrand::usize(0..=bytes.len());
            let mut frames = Frames::new();
            cut(&bytes[..begun]).into_iter().for_each(|piece| frames.pass(piece));
            let next = ends.iter().copied().find(|&end| end >= begun).unwrap();
            let mut at = begun;
            for piece in cut(&bytes[begun..]).into_iter().chain([&[][..]]) {
                match pass_to_boundary(&mut frames, piece) {
                    Some(taken) => {
                        at += taken;
                        break;
                    }
                    None => at += piece.len(),
                }
            }
            assert_eq!(at, next, "seed {seed}: begun at {begun}");
            assert!(frames.at_boundary(), "seed {seed}");
        }
    }

    #[test]
    fn a_close_frame_put_in_between_is_a_frame_of_its_own() {
        for seed in 0..50 {
            fastrand::seed(seed);
            let (bytes, _) = stream();
            let begun = fastrand::usize(0..=bytes.len());
            let mut frames = Frames::new();
            frames.pass(&bytes[..begun]);
            let rest = pass_to_boundary(&mut frames, &bytes[begun..]).unwrap();
            let sent = [&bytes[..begun + rest], &GOING_AWAY[..]].concat();
            let mut client = Frames::new();
            client.pass(&sent[..sent.len() - GOING_AWAY.len()]);
            assert!(client.at_boundary() && !client.is_closing(), "seed {seed}");
            client.pass(&GOING_AWAY);
            assert!(client.is_closing() && !client.at_boundary(), "seed {seed}");
        }
    }

    #[test]
    fn nothing_goes_in_after_a_close_frame_of_the_app() {
        for length in [0, 2, 40] {
            let bytes = [frame(TEXT, 5, false), frame(OPCODE_CLOSE, length, false)].concat();
            for begun in 8..=bytes.len() {
                let mut frames = Frames::new();
                frames.pass(&bytes[..begun]);
                assert!(frames.is_closing() && !frames.at_boundary());
                assert_eq!(pass_to_boundary(&mut frames, &bytes[begun..]), None);
                assert_eq!(pass_to_boundary(&mut frames, b"what comes after it"), None);
            }
        }
    }

    #[test]
    fn a_length_that_no_frame_has_is_not_followed() {
        let mut frames = Frames::new();
        frames.pass(&[0x82, LENGTH_IN_8, 0x80, 0, 0, 0, 0, 0, 0, 0, 0x81, 0]);
        assert!(frames.is_lost() && !frames.at_boundary());
        assert_eq!(pass_to_boundary(&mut frames, &[0x81, 0]), None);
    }

    #[test]
    fn any_bytes_at_all_are_followed_alike_in_one_piece_and_in_many() {
        for seed in 0..200 {
            fastrand::seed(seed);
            let length = fastrand::usize(0..400);
            let bytes: Vec<u8> = std::iter::repeat_with(|| fastrand::u8(..)).take(length).collect();
            let (mut whole, mut pieces) = (Frames::new(), Frames::new());
            whole.pass(&bytes);
            cut(&bytes).into_iter().for_each(|piece| pieces.pass(piece));
            assert_eq!(format!("{whole:?}"), format!("{pieces:?}"), "seed {seed}");
        }
    }
}
