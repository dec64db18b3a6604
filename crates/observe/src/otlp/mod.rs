//! Telemetry sent to a collector, in OpenTelemetry's protocol.
//!
//! The messages are prost structs for the part that is sent, posted over
//! HTTP/1.1 or called over gRPC; no SDK. What cannot be sent is counted and
//! told once; nothing waits for a collector but the task that sends.

mod export;
mod grpc;
mod http;
mod messages;
mod metrics;
mod spans;

#[cfg(test)]
mod tests;

pub(crate) use export::{Signal, Uplink};
