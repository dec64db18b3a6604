//! Names that clients choose, and that become labels: numbered, and bounded.

use std::collections::HashMap;
use std::sync::Arc;

/// The number of every name beyond the bound.
pub(super) const OTHER: u16 = 0;

/// How such names are shown.
const OTHER_NAME: &str = "other";

/// Longer names are cut: a label is no place for kilobytes of a client's.
const LONGEST: usize = 256;

/// The first names that came, up to a bound.
pub(super) struct Names {
    bound: usize,
    numbers: HashMap<Arc<str>, u16>,
    names: Vec<Box<str>>,
}

impl Names {
    pub(super) fn new(bound: u16) -> Names {
        Names { bound: usize::from(bound), numbers: HashMap::new(), names: Vec::new() }
    }

    /// The number of a name; new ones get one while there is room.
    pub(super) fn number(&mut self, name: &str) -> u16 {
        let name = shortened(name);
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        if self.is_full() {
            return OTHER;
        }
        self.names.push(name.into());
        let number = u16::try_from(self.names.len()).unwrap_or(OTHER);
        self.numbers.insert(name.into(), number);
        number
    }

    pub(super) fn is_full(&self) -> bool {
        self.names.len() >= self.bound
    }

    pub(super) fn name(&self, number: u16) -> &str {
        usize::from(number).checked_sub(1).and_then(|at| self.names.get(at)).map_or(OTHER_NAME, |name| name)
    }
}

/// A thread's own copy of numbers, so that a known name takes no shared lock.
#[derive(Default)]
pub(super) struct Known {
    last: Option<(Arc<str>, u16)>,
    numbers: HashMap<Arc<str>, u16>,
    /// No further name gets a number: what is not here is `other`.
    complete: bool,
}

impl Known {
    /// The number, if it is known here.
    pub(super) fn number(&mut self, name: &str) -> Option<u16> {
        let name = shortened(name);
        if let Some((last, number)) = &self.last
            && **last == *name
        {
            return Some(*number);
        }
        match self.numbers.get_key_value(name) {
            Some((name, number)) => {
                // Most clients use one name: it is compared, not hashed.
                self.last = Some((name.clone(), *number));
                Some(*number)
            }
            None => self.complete.then_some(OTHER),
        }
    }

    /// Copies what all know.
    pub(super) fn learn(&mut self, names: &Names) {
        self.numbers.clone_from(&names.numbers);
        self.complete = names.is_full();
    }
}

fn shortened(name: &str) -> &str {
    let mut end = name.len().min(LONGEST);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    &name[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_beyond_the_bound_are_other_everywhere() {
        let mut names = Names::new(2);
        let numbers: Vec<u16> = ["a", "b", "a", "c", "d"].iter().map(|name| names.number(name)).collect();
        assert_eq!(numbers, [1, 2, 1, OTHER, OTHER]);
        assert_eq!((names.name(2), names.name(OTHER), names.name(99)), ("b", "other", "other"));
        let mut known = Known::default();
        assert_eq!(known.number("a"), None);
        known.learn(&names);
        assert_eq!((known.number("a"), known.number("a"), known.number("zzz")), (Some(1), Some(1), Some(OTHER)));
    }

    #[test]
    fn long_names_are_cut_at_a_character() {
        let mut names = Names::new(2);
        let number = names.number(&"é".repeat(1000));
        assert_eq!(names.name(number).len(), 256);
    }
}
