//! Faults as an admission webhook tells them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// One fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// What is wrong.
    pub message: String,
    /// With which annotations, sorted.
    pub paths: Vec<String>,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.message, self.paths.join(", "))
    }
}

/// Faults while they are looked for.
#[derive(Default)]
pub(super) struct Refusals(BTreeMap<String, BTreeSet<String>>);

impl Refusals {
    pub(super) fn add(&mut self, message: String, paths: &[&str]) {
        self.0.entry(message).or_default().extend(paths.iter().map(|path| path.to_string()));
    }

    /// A value that does not read, or is none of those there are.
    pub(super) fn invalid(&mut self, value: &str, path: &str) {
        self.add(format!("invalid value: {value}"), &[path]);
    }

    /// A value beyond its bounds, all as they are to be shown.
    pub(super) fn out_of_bounds(&mut self, value: &str, [least, most]: [&str; 2], path: &str) {
        self.add(format!("expected {least} <= {value} <= {most}"), &[path]);
    }

    /// Sorted, those with the same words as one.
    pub(super) fn merged(self) -> Vec<Refusal> {
        let refusal =
            |(message, paths): (String, BTreeSet<String>)| Refusal { message, paths: paths.into_iter().collect() };
        self.0.into_iter().map(refusal).collect()
    }
}
