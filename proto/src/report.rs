//! Stats that an activator reports, over one stream for as long as it lasts.
//!
//! ```proto
//! package zeroscale.v1;
//!
//! service Stats {
//!   rpc Report(stream Batch) returns (stream Receipt);
//! }
//!
//! message Batch {
//!   uint64 number = 1;                   // one more than the last one's
//!   metrics.WireStatMessages stats = 2;
//!   bool poke = 3;                       // the first sign of load at zero
//!   uint64 age_millis = 4;               // when it left: how old it was
//! }
//!
//! message Receipt { uint64 number = 1; } // this one and all before it
//! ```
//!
//! The receipts are what lets a sender know that a poke has not been lost with
//! its connection. Ages instead of times: clocks of two machines differ.

use crate::stats::WireStatMessages;

/// Path of the call.
pub const REPORT: &str = "/zeroscale.v1.Stats/Report";

/// Stats that travel together.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Batch {
    /// One more than the last one's.
    #[prost(uint64, tag = "1")]
    pub number: u64,
    /// The entries.
    #[prost(message, optional, tag = "2")]
    pub stats: Option<WireStatMessages>,
    /// True for the first sign of load at zero.
    #[prost(bool, tag = "3")]
    pub poke: bool,
    /// How old it was when it left, in milliseconds.
    #[prost(uint64, tag = "4")]
    pub age_millis: u64,
}

/// Says that a batch was taken, and all before it.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct Receipt {
    /// The batch's.
    #[prost(uint64, tag = "1")]
    pub number: u64,
}
