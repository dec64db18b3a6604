//! Requests that are no valid HTTP, and what is answered to them: status and
//! text as the reference has them.

use crate::headers;
use crate::reason::Reason;
use http::StatusCode;
use std::fmt;

/// What is wrong with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// 400, with what is wrong, or nothing where the reference says nothing.
    Request(&'static str),
    /// 502, as the reference says it, since the request may have reached the
    /// app: its body is no valid HTTP.
    Body(&'static str),
    /// 414: the target is longer than a target can be.
    TargetTooLong,
    /// 431: the head is longer than the limit, or has too many fields.
    HeadTooLarge,
    /// 501: a transfer coding other than `chunked`.
    TransferEncoding,
    /// 505: HTTP, but not 1.0 or 1.1.
    Version,
    /// 417: an expectation other than `100-continue`.
    Expectation,
}

impl Malformed {
    /// The status of the answer.
    pub fn status(self) -> StatusCode {
        match self {
            Malformed::Request(_) => StatusCode::BAD_REQUEST,
            Malformed::Body(_) => StatusCode::BAD_GATEWAY,
            Malformed::TargetTooLong => StatusCode::URI_TOO_LONG,
            Malformed::HeadTooLarge => StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
            Malformed::TransferEncoding => StatusCode::NOT_IMPLEMENTED,
            Malformed::Version => StatusCode::HTTP_VERSION_NOT_SUPPORTED,
            Malformed::Expectation => StatusCode::EXPECTATION_FAILED,
        }
    }

    /// The body of the answer.
    pub fn text(self) -> String {
        match self {
            Malformed::Request("") => "400 Bad Request".to_owned(),
            Malformed::Request(what) => format!("400 Bad Request: {what}"),
            Malformed::Body(what) => format!("{what}\n"),
            Malformed::TargetTooLong => "414 URI Too Long".to_owned(),
            Malformed::HeadTooLarge => "431 Request Header Fields Too Large".to_owned(),
            Malformed::TransferEncoding => "Unsupported transfer encoding".to_owned(),
            Malformed::Version => "505 HTTP Version Not Supported: unsupported protocol version".to_owned(),
            Malformed::Expectation => String::new(),
        }
    }

    /// The whole answer. The connection ends with it: where the next request
    /// would begin is not known.
    pub(super) fn answer(self) -> Vec<u8> {
        let (status, text) = (self.status(), self.text());
        let plain = if text.is_empty() { "" } else { "Content-Type: text/plain; charset=utf-8\r\n" };
        let (name, reason) = (headers::REASON, Reason::Malformed.code());
        let length = text.len();
        format!(
            "HTTP/1.1 {} {}\r\n{plain}{name}: {reason}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{text}",
            status.as_str(),
            status.canonical_reason().unwrap_or("")
        )
        .into_bytes()
    }
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text())
    }
}
