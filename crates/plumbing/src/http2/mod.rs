//! HTTP/2, both sides, on the `h2` crate: what stands between its frames and
//! our bodies.
//!
//! | job | module |
//! | --- | --- |
//! | a connection's socket, which gathers what is written in one turn | `wire` |
//! | small frames that are read together, made one | `merge` |
//! | bodies that come in | `incoming` |
//! | bodies that go out, as the peer takes them | `pipe` |
//! | heads: what HTTP/2 has no place for, and what it wants | `heads` |
//! | connections of clients, and their streams | `server` |
//!
//! Connections to apps and pods are in [`crate::forward`].

mod heads;
mod incoming;
mod merge;
mod pipe;
mod server;
mod wire;

pub(crate) use heads::for_server;
pub use incoming::Incoming;
pub(crate) use pipe::Pipe;
pub(crate) use server::{Limits, serve};
pub(crate) use wire::Wire;

/// Flow-control windows, of streams and of connections, as the reference
/// announces them.
pub(crate) const WINDOW_BYTES: u32 = 1 << 20;

/// Streams that we reset for faults of the peer's; beyond, the connection ends.
pub(crate) const FAULTY_STREAMS_MAX: usize = 1024;
