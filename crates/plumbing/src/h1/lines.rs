//! Lines of a head, before it is parsed: where the head ends, and folded
//! fields made whole.

/// How far an unfinished head has been looked through. A head that comes in
/// small pieces is not parsed anew for each: only once its end is there.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Scan {
    looked: usize,
    pub(super) unfinished: bool,
}

impl Scan {
    /// Length of the head, its empty line included, once that is there.
    pub(super) fn end(&mut self, input: &[u8]) -> Option<usize> {
        let from = self.looked.min(input.len());
        let end = (from..input.len())
            .find(|at| input[*at] == b'\n' && (input[..*at].ends_with(b"\n") || input[..*at].ends_with(b"\n\r")));
        self.looked = input.len();
        end.map(|at| at + 1)
    }

    /// From now on, look for the end first.
    pub(super) fn wait(&mut self) {
        self.unfinished = true;
    }
}

/// Bytes of line ends before a head: a client may send some behind a body.
pub(super) fn empty_lines(input: &[u8]) -> usize {
    let mut at = 0;
    loop {
        match &input[at..] {
            [b'\n', ..] => at += 1,
            [b'\r', b'\n', ..] => at += 2,
            _ => return at,
        }
    }
}

/// True if a line begins with a blank: a folded field, or no HTTP at all.
pub(super) fn has_fold(input: &[u8]) -> bool {
    input.windows(2).any(|pair| pair[0] == b'\n' && is_blank(pair[1]))
}

fn is_blank(byte: u8) -> bool {
    byte == b' ' || byte == b'\t'
}

/// The same head with folded fields on one line each, joined by one space.
/// `None` where that would be guessing: no field before the fold, or one that
/// frames or routes the message, which others may read otherwise.
pub(super) fn unfold(head: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(head.len());
    let mut last_field = None;
    for (number, line) in head.split_inclusive(|byte| *byte == b'\n').enumerate() {
        if !line.first().is_some_and(|byte| is_blank(*byte)) {
            last_field = (number > 0).then_some(out.len());
            out.extend_from_slice(line);
            continue;
        }
        let field = &out[last_field?..];
        if [&b"content-length:"[..], b"transfer-encoding:", b"host:"]
            .iter()
            .any(|name| field.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name)))
        {
            return None;
        }
        // A bare CR or any other control stays, to be refused by the parser.
        while out.last().is_some_and(|byte| matches!(byte, b' ' | b'\t' | b'\n')) || out.ends_with(b"\r") {
            out.pop();
        }
        let more = line.trim_ascii();
        if !more.is_empty() && !out.ends_with(b":") {
            out.push(b' ');
        }
        out.extend_from_slice(more);
        out.extend_from_slice(b"\r\n");
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folds_are_joined_by_one_space() {
        for (head, whole) in [
            (&b"GET / HTTP/1.1\r\nX-A: 1\r\n  2\r\n\r\n"[..], &b"GET / HTTP/1.1\r\nX-A: 1 2\r\n\r\n"[..]),
            (b"GET / HTTP/1.1\nX-A: 1 \n\t2\n \n 3\nB: c\n\n", b"GET / HTTP/1.1\nX-A: 1 2 3\r\nB: c\n\n"),
            (b"GET / HTTP/1.1\r\nX-A:\r\n 2\r\n\r\n", b"GET / HTTP/1.1\r\nX-A:2\r\n\r\n"),
        ] {
            assert_eq!(unfold(head).unwrap().escape_ascii().to_string(), whole.escape_ascii().to_string());
        }
    }

    #[test]
    fn folds_that_leave_room_for_doubt_are_refused() {
        for head in [
            &b"GET / HTTP/1.1\r\n X-A: 1\r\n\r\n"[..],
            b" GET / HTTP/1.1\r\n\r\n",
            b"GET / HTTP/1.1\r\nTransfer-Encoding:\r\n chunked\r\n\r\n",
            b"GET / HTTP/1.1\r\ncontent-length: 1\r\n 2\r\n\r\n",
            b"GET / HTTP/1.1\r\nHOST: a\r\n b\r\n\r\n",
        ] {
            assert!(unfold(head).is_none(), "{}", head.escape_ascii());
        }
    }

    #[test]
    fn the_end_of_a_head_is_found_in_pieces() {
        for head in [&b"GET / HTTP/1.1\r\nA: 1\r\n\r\nbody\n\n"[..], b"GET / HTTP/1.1\nA: 1\n\nbody\n\n"] {
            let end = head.windows(4).position(|four| four == b"body").unwrap();
            for step in 1..head.len() {
                let mut scan = Scan::default();
                let found = (0..=head.len()).step_by(step).find_map(|length| scan.end(&head[..length]));
                assert_eq!(found.or_else(|| scan.end(head)), Some(end), "step {step}");
            }
        }
    }
}
