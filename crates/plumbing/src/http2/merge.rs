//! Small DATA frames that have come together are made one for each stream.
//!
//! Where frames end means nothing in HTTP/2 (RFC 9113, 6.1), and a frame of a
//! few bytes costs as much to take in as a large one: thousands of
//! instructions, for each message of a stream of messages. What is read is
//! only looked at as far as the heads of frames; whatever is not a plain small
//! DATA frame, or not there in full, passes as it is. Frames of one stream
//! keep their order; those of other streams may change places with DATA.

use std::cell::RefCell;

const HEAD_BYTES: usize = 9;
const PREFACE_BYTES: usize = 24;
/// Largest frame that the other side may send: the protocol's default.
const FRAME_BYTES_MAX: usize = 16 * 1024;
/// A larger frame is worth more than its copy.
const SMALL_BYTES_MAX: usize = 4 * 1024;

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const PUSH_PROMISE: u8 = 5;
const CONTINUATION: u8 = 9;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

/// Follows the frames of one direction of a connection.
pub(super) struct Merger {
    /// Of the frame that has begun: payload that is yet to come.
    left: usize,
    /// Of the next frame's head: what has come.
    head: [u8; HEAD_BYTES],
    have: usize,
}

#[derive(Clone, Copy)]
struct Head {
    length: usize,
    kind: u8,
    flags: u8,
    stream: u32,
}

impl Head {
    fn of(bytes: &[u8; HEAD_BYTES]) -> Head {
        let [a, b, c, kind, flags, stream @ ..] = *bytes;
        Head { length: u32::from_be_bytes([0, a, b, c]) as usize, kind, flags, stream: u32::from_be_bytes(stream) }
    }

    fn bytes(self) -> [u8; HEAD_BYTES] {
        let [_, a, b, c] = (self.length as u32).to_be_bytes();
        let [d, e, f, g] = self.stream.to_be_bytes();
        [a, b, c, self.kind, self.flags, d, e, f, g]
    }

    fn may_be_merged(self) -> bool {
        // One without content is left to those who count such frames.
        self.kind == DATA && self.flags & !END_STREAM == 0 && (1..=SMALL_BYTES_MAX).contains(&self.length)
    }

    /// Nothing may stand between this and the frame that follows.
    fn goes_on(self) -> bool {
        matches!(self.kind, HEADERS | PUSH_PROMISE | CONTINUATION) && self.flags & END_HEADERS == 0
    }
}

/// What has been read, in the order in which it is passed on.
#[derive(Default)]
struct Plan {
    parts: Vec<Part>,
    /// Payloads: where, and which is next in the same frame.
    pieces: Vec<(usize, usize, Option<usize>)>,
    /// Streams whose last frame so far can grow, and the part that it is.
    open: Vec<(u32, usize)>,
}

enum Part {
    /// As it came: from where to where.
    AsIs(usize, usize),
    /// One frame of these pieces: the first, and the last.
    Frame(Head, usize, usize),
}

thread_local! {
    static PLAN: RefCell<Plan> = RefCell::default();
}

impl Merger {
    /// Of what a server reads: a client's preface comes first.
    pub(super) fn after_preface() -> Merger {
        Merger { left: PREFACE_BYTES, head: [0; HEAD_BYTES], have: 0 }
    }

    /// Of what a client reads.
    pub(super) fn new() -> Merger {
        Merger { left: 0, head: [0; HEAD_BYTES], have: 0 }
    }

    /// Follows bytes that are passed on as they are.
    pub(super) fn follow(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let begun = self.finish(bytes);
            bytes = &bytes[begun..];
            if let Some(head) = bytes.first_chunk() {
                self.left = Head::of(head).length;
                bytes = &bytes[HEAD_BYTES..];
            } else {
                self.head[..bytes.len()].copy_from_slice(bytes);
                self.have = bytes.len();
                return;
            }
        }
    }

    /// Writes to `out`, which is as large as `read` at least, what was read,
    /// with frames merged. `None`, and nothing written, if there are none.
    pub(super) fn merge(&mut self, read: &[u8], out: &mut [u8]) -> Option<usize> {
        let begun = self.finish(read);
        PLAN.try_with(|plan| {
            let mut plan = plan.borrow_mut();
            let (ended, merged) = plan.make(read, begun);
            self.follow(&read[ended..]);
            merged.then(|| plan.write(read, ended, out))
        })
        .unwrap_or_else(|_| {
            self.follow(&read[begun..]);
            None
        })
    }

    /// Goes to the end of the frame that has begun, or of what there is.
    /// Returns how many bytes that takes.
    fn finish(&mut self, bytes: &[u8]) -> usize {
        let mut at = 0;
        if self.have > 0 {
            at = (HEAD_BYTES - self.have).min(bytes.len());
            self.head[self.have..][..at].copy_from_slice(&bytes[..at]);
            self.have += at;
            if self.have < HEAD_BYTES {
                return at;
            }
            self.have = 0;
            self.left = Head::of(&self.head).length;
        }
        let rest = self.left.min(bytes.len() - at);
        self.left -= rest;
        at + rest
    }
}

