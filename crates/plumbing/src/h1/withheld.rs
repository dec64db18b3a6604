//! An answer held back until there is enough of it, as Go's server does where
//! nobody asks it to flush: one that breaks off before leaves nothing behind.

use super::feed::Fed;
use http::HeaderMap;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE};

/// Bytes of the body that end the holding back, the original's.
const BODY_BYTES: usize = 2048;

/// Among the extensions of an answer: hold it back. For strict mode.
#[derive(Clone, Copy, Debug)]
pub struct Withheld;

impl Withheld {
    /// True for an answer of which the original does not flush each piece.
    pub fn is_due(fields: &HeaderMap) -> bool {
        let streams = fields.get(CONTENT_TYPE).is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"));
        fields.contains_key(CONTENT_LENGTH) && !streams
    }

    /// Whether more is to be waited for, with so many bytes there, of which
    /// some are the head.
    pub(super) fn holds(fed: Fed, there: usize, head: usize) -> bool {
        fed == Fed::Waiting && there < head + BODY_BYTES
    }
}
