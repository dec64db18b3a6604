//! Messages on the wire.
//!
//! | job | module |
//! | --- | --- |
//! | stats, from sidecars and activators to the autoscaler | [`stats`] |
//! | the call by which sidecars push stats | [`push`] |
//! | the stream by which activators report them | [`report`] |
//! | stats, read without copies | [`borrowed`] |
//! | the health check of gRPC servers | [`health`] |
//!
//! The structs are written by hand, since a compiler for protocol files is a
//! heavy thing to need for nine messages. Field numbers are the wire contract:
//! never change one, never use one again.

pub mod borrowed;
pub mod health;
pub mod push;
pub mod report;
pub mod stats;

use prost::Message;

/// Why bytes are no message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// More than the reader takes.
    #[error("a message of {bytes} bytes; at most {most} are taken")]
    TooLong {
        /// Its length.
        bytes: usize,
        /// What is taken.
        most: usize,
    },
    /// Shorter than it says of itself.
    #[error("it ends in the middle of a field")]
    CutOff,
    /// Not in the format.
    #[error("{0}")]
    Format(#[from] prost::DecodeError),
}

/// Reads one message of at most `most` bytes.
///
/// # Errors
/// When it is longer, or no message of this kind.
pub fn decode<M: Message + Default>(bytes: &[u8], most: usize) -> Result<M, Malformed> {
    if bytes.len() > most {
        return Err(Malformed::TooLong { bytes: bytes.len(), most });
    }
    Ok(M::decode(bytes)?)
}

/// The message's bytes. Zero values are left out, fields stand in the order
/// of their numbers.
pub fn encode<M: Message>(message: &M) -> Vec<u8> {
    message.encode_to_vec()
}
