//! What each of our proxies answers alike to probes.

use crate::body::Body;
use crate::headers;
use crate::reason::Reason;
use crate::refuse::Refusal;
use http::Response;
use http::header::HeaderValue;

/// To an ingress that asks whether its path is programmed: the hash comes back;
/// without one the prober is at fault.
pub fn ingress(hash: Option<&HeaderValue>) -> Response<Body> {
    let Some(hash) = hash.filter(|hash| !hash.is_empty()) else {
        let text = "a probe request must contain a non-empty \"K-Network-Hash\" header";
        return Refusal::because(Reason::Malformed, text).response();
    };
    let mut response = Response::new(Body::empty());
    response.headers_mut().insert(headers::NETWORK_HASH, hash.clone());
    response
}
