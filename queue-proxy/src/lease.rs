//! The busy lease: the app says that it works in the background.
//!
//! Without it an app that answers first and works afterwards looks idle, and
//! is scaled down in the middle of its work. A lease is counted as one request
//! in progress and holds the end of a drain. There is one per pod, with an
//! end; each call sets that end anew. It takes no slot. Strict mode has none.

use crate::sidecar::Sidecar;
use http::HeaderMap;
use plumbing::duration;
use plumbing::headers::LEASE;
use policy::compat::Compat;
use std::time::Duration;

/// Longest time at once: an app that has died is forgotten after that.
pub(crate) const LEASE_MAX: Duration = Duration::from_secs(3600);

/// Reads the length of a lease; zero ends it.
///
/// # Errors
/// What is wrong with it, in words.
pub(crate) fn span(text: &str) -> Result<Duration, String> {
    let span = duration::parse(text)?;
    if span > LEASE_MAX {
        let longest = duration::text(LEASE_MAX);
        return Err(format!("`{text}` is more than {longest}, which is the most at a time; it can be renewed"));
    }
    Ok(span)
}

/// Takes a lease out of the head of an app's answer: the client need not know.
pub(crate) fn heard(sidecar: &Sidecar, fields: &mut HeaderMap) {
    if sidecar.config.compat == Compat::Strict {
        return;
    }
    let Some(value) = fields.remove(LEASE) else { return };
    match span(&String::from_utf8_lossy(value.as_bytes())) {
        Ok(span) => sidecar.lease(span),
        // Once: an app that says it wrong does so in each answer.
        Err(fault) if sidecar.lease_fault.set(()).is_ok() => {
            tracing::warn!(fault, "a lease of the app makes no sense; later ones like it are not told ({LEASE})");
        }
        Err(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_is_at_most_an_hour_and_what_makes_no_sense_is_named() {
        assert_eq!(span("10m"), Ok(Duration::from_secs(600)));
        assert_eq!((span("1h"), span("0")), (Ok(LEASE_MAX), Ok(Duration::ZERO)));
        for wrong in ["", "10", "-5s", "soon", "61m", "3600001ms"] {
            assert!(span(wrong).unwrap_err().contains(wrong), "{wrong}");
        }
        assert!(span("61m").unwrap_err().contains("more than 1h0m0s"));
    }
}
