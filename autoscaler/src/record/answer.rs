//! The answer to whoever asks for a recording over HTTP: `GET /record`, with
//! the query of [`super::Ask::parse`]. A line a JSON object, without end.

use super::{Ask, Recording};
use crate::Autoscaler;
use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{Response, StatusCode};
use http_body_util::{Either, Full};

/// Where it is served.
pub const PATH: &str = "/record";

/// A body that is known, or a recording.
pub type Body = Either<Full<Bytes>, Recording>;

/// Begins a recording, or says why not.
pub fn answer(autoscaler: &Autoscaler, query: &str) -> Response<Body> {
    let refusal = |code: StatusCode, why: &str| {
        let mut refusal = Response::new(Either::Left(Full::from(format!("{why}\n"))));
        *refusal.status_mut() = code;
        refusal.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
        refusal
    };
    let ask = match Ask::parse(query) {
        Ok(ask) => ask,
        Err(why) => return refusal(StatusCode::BAD_REQUEST, &why),
    };
    match autoscaler.record(ask) {
        Ok(recording) => {
            let mut answer = Response::new(Either::Right(recording));
            answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/x-ndjson"));
            answer
        }
        Err(refused) => refusal(StatusCode::SERVICE_UNAVAILABLE, refused.as_str()),
    }
}