impl Plan {
    /// Looks at all frames that are there in full from `begun` on. Returns
    /// where the last of them ends, and whether any are merged.
    fn make(&mut self, read: &[u8], begun: usize) -> (usize, bool) {
        self.parts.clear();
        self.pieces.clear();
        self.open.clear();
        self.parts.push(Part::AsIs(0, begun));
        let (mut at, mut merged) = (begun, false);
        while let Some(head) = read[at..].first_chunk().map(Head::of) {
            let (start, end) = (at + HEAD_BYTES, at + HEAD_BYTES + head.length);
            if end > read.len() {
                break;
            }
            if head.may_be_merged() {
                merged |= self.add(head, start, end);
            } else {
                self.pass(head, at, end);
            }
            at = end;
        }
        (at, merged)
    }

    /// A frame that may become part of another.
    fn add(&mut self, head: Head, start: usize, end: usize) -> bool {
        let piece = self.pieces.len();
        self.pieces.push((start, end, None));
        let open = self.open.iter().rposition(|(stream, _)| *stream == head.stream);
        let last = head.flags & END_STREAM != 0;
        if let Some(open) = open
            && let Part::Frame(whole, _, tail) = &mut self.parts[self.open[open].1]
            && whole.length + head.length <= FRAME_BYTES_MAX
        {
            whole.length += head.length;
            whole.flags |= head.flags;
            self.pieces[*tail].2 = Some(piece);
            *tail = piece;
            if last {
                self.open.swap_remove(open);
            }
            return true;
        }
        match (open, last) {
            (Some(open), true) => _ = self.open.swap_remove(open),
            (Some(open), false) => self.open[open].1 = self.parts.len(),
            (None, true) => {}
            (None, false) => self.open.push((head.stream, self.parts.len())),
        }
        self.parts.push(Part::Frame(head, piece, piece));
        false
    }

    /// A frame that passes as it is: its stream's later ones come behind it.
    fn pass(&mut self, head: Head, start: usize, end: usize) {
        if head.goes_on() {
            self.open.clear();
        } else {
            self.open.retain(|(stream, _)| *stream != head.stream);
        }
        match self.parts.last_mut() {
            Some(Part::AsIs(_, until)) if *until == start => *until = end,
            _ => self.parts.push(Part::AsIs(start, end)),
        }
    }

    /// Writes all, and behind it what is not there in full, from `ended` on.
    fn write(&self, read: &[u8], ended: usize, out: &mut [u8]) -> usize {
        let mut at = 0;
        let mut put = |bytes: &[u8]| {
            out[at..][..bytes.len()].copy_from_slice(bytes);
            at += bytes.len();
        };
        for part in &self.parts {
            match part {
                Part::AsIs(start, end) => put(&read[*start..*end]),
                Part::Frame(head, first, _) => {
                    put(&head.bytes());
                    let mut next = Some(*first);
                    while let Some((start, end, following)) = next.map(|piece| self.pieces[piece]) {
                        put(&read[start..end]);
                        next = following;
                    }
                }
            }
        }
        put(&read[ended..]);
        at
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
        let head = Head { length: payload.len(), kind, flags, stream };
        [&head.bytes()[..], payload].concat()
    }

    fn through(merger: &mut Merger, read: &[u8]) -> Vec<u8> {
        let mut out = vec![0; read.len()];
        match merger.merge(read, &mut out) {
            Some(count) => out[..count].to_vec(),
            None => read.to_vec(),
        }
    }

    fn frames(mut bytes: &[u8]) -> Vec<(Head, Vec<u8>)> {
        let mut all = Vec::new();
        while let Some(head) = bytes.first_chunk().map(Head::of) {
            let end = HEAD_BYTES + head.length;
            all.push((head, bytes[HEAD_BYTES..end].to_vec()));
            bytes = &bytes[end..];
        }
        assert!(bytes.is_empty());
        all
    }

    fn is_plain(head: Head) -> bool {
        head.kind == DATA && head.flags & !END_STREAM == 0 && head.length > 0
    }

