//! The marks between our activator and our sidecar (rules, section 2): an
//! offer is served at once or handed back, and a handback counts only if it
//! repeats the nonce of that very try.

use http::header::{HeaderMap, HeaderValue};
use plumbing::headers;

/// 64 random bits in hex, new for each try.
pub(crate) fn nonce() -> HeaderValue {
    let digits = format!("{:016x}", fastrand::u64(..));
    HeaderValue::from_str(&digits).unwrap_or_else(|_| HeaderValue::from_static("0"))
}

/// Why a sidecar handed a request back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Handback {
    /// No slot is free there.
    Full,
    /// The app refused the connection; nothing was sent.
    NotSent,
}

/// What an answer says, if it hands back the try with this nonce.
pub(crate) fn handback(fields: &HeaderMap, nonce: &HeaderValue) -> Option<Handback> {
    let mark = fields.get(headers::HANDBACK)?.as_bytes();
    let mut words = mark.strip_prefix(nonce.as_bytes())?.split(|byte| *byte == b' ').filter(|word| !word.is_empty());
    match words.next()? {
        b"full" => Some(Handback::Full),
        b"not-sent" => Some(Handback::NotSent),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(mark: &str) -> HeaderMap {
        let mut fields = HeaderMap::new();
        fields.insert(headers::HANDBACK, mark.parse().unwrap());
        fields
    }

    #[test]
    fn only_the_nonce_of_the_very_try_counts() {
        let nonce = HeaderValue::from_static("00c0ffee00c0ffee");
        assert_eq!(handback(&answer("00c0ffee00c0ffee full free=0"), &nonce), Some(Handback::Full));
        assert_eq!(handback(&answer("00c0ffee00c0ffee not-sent"), &nonce), Some(Handback::NotSent));
        for forged in ["11c0ffee00c0ffee full", "full", "", "00c0ffee00c0ffee", "00c0ffee00c0ffee else"] {
            assert_eq!(handback(&answer(forged), &nonce), None, "{forged}");
        }
        assert_eq!(handback(&HeaderMap::new(), &nonce), None);
    }

    #[test]
    fn nonces_differ() {
        assert_ne!(nonce(), nonce());
    }
}
