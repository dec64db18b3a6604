//! True and false.

use super::Misread;

/// Reads one of the twelve spellings, and nothing else.
///
/// # Errors
/// [`Misread::Syntax`].
pub fn boolean(text: &str) -> Result<bool, Misread> {
    match text {
        "1" | "t" | "T" | "true" | "True" | "TRUE" => Ok(true),
        "0" | "f" | "F" | "false" | "False" | "FALSE" => Ok(false),
        _ => Err(Misread::syntax("ParseBool", text)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_known_spellings_are_taken() {
        assert_eq!(["1", "T", "True"].map(boolean), [Ok(true), Ok(true), Ok(true)]);
        assert_eq!(["0", "f", "FALSE"].map(boolean), [Ok(false), Ok(false), Ok(false)]);
        for odd in ["", "yes", "tRUE", " true", "10"] {
            assert!(boolean(odd).is_err(), "{odd:?}");
        }
    }
}
