//! `grpc.health.v1`: is a gRPC server, or one of its services, serving?

/// Path of the one call.
pub const CHECK: &str = "/grpc.health.v1.Health/Check";

/// What is asked.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct HealthCheckRequest {
    /// The service; empty = the server as a whole.
    #[prost(string, tag = "1")]
    pub service: String,
}

/// The answer.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct HealthCheckResponse {
    /// A [`ServingStatus`]; values that are not known are kept.
    #[prost(enumeration = "ServingStatus", tag = "1")]
    pub status: i32,
}

/// How a service is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub enum ServingStatus {
    /// It has not been said.
    Unknown = 0,
    /// It serves.
    Serving = 1,
    /// It does not.
    NotServing = 2,
    /// There is no such service.
    ServiceUnknown = 3,
}

impl ServingStatus {
    /// The name that the protocol gives a status; its number where it has none.
    pub fn name(status: i32) -> String {
        match ServingStatus::try_from(status) {
            Ok(ServingStatus::Unknown) => "UNKNOWN".to_owned(),
            Ok(ServingStatus::Serving) => "SERVING".to_owned(),
            Ok(ServingStatus::NotServing) => "NOT_SERVING".to_owned(),
            Ok(ServingStatus::ServiceUnknown) => "SERVICE_UNKNOWN".to_owned(),
            Err(_) => status.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bytes_are_those_of_the_protocol() {
        let request = HealthCheckRequest { service: "svc.X".to_owned() };
        assert_eq!(crate::encode(&request), b"\x0a\x05svc.X");
        let response: HealthCheckResponse = crate::decode(b"\x08\x02", 16).unwrap();
        assert_eq!(ServingStatus::name(response.status), "NOT_SERVING");
        assert_eq!(ServingStatus::name(77), "77");
    }
}
