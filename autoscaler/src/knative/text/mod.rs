//! Values as Knative's settings write them, with the grammar and the error
//! texts of the parsers that read them there.
//!
//! [`plumbing::duration`] is the lenient reader of our own flags; this one
//! takes what Knative takes, signs and nanoseconds included, and refuses what
//! it refuses.

mod boolean;
mod decimal;
mod duration;
mod float;
mod quote;
mod show;

pub use boolean::boolean;
pub use decimal::{int32, int64};
pub use duration::duration;
pub use float::float;
pub use show::{show_duration, show_float};

/// Why a text is no value, in the reference's words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Misread {
    /// It does not have the form of one.
    Syntax(String),
    /// It has, but the value does not fit.
    Range(String),
}

impl Misread {
    /// The sentence.
    pub fn as_str(&self) -> &str {
        match self {
            Misread::Syntax(text) | Misread::Range(text) => text,
        }
    }

    fn syntax(parser: &str, text: &str) -> Misread {
        Misread::Syntax(format!("strconv.{parser}: parsing {}: invalid syntax", quote::quoted(text)))
    }

    fn range(parser: &str, text: &str) -> Misread {
        Misread::Range(format!("strconv.{parser}: parsing {}: value out of range", quote::quoted(text)))
    }
}
