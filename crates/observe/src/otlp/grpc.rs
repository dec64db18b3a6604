//! A message by gRPC: one unary call on a connection of its own.

use super::export::SendError;
use super::http::{connect, fields};
use crate::config::Export;
use plumbing::grpc::{self, Call, CallError};

/// A collector says little.
const ANSWER_BYTES_MAX: usize = 64 << 10;

/// Codes after which OTLP allows another try: cancelled, deadline exceeded,
/// resource exhausted, aborted, out of range, unavailable, data loss.
const AGAIN: [u32; 7] = [1, 4, 8, 10, 11, 14, 15];

/// Calls a method with one message.
pub(super) async fn call(export: &Export, agent: &str, method: &str, message: &[u8]) -> Result<(), SendError> {
    let call = Call {
        authority: &export.endpoint.authority(),
        path: method,
        user_agent: agent,
        fields: &fields(export),
        message,
        timeout: export.timeout,
        answer_max: ANSWER_BYTES_MAX,
    };
    match grpc::unary(connect(export).await?, &call).await {
        Ok(_) => Ok(()),
        Err(error @ CallError::Status { code, .. }) if !AGAIN.contains(&code) => {
            Err(SendError::Never(error.to_string()))
        }
        Err(error) => Err(SendError::Again(error.to_string())),
    }
}
