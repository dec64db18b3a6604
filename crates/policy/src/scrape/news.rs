//! Whether an error of a scrape is news to whoever shows it.

use super::ScrapeError;
use crate::compat::Compat;

/// An error as the reference has it: one of its few constants, or a new value
/// that wraps one, made for this very round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Told {
    /// Which.
    pub error: ScrapeError,
    /// Made anew.
    pub wrapped: bool,
}

/// The last error of one revision's scrapes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct News {
    last: Option<Told>,
}

impl News {
    /// Takes in what the last round came to; true when that is told. The
    /// reference compares by identity, so it tells of an error that wraps
    /// another one each time.
    pub fn note(&mut self, now: Option<Told>, compat: Compat) -> bool {
        let known = match (self.last, now) {
            (None, None) => true,
            (Some(last), Some(now)) if compat == Compat::Strict => last.error == now.error && !last.wrapped,
            (Some(last), Some(now)) => last.error == now.error,
            _ => false,
        };
        if !known {
            self.last = now;
        }
        !known
    }
}