    /// What each stream says: its bytes as runs, with all else in between.
    fn told(bytes: &[u8]) -> BTreeMap<u32, Vec<(u8, u8, Vec<u8>)>> {
        let mut streams: BTreeMap<u32, Vec<(u8, u8, Vec<u8>)>> = BTreeMap::new();
        for (head, payload) in frames(bytes) {
            let says = streams.entry(head.stream).or_default();
            match says.last_mut() {
                Some((DATA, flags @ 0, run)) if is_plain(head) && !run.is_empty() => {
                    run.extend(payload);
                    *flags = head.flags;
                }
                _ => says.push((head.kind, head.flags, payload)),
            }
        }
        streams
    }

    #[test]
    fn messages_of_streams_that_alternate_become_a_frame_for_each() {
        let mut read = frame(HEADERS, END_HEADERS, 1, b"head");
        for _ in 0..3 {
            read.extend(frame(DATA, 0, 1, b"one"));
            read.extend(frame(DATA, 0, 3, b"three"));
        }
        read.extend(frame(HEADERS, END_HEADERS | END_STREAM, 1, b"trailers"));
        read.extend(frame(DATA, END_STREAM, 3, b"!"));
        let out = [
            frame(HEADERS, END_HEADERS, 1, b"head"),
            frame(DATA, 0, 1, b"oneoneone"),
            frame(DATA, END_STREAM, 3, b"threethreethree!"),
            frame(HEADERS, END_HEADERS | END_STREAM, 1, b"trailers"),
        ];
        assert_eq!(through(&mut Merger::new(), &read), out.concat());
    }

    #[test]
    fn what_has_a_meaning_of_its_own_stays_where_it_is() {
        let a = || frame(DATA, 0, 1, b"a");
        for between in [
            frame(DATA, 0, 1, b""),
            frame(DATA, 8, 1, b"\x01ab"),
            frame(DATA, 0, 1, &[b'x'; SMALL_BYTES_MAX + 1]),
            frame(3, 0, 1, &[0; 4]),
            frame(HEADERS, 0, 3, b"unfinished"),
            frame(CONTINUATION, 0, 3, b"unfinished"),
        ] {
            let read = [a(), between, a()].concat();
            assert_eq!(through(&mut Merger::new(), &read), read);
        }
        let read = [frame(DATA, END_STREAM, 1, b"a"), a()].concat();
        assert_eq!(through(&mut Merger::new(), &read), read, "after its end");
        let many = [0; SMALL_BYTES_MAX];
        let read = frame(DATA, 0, 1, &many).repeat(9);
        let lengths: Vec<usize> =
            frames(&through(&mut Merger::new(), &read)).iter().map(|(head, _)| head.length).collect();
        assert_eq!(lengths, [FRAME_BYTES_MAX, FRAME_BYTES_MAX, SMALL_BYTES_MAX]);
    }

    #[test]
    fn each_stream_says_the_same_wherever_reads_end() {
        let mut draw = fastrand::Rng::with_seed(7);
        for round in 0..2000 {
            let mut sent = Vec::new();
            for _ in 0..draw.usize(1..40) {
                let (kind, stream) = (*draw.choice(&[DATA, DATA, DATA, HEADERS, 3, 8, 9]).unwrap(), draw.u32(0..4));
                let flags = *draw.choice(&[0, 0, 0, 1, 4, 5, 8]).unwrap();
                let length = *draw.choice(&[0, 1, 5, 100, 4096, 5000]).unwrap();
                let payload: Vec<u8> = (0..length).map(|_| draw.u8(..)).collect();
                sent.extend(frame(kind, flags, stream, &payload));
            }
            let mut merger = if round % 2 == 0 { Merger::new() } else { Merger::after_preface() };
            let preface = if round % 2 == 0 { 0 } else { PREFACE_BYTES };
            let all = [vec![b'P'; preface], sent.clone()].concat();
            let (mut rest, mut got) = (&all[..], Vec::new());
            while !rest.is_empty() {
                let most = *draw.choice(&[1, 9, 10, 200, 20_000]).unwrap();
                let (read, later) = rest.split_at(draw.usize(1..=most).min(rest.len()));
                if draw.u8(..) < 30 {
                    merger.follow(read);
                    got.extend(read);
                } else {
                    got.extend(through(&mut merger, read));
                }
                rest = later;
            }
            assert_eq!(got[..preface], all[..preface]);
            assert_eq!(told(&got[preface..]), told(&sent), "round {round}");
        }
    }
}
