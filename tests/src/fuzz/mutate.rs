//! Bytes, changed a little.

use crate::simulation::draw::Draw;

/// No input is longer.
pub(super) const LONGEST: usize = 4096;

/// Changes `input` in a few places; `other` lends a piece.
pub(super) fn mutate(input: &mut Vec<u8>, other: &[u8], words: &[&str], draw: &mut Draw) {
    for _ in 0..draw.between(1, 4) {
        once(input, other, words, draw);
    }
    input.truncate(LONGEST);
}

fn once(input: &mut Vec<u8>, other: &[u8], words: &[&str], draw: &mut Draw) {
    const ODD: [u8; 14] = [0, 1, 9, 10, 13, 32, 34, 44, 58, 59, 92, 0x7f, 0x80, 0xff];
    let place = |length: usize, draw: &mut Draw| draw.below(length as u64 + 1) as usize;
    let at = place(input.len(), draw);
    let span = at..(at + draw.between(1, 16) as usize).min(input.len());
    match draw.below(9) {
        0 if at < input.len() => input[at] ^= 1 << draw.below(8),
        1 if at < input.len() => input[at] = draw.of(&ODD),
        2 => input.insert(at, draw.of(&ODD)),
        3 => drop(input.drain(span)),
        4 => {
            let again = input[span].to_vec();
            insert(input, at, &again);
        }
        5 => {
            let (from, to) = (place(other.len(), draw), place(other.len(), draw));
            insert(input, at, &other[from.min(to)..from.max(to)]);
        }
        6 => input.truncate(at),
        7 if at < input.len() && input[at].is_ascii_digit() => input[at] = b'0' + draw.below(10) as u8,
        _ if words.is_empty() => input.insert(at, draw.bits() as u8),
        _ => insert(input, at, draw.of(words).as_bytes()),
    }
}

fn insert(input: &mut Vec<u8>, at: usize, piece: &[u8]) {
    input.splice(at..at, piece.iter().copied());
}
