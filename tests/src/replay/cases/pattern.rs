//! Regular expressions as rows write them.
//!
//! Rows were written for another language: two of them look ahead, as in
//! `-(?!b7ad6b7169203331)[0-9a-f]{16}-01$`, which the engine here does not
//! do. So `A(?!B)C` is read as: `AC` matches, and `AB` does not. That is the
//! same where `A` matches at one place only, as in those rows.

use anyhow::Context;
use regex::Regex;

/// One expression.
#[derive(Debug)]
pub struct Pattern {
    wanted: Regex,
    unwanted: Option<Regex>,
}

impl Pattern {
    /// Reads an expression.
    ///
    /// # Errors
    /// When it is none.
    pub fn new(text: &str) -> anyhow::Result<Pattern> {
        let regex = |text: &str| Regex::new(text).context("malformed row: bad expression");
        let parts = text.split_once("(?!").and_then(|(before, rest)| Some((before, rest.split_once(')')?)));
        Ok(match parts {
            None => Pattern { wanted: regex(text)?, unwanted: None },
            Some((before, (not, after))) => Pattern {
                wanted: regex(&format!("{before}{after}"))?,
                unwanted: Some(regex(&format!("{before}{not}"))?),
            },
        })
    }

    /// Whether it matches somewhere in `text`.
    pub fn is_match(&self, text: &str) -> bool {
        self.wanted.is_match(text) && !self.unwanted.as_ref().is_some_and(|unwanted| unwanted.is_match(text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_must_not_follow_is_honoured() {
        let pattern = Pattern::new("^a-(?!77)[0-9]{2}-z$").unwrap();
        assert!(pattern.is_match("a-78-z"));
        assert!(!pattern.is_match("a-77-z"));
        assert!(!pattern.is_match("a-7-z"));
    }

    #[test]
    fn a_bad_expression_is_named() {
        assert!(Pattern::new("(").is_err());
    }
}
