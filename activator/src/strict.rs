//! What only strict mode does: the reference's answers, its timers and its
//! buffering, word for word.

use http::{Response, StatusCode};
use plumbing::body::Body;
use plumbing::reason::Reason;
use plumbing::refuse::Refusal;
use std::borrow::Cow;
use std::time::Duration;

/// How long a pod that has been told `Expect: 100-continue` may take to ask
/// for the body before it is sent all the same.
pub(crate) const EXPECT_PATIENCE: Duration = Duration::from_secs(1);

/// What the client of a request whose limit has passed is told, in both modes.
pub(crate) const TIMEOUT_TEXT: &str = "activator request timeout";

/// An answer of ours in the reference's words.
pub(crate) fn answer(refusal: Refusal) -> Response<Body> {
    match refusal.reason {
        // Whatever else fails between the lookup and the pod.
        Reason::RevisionRemoved => {
            let mut response = Response::new(Body::empty());
            *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
            response
        }
        // The wait is part of the request's time, so this is the same limit.
        Reason::WaitTimeout | Reason::NoRoom => {
            let reason = Reason::TotalTimeout;
            Refusal { reason, text: Cow::Borrowed(TIMEOUT_TEXT), retry_after: None, ..refusal }.response()
        }
        _ => refusal.response(),
    }
}

/// A limit of the request has passed.
pub(crate) fn timed_out(reason: Reason) -> Refusal {
    Refusal::because(reason, TIMEOUT_TEXT)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    fn text(refusal: Refusal) -> (StatusCode, Bytes) {
        use hyper::body::Body as _;
        let answer = answer(refusal);
        let (status, mut body) = (answer.status(), answer.into_body());
        let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
        let frame = std::pin::Pin::new(&mut body).poll_frame(&mut cx);
        let std::task::Poll::Ready(frame) = frame else { return (status, Bytes::new()) };
        (status, frame.and_then(|frame| frame.ok()?.into_data().ok()).unwrap_or_default())
    }

    #[test]
    fn the_words_are_the_references() {
        let late = Refusal::new(Reason::WaitTimeout).with_status(StatusCode::GATEWAY_TIMEOUT);
        assert_eq!(text(late), (StatusCode::GATEWAY_TIMEOUT, Bytes::from(TIMEOUT_TEXT)));
        let passed = timed_out(Reason::FirstByteTimeout);
        assert_eq!(text(passed), (StatusCode::GATEWAY_TIMEOUT, Bytes::from(TIMEOUT_TEXT)));
        let gone = Refusal::new(Reason::RevisionRemoved);
        assert_eq!(text(gone), (StatusCode::INTERNAL_SERVER_ERROR, Bytes::new()));
        let full = Refusal::new(Reason::QueueFull);
        assert_eq!(text(full), (StatusCode::SERVICE_UNAVAILABLE, Bytes::from("pending request queue full\n")));
    }
}
