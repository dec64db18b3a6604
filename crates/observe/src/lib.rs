//! What a component tells of its requests and of itself: metrics, traces, the
//! log of requests. Off, it costs a branch.
//!
//! | job | module |
//! | --- | --- |
//! | what is asked for, and by whom | [`config`], [`identity`], [`component`] |
//! | the request path's view | [`observer`], [`watch`], [`facts`] |
//! | counts | [`metrics`] |
//! | traces | [`trace`] |
//! | lines for each request | [`request_log`] |
//! | collectors | `otlp` |
//!
//! # From the chain
//!
//! ```text
//! let mut watch = observer.begin(&facts);      // first of all, before the head is changed
//! watch.proxied();                             // it is counted for the autoscaler
//! watch.queued();                              // it asks for a place (only with a limit)
//! watch.at_app(&mut parts.headers);            // it has one; headers as they go to the app
//! let body = watch.reads(body);                // counts what is read of the request
//! watch.answered(response.status().as_u16());  // the head of the app's answer
//! watch.passes_on(response)                    // ends with the last byte
//! ```
//!
//! At an activator a request is for one of many revisions (`is_for`), may wait
//! and be tried more than once (`waited`, `at_pod`, `tried`), and may have
//! waited for a wake-up (`stages`).
//!
//! An answer of ours ends at once ([`Watch`]'s `answers`), an upgraded
//! connection with its tunnel (`tunnels`). A watch that is dropped counts as
//! left by its client. Refused requests never see `at_app`, and so are in
//! `http.server.*` alone. Probes go through the same calls.
//!
//! # From `main`
//!
//! [`Config::parse`] → [`Sending::start`] → [`Sending::end`] last.

mod bodies;
pub mod component;
pub mod config;
pub mod facts;
pub mod go_text;
pub mod go_time;
pub mod identity;
pub mod metrics;
pub mod observer;
mod otlp;
pub mod request_log;
mod sending;
pub mod trace;
pub mod watch;

#[cfg(test)]
mod tests;

pub use component::Component;
pub use config::Config;
pub use facts::RequestFacts;
pub use identity::Identity;
pub use observer::{Observer, Setup, Unmet};
pub use sending::Sending;
pub use watch::{End, Outcome, Watch};
