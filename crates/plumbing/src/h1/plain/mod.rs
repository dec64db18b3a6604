//! Plain exchanges: requests and answers that ask nothing of a proxy but to be
//! passed on, which are most. Their heads are rewritten from bytes to bytes in
//! one pass, and what is left in a buffer goes out of that same buffer.
//!
//! A message is plain by what it does not have: whatever means something to a
//! proxy ([`crate::marks`]), upgrades, chunks, a body that is not here. All
//! else goes the whole way, through a map of its fields; so nothing is decided
//! here that is decided there. A plain request says the same to the app either
//! way, byte for byte (`tests.rs`).

mod answer;
mod call;
mod exchange;
mod fields;
mod heads;
mod relay;
mod request;

pub use call::Called;
pub(super) use exchange::exchange;
pub use relay::{Relay, Source};
pub(super) use request::{Found, HEAD_BYTES_MAX, take};
pub use request::{Plain, Rules};

/// How a plain request is answered.
pub enum Answered<B> {
    /// By an answer that is plain too.
    Relay(Box<Relay>),
    /// By any other.
    Whole(http::Response<B>),
}

#[cfg(test)]
mod tests;
