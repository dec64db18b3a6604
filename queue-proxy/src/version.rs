//! Which versions of HTTP the app speaks.
//!
//! A request goes on in the version it came in. Where the app does not speak
//! that one, it goes in the other.

use crate::sidecar::Sidecar;
use http::{Version, request};
use plumbing::conn::Caller;
use plumbing::{headers, target};
use std::sync::atomic::{AtomicU8, Ordering};

/// What is known of one app.
#[derive(Debug, Default)]
pub(crate) struct AppVersion(AtomicU8);

const UNKNOWN: u8 = 0;
const HTTP1_ALONE: u8 = 1;
const HTTP2_ALONE: u8 = 2;
const HTTP2_TOO: u8 = 3;

impl AppVersion {
    /// It made nothing of HTTP/1, and spoke HTTP/2. True if this is news, and
    /// so a reason to try again.
    pub(crate) fn turned_out_http2(&self) -> bool {
        self.0.swap(HTTP2_ALONE, Ordering::Relaxed) != HTTP2_ALONE
    }

    /// It is gone: the next may speak another.
    pub(crate) fn forget(&self) {
        self.0.store(UNKNOWN, Ordering::Relaxed);
    }
}

/// Puts a request into the version in which it goes to the app.
pub(crate) async fn choose(sidecar: &Sidecar, caller: &Caller, parts: &mut request::Parts) {
    let known = &sidecar.app_version.0;
    if parts.version != Version::HTTP_2 {
        // Another protocol can be asked for in HTTP/1 alone.
        if known.load(Ordering::Relaxed) == HTTP2_ALONE && headers::upgrade_protocol(&parts.headers).is_none() {
            target::in_version(parts, Version::HTTP_2);
        }
        return;
    }
    let mut seen = known.load(Ordering::Relaxed);
    if seen == UNKNOWN {
        let too = caller.worker.pool().speaks_http2(sidecar.config.app).await;
        seen = if too { HTTP2_TOO } else { HTTP1_ALONE };
        known.store(seen, Ordering::Relaxed);
    }
    if seen == HTTP1_ALONE {
        target::in_version(parts, Version::HTTP_11);
    }
}
