//! What a sidecar tells of its requests and of itself: metrics, traces, the
//! log of requests, the log of the process.
//!
//! | job | module |
//! | --- | --- |
//! | what is asked for | [`config`], [`identity`] |
//! | the request path's view | [`observer`], [`watch`], [`facts`] |
//! | counts | [`metrics`] |
//! | traces | [`trace`] |
//! | lines for each request | [`request_log`] |
//! | collectors | `otlp` |
//! | the process's own log | [`process_log`] |
//!
//! # From the chain
//!
//! ```text
//! let facts = RequestFacts { parts: &parts, target, peer, tls, body_length };
//! let mut watch = observer.begin(&facts);      // first of all, before the head is changed
//! watch.proxied();                             // it is counted for the autoscaler
//! watch.queued();                              // it asks for a place (only with a limit)
//! watch.at_app(&mut parts.headers);            // it has one; headers as they go to the app
//! watch.answered(response.status().as_u16());  // the head of the app's answer
//! watch.finish(Outcome { status, end, request_bytes, response_bytes }); // the last byte
//! ```
//!
//! An answer of ours finishes at once (`End::Whole`, or `End::TimedOut` for a
//! limit); one of the app's when its body has ended, so the watch lives in
//! the body. A watch that is dropped counts as left by its client. Refused
//! requests are finished without [`Watch::at_app`], and so are in
//! `http.server.*` alone. Probes go through the same calls.
//!
//! # From `main`
//!
//! [`Config::parse`] → [`Observer::start`] (log its notices) →
//! [`Observer::run`] as a task → [`Observer::close`] last.

pub mod config;
pub mod facts;
mod go_text;
mod go_time;
pub mod identity;
pub mod metrics;
pub mod observer;
mod otlp;
pub mod process_log;
pub mod request_log;
pub mod trace;
pub mod watch;

#[cfg(test)]
mod tests;

pub use config::Config;
pub use facts::RequestFacts;
pub use identity::Identity;
pub use observer::{Observer, Setup};
pub use watch::{End, Outcome, Watch};
