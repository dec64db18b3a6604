//! From a reason to an answer: the only place that picks a status.

use crate::body::Body;
use crate::headers;
use crate::reason::Reason;
use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_TYPE, HeaderValue, RETRY_AFTER, X_CONTENT_TYPE_OPTIONS};
use http::{Response, StatusCode};
use policy::admit::Refused;
use std::borrow::Cow;
use std::time::Duration;

/// Why a request gets an answer of ours instead of the app's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The stable code.
    pub reason: Reason,
    /// One sentence for the client; no internal address in it.
    pub text: Cow<'static, str>,
    /// When to come back, where that is known.
    pub retry_after: Option<Duration>,
    /// True: this connection is closed after the answer.
    pub close: bool,
    /// The status; the reason's own, but where strict mode keeps the reference's.
    pub status: StatusCode,
}

impl Refusal {
    /// With the reason's own text.
    pub fn new(reason: Reason) -> Refusal {
        Refusal {
            reason,
            text: Cow::Borrowed(default_text(reason)),
            retry_after: default_retry(reason),
            close: false,
            status: reason.status(),
        }
    }

    /// With a text that says more.
    pub fn because(reason: Reason, text: impl Into<Cow<'static, str>>) -> Refusal {
        Refusal { text: text.into(), ..Refusal::new(reason) }
    }

    /// With another status than the reason's own.
    pub fn with_status(mut self, status: StatusCode) -> Refusal {
        self.status = status;
        self
    }

    /// Closes the connection after the answer.
    pub fn closing(mut self) -> Refusal {
        self.close = true;
        self
    }

    /// True when a limit of the request has passed.
    pub fn is_timeout(&self) -> bool {
        matches!(self.reason, Reason::FirstByteTimeout | Reason::IdleTimeout | Reason::TotalTimeout)
    }

    /// The answer.
    pub fn response(&self) -> Response<Body> {
        let mut text = self.text.clone().into_owned();
        // As the reference writes them: a passed limit is the bare text.
        let timeout = self.is_timeout();
        if !timeout {
            text.push('\n');
        }
        let mut response = Response::new(Body::full(Bytes::from(text)));
        *response.status_mut() = self.status;
        let fields = response.headers_mut();
        fields.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
        if !timeout {
            fields.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        }
        fields.insert(headers::REASON, HeaderValue::from_static(self.reason.code()));
        if let Some(span) = self.retry_after {
            fields.insert(RETRY_AFTER, HeaderValue::from(span.as_secs().max(1)));
        }
        if self.close {
            fields.insert(CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }
}

impl From<Refused> for Refusal {
    fn from(why: Refused) -> Refusal {
        Refusal::new(match why {
            Refused::QueueFull => Reason::QueueFull,
            Refused::StartFailed => Reason::StartFailed,
            Refused::StartTimeout => Reason::StartTimeout,
            Refused::RevisionRemoved => Reason::RevisionRemoved,
            Refused::Draining => Reason::Draining,
        })
    }
}

pub(crate) fn default_text(reason: Reason) -> &'static str {
    match reason {
        Reason::NoRoute => "no service answers for this host",
        Reason::QueueFull => "pending request queue full",
        Reason::HeldBytesFull => "no memory left for bodies of waiting requests",
        Reason::WaitTimeout => "no instance had room within the wait limit",
        Reason::FirstByteTimeout | Reason::IdleTimeout | Reason::TotalTimeout => "request timeout",
        Reason::StartFailed => "the service cannot be started",
        Reason::StartTimeout => "the service did not become ready in time",
        Reason::ConnectFailed => "the app cannot be reached",
        Reason::ResetBeforeAnswer => "the app broke off before it answered",
        Reason::BadAnswer => "the app's answer is not valid HTTP",
        Reason::Draining => "shutting down",
        Reason::Malformed => "the request cannot be forwarded",
        Reason::FdLimit => "too many open connections",
        Reason::NoRoom => "no room for another instance",
        Reason::UpgradeTimeout => "the connection lived longer than it may",
        Reason::RevisionRemoved => "the service was removed",
        Reason::WakeLimited => "too many services woken by this caller",
        Reason::ClientGone => "the client left",
    }
}

/// One second where trying again may help: the load is above what is there.
fn default_retry(reason: Reason) -> Option<Duration> {
    match reason {
        Reason::QueueFull
        | Reason::HeldBytesFull
        | Reason::WaitTimeout
        | Reason::FdLimit
        | Reason::NoRoom
        | Reason::Draining
        | Reason::StartFailed
        | Reason::StartTimeout
        | Reason::WakeLimited => Some(Duration::from_secs(1)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_answer_of_ours_names_its_reason() {
        for &reason in Reason::ALL {
            let response = Refusal::new(reason).response();
            assert_eq!(response.status(), reason.status());
            assert_eq!(response.headers()[headers::REASON], reason.code());
        }
    }

    #[test]
    fn each_reason_has_its_page() {
        for &reason in Reason::ALL {
            let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reasons/");
            let page = std::path::Path::new(page).join(format!("{}.md", reason.code()));
            assert!(page.is_file(), "{} is missing", page.display());
        }
    }
}
