//! gRPC's health check.

use super::attempt::connect;
use super::get::USER_AGENT;
use super::spec::Target;
use plumbing::grpc::{self, Call};
use proto::health::{CHECK, HealthCheckRequest, HealthCheckResponse, ServingStatus};
use std::time::Duration;

/// An answer is two bytes; one that is much longer is none.
const ANSWER_BYTES_MAX: usize = 4096;

/// Asks once; passes when the service is serving.
pub(super) async fn ask(target: &Target, service: &str, timeout: Duration) -> Result<(), String> {
    let stream = connect(target).await?;
    let message = proto::encode(&HealthCheckRequest { service: service.to_owned() });
    let call = Call {
        authority: &target.authority(),
        path: CHECK,
        user_agent: USER_AGENT,
        fields: &[],
        message: &message,
        timeout,
        answer_max: ANSWER_BYTES_MAX,
    };
    let answer = grpc::unary(stream, &call).await.map_err(|error| format!("grpc health check failed: {error}"))?;
    let answer: HealthCheckResponse =
        proto::decode(&answer, ANSWER_BYTES_MAX).map_err(|error| format!("grpc health check failed: {error}"))?;
    if answer.status == ServingStatus::Serving as i32 {
        return Ok(());
    }
    Err(format!("service unhealthy (responded with \"{}\")", ServingStatus::name(answer.status)))
}
