//! What a request may cost, as it was last agreed on.

use anyhow::Context;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A count may differ from its budget by this share: compilers and the order
/// of wake-ups move it a little.
pub const TOLERANCE: f64 = 0.03;

/// Instructions per request by the name of the work.
pub struct Budget {
    file: PathBuf,
    counts: BTreeMap<String, u64>,
}

/// How a count stands to its budget.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Held {
    /// Within the tolerance.
    Kept,
    /// There is more than was agreed on, or nothing was agreed on.
    Exceeded,
    /// It could be lowered.
    Undercut,
}

impl Budget {
    /// Reads `bench/counts.json`, which may not be there yet.
    ///
    /// # Errors
    /// When it is there and makes no sense.
    pub fn read() -> anyhow::Result<Budget> {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../bench/counts.json");
        let counts = match std::fs::read_to_string(&file) {
            Ok(text) => serde_json::from_str(&text).with_context(|| format!("{}", file.display()))?,
            Err(_) => BTreeMap::new(),
        };
        Ok(Budget { file, counts })
    }

    /// What was agreed on.
    pub fn of(&self, work: &str) -> Option<u64> {
        self.counts.get(work).copied()
    }

    /// Holds a count against it.
    pub fn judge(&self, work: &str, count: u64) -> Held {
        let Some(budget) = self.of(work) else { return Held::Exceeded };
        let share = count as f64 / budget as f64;
        match share {
            _ if share > 1.0 + TOLERANCE => Held::Exceeded,
            _ if share < 1.0 - TOLERANCE => Held::Undercut,
            _ => Held::Kept,
        }
    }

    /// Takes a count for what is agreed on from now on.
    pub fn agree(&mut self, work: &str, count: u64) {
        self.counts.insert(work.to_owned(), count);
    }

    /// Writes the file.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write(&self) -> anyhow::Result<()> {
        let text = serde_json::to_string_pretty(&self.counts)? + "\n";
        std::fs::write(&self.file, text).with_context(|| format!("{}", self.file.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_is_held_against_what_was_agreed_on() {
        let mut budget = Budget { file: PathBuf::new(), counts: BTreeMap::new() };
        assert_eq!(budget.judge("get", 1), Held::Exceeded);
        budget.agree("get", 10_000);
        for (count, held) in
            [(10_000, Held::Kept), (10_290, Held::Kept), (10_310, Held::Exceeded), (9_690, Held::Undercut)]
        {
            assert_eq!(budget.judge("get", count), held, "{count}");
        }
    }
}
