//! Stats that a sidecar pushes, beside being scraped.
//!
//! ```proto
//! package zeroscale.v1;
//!
//! service Stats {
//!   rpc Push(metrics.WireStatMessages) returns (PushReply);
//! }
//!
//! message PushReply {}
//! ```
//!
//! One call for each report, and the next one only after the answer: so a
//! receiver that stands still never has more than one stat of a pod to catch
//! up with, and it is a fresh one. Times are not told; they are the receiver's.

/// Path of the one call. It takes [`crate::stats::WireStatMessages`].
pub const PUSH: &str = "/zeroscale.v1.Stats/Push";

/// The answer: the stats were taken.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct PushReply {}
