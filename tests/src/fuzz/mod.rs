//! Readers of what others write, given what nobody would write.
//!
//! A target is a property of bytes. The engine makes bytes of three kinds:
//! sentences of a small grammar, which get far into a reader; seeds from
//! `tests/fuzz/TARGET.txt`, changed; and inputs that did something new, changed
//! again. What counts as new is what a target says it saw, since there is no
//! compiler here that counts branches. The same seed makes the same run.
//!
//! A finding stays: its input becomes a line of the seeds.

mod corpus;
mod engine;
mod mutate;
mod targets;
mod words;

pub use engine::{Finding, Outcome, run};

use crate::simulation::draw::Draw;

/// One reader, and what must hold of it.
pub struct Target {
    /// Its name on the command line, and of its seeds.
    pub name: &'static str,
    /// What must hold.
    pub about: &'static str,
    /// Escaped seeds, a line each.
    seeds: &'static str,
    /// Pieces that mutations put in.
    words: &'static [&'static str],
    /// A sentence of its grammar.
    sentence: fn(&mut Draw) -> Vec<u8>,
    /// Tries the property. What it saw, to tell new from known; or what is wrong.
    judge: fn(&[u8]) -> Result<u64, String>,
}

/// All there are.
pub const ALL: &[Target] = &[
    targets::template::TARGET,
    targets::readiness::TARGET,
    targets::forwarded::TARGET,
    targets::stat::TARGET,
    targets::request::TARGET,
    targets::answer::TARGET,
    targets::settings::TARGET,
    targets::differential::TARGET,
];
