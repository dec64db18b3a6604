//! HTTP/1.1, both sides, over a socket and nothing else.
//!
//! A proxy needs what libraries for servers and clients leave out: interim
//! answers passed on, `Expect: 100-continue` answered when the body is wanted
//! and not before, answers that reach a client which still uploads, clients
//! noticed when they leave, requests refused that two servers could read
//! differently, and a broken answer that looks broken.
//!
//! | side | modules |
//! | --- | --- |
//! | clients | `server` (a connection), `exchange` (a request on it), `incoming` (its body), `answer`, `presence`, `withheld`, `closing`, `link` (what they share) |
//! | apps and pods | `client` (a connection), `outgoing` and `start` (a request), `reply` and `received` (its answer) |
//! | both | `parse`, `lines`, `fields`, `request`, `malformed` (heads); `decode`, `chunk`, `encode`, `feed` (bodies); `inbox`, `outbox`, `buffers` (bytes); `upgrade`, `date`, `limits` |
//! | both, in short | `plain` (messages that ask nothing of a proxy, from bytes to bytes) |
//! | neither | `bare` (messages as plain bytes, for fuzzing) |
//!
//! Nothing here spawns a task, sets a timer of the runtime, or holds a buffer
//! for a connection that is idle.

mod answer;
#[doc(hidden)]
pub mod bare;
mod buffers;
mod chunk;
mod client;
mod closing;
mod date;
mod decode;
mod encode;
mod error;
mod exchange;
mod feed;
mod fields;
mod inbox;
mod incoming;
pub mod limits;
mod lines;
mod link;
mod malformed;
mod outbox;
mod outgoing;
mod parse;
mod plain;
mod presence;
mod received;
mod reply;
mod request;
mod server;
mod start;
mod upgrade;
mod withheld;

pub use client::Connection;
pub(crate) use date::now as date;
pub use error::BodyError;
pub use incoming::{Incoming, Interim};
pub use malformed::Malformed;
pub use outgoing::{Break, Hold, Options, Outgoing, SendError};
pub use plain::{Answered, Called, Plain, Relay, Rules, Source};
pub use presence::{Doubt, Guess};
pub use received::Received;
#[cfg(feature = "hyper-http1")]
pub(crate) use server::H2_PREFACE;
pub use server::{Conditions, End, Handler, Settings, serve};
pub use upgrade::{NotUpgraded, OnUpgrade, Upgraded};
pub use withheld::Withheld;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::body::Body;

    #[test]
    fn what_is_idle_is_small_and_our_bodies_fit_both_sides() {
        fn fits<B: http_body::Body<Data = bytes::Bytes> + Unpin + Send>() {}
        fits::<Body>();
        fits::<Incoming>();
        fits::<Received<Body>>();
        assert!(size_of::<Connection<Body>>() <= 8 && size_of::<Incoming>() <= 64);
    }
}
