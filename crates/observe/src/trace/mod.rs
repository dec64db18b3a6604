//! Traces of requests: W3C trace context in and out, a handful of spans a request.
//!
//! Off, nothing here runs and trace headers pass as they came. On, the app
//! gets the trace id that came (or a new one) with a span id of ours;
//! `tracestate` and `baggage` pass as they are, and so does B3, unread.

mod attributes;
mod queue;
mod recorded;
mod request;
mod sampler;
mod span;
mod stdout;

pub use sampler::Sampler;

pub(crate) use queue::SpanQueue;
pub(crate) use recorded::Ended;
pub(crate) use request::RequestTrace;
pub(crate) use span::Span;
pub(crate) use stdout::line;
