//! The room that all histories have together: at its end the oldest records of
//! the revisions with the most go first.

use super::History;

/// Bytes of all histories together, where nothing else is said.
pub(crate) const BYTES_MAX: usize = 64 << 20;

/// What is made room for at a time, as a share of all: so it is seldom done.
const SHARE: usize = 16;

/// How much of the room is taken.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Room {
    most: usize,
    taken: usize,
    /// Nothing is done up to here: the most, or more when the newest records
    /// alone, which always stay, need it.
    bound: usize,
}

impl Room {
    /// Empty, for so many bytes.
    pub(crate) fn new(most: usize) -> Room {
        Room { most, taken: 0, bound: most }
    }

    /// A history has another size. True when there is too little room now.
    pub(crate) fn changed(&mut self, before: usize, after: usize) -> bool {
        self.taken = (self.taken + after).saturating_sub(before);
        self.taken > self.bound
    }

    /// Counts all anew, and makes room if there is too little.
    pub(crate) fn make<'a>(&mut self, all: impl Iterator<Item = &'a mut History>) {
        let mut all: Vec<&mut History> = all.collect();
        self.taken = all.iter().map(|history| history.bytes()).sum();
        if self.taken > self.most {
            let level = level(all.iter().map(|history| history.bytes()).collect(), self.most - self.most / SHARE);
            all.iter_mut().filter(|history| history.bytes() > level).for_each(|history| history.shrink_to(level));
            self.taken = all.iter().map(|history| history.bytes()).sum();
        }
        self.bound = if self.taken > self.most { self.taken + self.most / SHARE } else { self.most };
    }
}

/// How many bytes each may have so that all have no more than `most`: those
/// that have less keep what they have.
fn level(mut bytes: Vec<usize>, most: usize) -> usize {
    bytes.sort_unstable();
    let (mut left, mut others) = (most, bytes.len());
    for bytes in bytes {
        let each = left / others;
        if bytes > each {
            return each;
        }
        (left, others) = (left - bytes, others - 1);
    }
    usize::MAX
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_with_the_most_give() {
        assert_eq!(level(vec![10, 1, 10], 21), usize::MAX);
        assert_eq!(level(vec![10, 1, 10], 11), 5);
        assert_eq!(level(vec![100, 3, 5], 20), 12);
        assert_eq!(level(vec![4, 4], 0), 0);
        assert_eq!(level(Vec::new(), 0), usize::MAX);
    }
}
