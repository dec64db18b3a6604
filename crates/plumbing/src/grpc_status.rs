//! Answers of ours in the form that a gRPC caller understands.
//!
//! A gRPC library makes little of a plain HTTP answer. It gets one of trailers
//! alone: status 200, and the outcome in `grpc-status`.

use crate::body::Body;
use crate::headers::{HANDBACK, REASON};
use crate::reason::Reason;
use http::header::{CONNECTION, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};

const GRPC_STATUS: HeaderName = HeaderName::from_static("grpc-status");
const GRPC_MESSAGE: HeaderName = HeaderName::from_static("grpc-message");

/// Codes of gRPC, as in its specification.
const DEADLINE_EXCEEDED: HeaderValue = HeaderValue::from_static("4");
const UNIMPLEMENTED: HeaderValue = HeaderValue::from_static("12");
const INTERNAL: HeaderValue = HeaderValue::from_static("13");
const UNAVAILABLE: HeaderValue = HeaderValue::from_static("14");

/// True for the head of a gRPC call, and for that of its answer.
pub fn is_call(fields: &HeaderMap) -> bool {
    let of_grpc = |value: &HeaderValue| {
        let rest = value.as_bytes().strip_prefix(b"application/grpc");
        rest.is_some_and(|rest| matches!(rest.first(), None | Some(b'+' | b';')))
    };
    fields.get(CONTENT_TYPE).is_some_and(of_grpc)
}

/// An answer as a gRPC caller is to get it: one of ours becomes a status, but
/// for a handback, which is for an activator; others stay.
pub fn instead_of(answer: Response<Body>) -> Response<Body> {
    let fields = answer.headers();
    let ours = fields.get(REASON).and_then(|code| Reason::ALL.iter().find(|reason| reason.code() == code));
    let Some(&reason) = ours.filter(|_| !fields.contains_key(HANDBACK) && !is_call(fields)) else { return answer };
    let (mut head, body) = answer.into_parts();
    head.status = StatusCode::OK;
    let fields = &mut head.headers;
    for name in [CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS, CONNECTION] {
        fields.remove(name);
    }
    fields.insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    add(fields, reason);
    Response::from_parts(head, body.emptied())
}

/// The trailers of a call that was cut after its answer had begun.
pub fn trailers(reason: Reason) -> HeaderMap {
    let mut fields = HeaderMap::new();
    fields.insert(REASON, HeaderValue::from_static(reason.code()));
    add(&mut fields, reason);
    fields
}

fn add(fields: &mut HeaderMap, reason: Reason) {
    let code = match reason {
        Reason::FirstByteTimeout | Reason::IdleTimeout | Reason::TotalTimeout | Reason::UpgradeTimeout => {
            DEADLINE_EXCEEDED
        }
        Reason::NoRoute => UNIMPLEMENTED,
        Reason::Malformed | Reason::BadAnswer => INTERNAL,
        _ => UNAVAILABLE,
    };
    fields.insert(GRPC_STATUS, code);
    fields.insert(GRPC_MESSAGE, HeaderValue::from_static(crate::refuse::default_text(reason)));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::refuse::Refusal;

    #[test]
    fn calls_are_known_by_their_content_type() {
        for (text, is) in [
            ("application/grpc", true),
            ("application/grpc+proto", true),
            ("application/grpc;charset=utf-8", true),
            ("application/grpc-web", false),
            ("text/plain", false),
        ] {
            let fields = [(CONTENT_TYPE, HeaderValue::from_static(text))].into_iter().collect();
            assert_eq!(is_call(&fields), is, "{text}");
        }
    }

    #[test]
    fn each_reason_has_a_status_and_what_is_not_ours_stays() {
        for &reason in Reason::ALL {
            let answer = instead_of(Refusal::new(reason).response());
            assert_eq!(answer.status(), StatusCode::OK);
            assert!(answer.headers()[GRPC_STATUS] != "0" && answer.headers()[REASON] == reason.code());
        }
        let mut app = Response::new(Body::empty());
        *app.status_mut() = StatusCode::NOT_FOUND;
        assert_eq!(instead_of(app).status(), StatusCode::NOT_FOUND);
        let mut back = Refusal::new(Reason::QueueFull).response();
        back.headers_mut().insert(HANDBACK, HeaderValue::from_static("n full"));
        assert_eq!(instead_of(back).status(), StatusCode::SERVICE_UNAVAILABLE);
    }
}
