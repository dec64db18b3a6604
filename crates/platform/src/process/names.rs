//! Names of pods: the revision's name and a suffix, never the same twice.

use policy::world::PodName;

/// Gives names out.
#[derive(Debug)]
pub(super) struct Names {
    first: u64,
    given: u64,
}

/// Letters of a suffix.
const LETTERS: u32 = 5;
const ALPHABET: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";
/// All suffixes.
const ALL: u64 = (ALPHABET.len() as u64).pow(LETTERS);
/// From one suffix to the next. It shares no factor with `ALL`, so that all are
/// used before one comes again.
const STRIDE: u64 = 15_485_863;

impl Names {
    pub(super) fn new() -> Names {
        Names { first: fastrand::u64(0..ALL), given: 0 }
    }

    pub(super) fn next(&mut self, revision: &str) -> PodName {
        let mut rest = (self.first + self.given % ALL * STRIDE) % ALL;
        self.given += 1;
        let mut name = format!("{revision}-");
        for _ in 0..LETTERS {
            let letter = rest % ALPHABET.len() as u64;
            name.push(char::from(ALPHABET[letter as usize]));
            rest /= ALPHABET.len() as u64;
        }
        name.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_are_the_revisions_and_differ() {
        let mut names = Names::new();
        let given: BTreeSet<PodName> = (0..10_000).map(|_| names.next("web-00001")).collect();
        assert_eq!(given.len(), 10_000);
        assert!(given.iter().all(|name| name.starts_with("web-00001-") && name.len() == 15));
    }
}
