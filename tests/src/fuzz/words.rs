//! Help for sentences.

use crate::simulation::draw::Draw;
use std::hash::{DefaultHasher, Hash, Hasher};

/// One of them, as text.
pub(super) fn one<'a>(draw: &mut Draw, of: &[&'a str]) -> &'a str {
    draw.of(of)
}

/// What was seen, as one number.
pub(super) fn seen(what: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    what.hash(&mut hasher);
    hasher.finish()
}

/// Roughly how many: so that each length is not news.
pub(super) fn about(number: usize) -> u32 {
    usize::BITS - number.leading_zeros()
}

/// # Errors
/// `why`, when it does not hold.
pub(super) fn must(holds: bool, why: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(why()) }
}
