//! From bytes to lines, and how many of them may pass. Pure.

use tokio::time::Instant;

/// Cuts bytes into lines of bounded length.
pub(super) struct Lines {
    limit: usize,
    /// The begun line, never longer than `limit`.
    begun: Vec<u8>,
    /// True while the rest of a line that was too long is skipped.
    skipping: bool,
}

impl Lines {
    pub(super) fn new(limit: usize) -> Lines {
        Lines { limit: limit.max(1), begun: Vec::new(), skipping: false }
    }

    /// Calls `pass` for each line that ends within `bytes`, or is cut there.
    pub(super) fn take_in(&mut self, bytes: &[u8], mut pass: impl FnMut(&[u8])) {
        let mut rest = bytes;
        while !rest.is_empty() {
            let end = rest.iter().position(|byte| *byte == b'\n');
            let (piece, after) = match end {
                Some(end) => (&rest[..end], &rest[end + 1..]),
                None => (rest, &rest[rest.len()..]),
            };
            self.add(piece, &mut pass);
            if end.is_some() {
                if !self.skipping {
                    pass(self.begun.strip_suffix(b"\r").unwrap_or(&self.begun));
                }
                self.begun.clear();
                self.skipping = false;
            }
            rest = after;
        }
    }

    /// Passes on a last line without an end.
    pub(super) fn finish(&mut self, mut pass: impl FnMut(&[u8])) {
        if !self.begun.is_empty() {
            pass(&self.begun);
            self.begun.clear();
        }
    }

    fn add(&mut self, piece: &[u8], pass: &mut impl FnMut(&[u8])) {
        if self.skipping {
            return;
        }
        let room = self.limit - self.begun.len();
        self.begun.extend_from_slice(&piece[..piece.len().min(room)]);
        if piece.len() > room {
            pass(&self.begun);
            self.begun.clear();
            self.skipping = true;
        }
    }
}

/// A bucket of bytes that fills at a rate.
pub(super) struct Ration {
    rate: f64,
    burst: f64,
    left: f64,
    filled: Instant,
    dropped: u64,
}

/// What a line costs beside its bytes: it becomes an event of the log.
const LINE_COST: usize = 64;

impl Ration {
    pub(super) fn new(rate: u32, burst: u32, now: Instant) -> Ration {
        let burst = f64::from(burst.max(1));
        Ration { rate: f64::from(rate), burst, left: burst, filled: now, dropped: 0 }
    }

    pub(super) fn refill(&mut self, now: Instant) {
        let gained = now.duration_since(self.filled).as_secs_f64() * self.rate;
        self.left = (self.left + gained).min(self.burst);
        self.filled = now;
    }

    /// Takes a line of this length from the bucket, or counts it as dropped.
    pub(super) fn allows(&mut self, length: usize) -> bool {
        if self.left <= 0.0 {
            self.dropped += 1;
            return false;
        }
        self.left -= (length + LINE_COST) as f64;
        true
    }

    pub(super) fn dropped(&self) -> u64 {
        self.dropped
    }

    pub(super) fn take_dropped(&mut self) -> u64 {
        std::mem::take(&mut self.dropped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn cut(limit: usize, pieces: &[&str]) -> Vec<String> {
        let mut lines = Lines::new(limit);
        let mut seen = Vec::new();
        let mut note = |line: &[u8]| seen.push(String::from_utf8_lossy(line).into_owned());
        for piece in pieces {
            lines.take_in(piece.as_bytes(), &mut note);
        }
        lines.finish(&mut note);
        seen
    }

    #[test]
    fn lines_are_joined_across_reads_and_lose_their_ends() {
        assert_eq!(cut(80, &["one\ntw", "o\r\n\nthr", "ee"]), ["one", "two", "", "three"]);
    }

    #[test]
    fn a_long_line_is_cut_once_and_its_rest_is_skipped() {
        assert_eq!(cut(4, &["abcdef", "ghi\nxy\n"]), ["abcd", "xy"]);
        assert_eq!(cut(4, &["abcd\nefgh"]), ["abcd", "efgh"]);
    }

    #[test]
    fn beyond_the_burst_lines_are_dropped_until_the_bucket_fills_again() {
        let start = Instant::now();
        let mut ration = Ration::new(1000, 100, start);
        assert!(ration.allows(60));
        assert!(!ration.allows(60));
        assert!(!ration.allows(60));
        ration.refill(start + Duration::from_millis(100));
        assert!(ration.allows(60));
        assert_eq!(ration.take_dropped(), 2);
        assert_eq!(ration.take_dropped(), 0);
    }
}
