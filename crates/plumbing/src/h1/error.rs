//! Why a body broke off.

use std::io;

/// Why a body that came over HTTP/1 broke off.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BodyError {
    /// The connection ended before the body did.
    #[error("unexpected EOF")]
    Truncated,
    /// The body is not framed as HTTP says.
    #[error("{0}")]
    Malformed(&'static str),
    /// The connection failed.
    #[error("{0}")]
    Connection(String),
    /// The exchange that the body belongs to is over.
    #[error("the exchange is over")]
    Over,
    /// On an answer: the request's own body, which was still being sent, failed.
    #[error("the request's body failed: {0}")]
    RequestBody(String),
}

impl From<io::Error> for BodyError {
    fn from(error: io::Error) -> BodyError {
        BodyError::Connection(error.to_string())
    }
}
