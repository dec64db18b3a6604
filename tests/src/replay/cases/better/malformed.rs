//! Requests that are no HTTP, or not quite.

use super::super::observed::{Held, Observed, holds};
use super::{Check, as_recorded, check};
use policy::compat::Compat;

pub(super) const CHECKS: &[Check] = &[
    check("te-and-cl", "it is refused, or at least the connection ends", |seen| {
        let raw = seen.nth("recv_raw", 0)?;
        holds(raw.ended(), || format!("the connection stays open: {}", raw.shown()))?;
        holds(raw.text("raw").starts_with("HTTP/1."), || format!("no answer: {}", raw.shown()))?;
        at_most(seen, 1)
    }),
    check("duplicate-cl-different", "it is refused", refused),
    check("bad-cl", "it is refused", refused),
    check("te-unknown", "it is refused", refused),
    check("space-before-colon", "it is refused", refused),
    check("missing-host", "it is refused", refused),
    check("two-hosts", "it is refused", refused),
    check("nul-in-header", "it is refused", refused),
    check("garbage-request-line", "it is refused", refused),
    check("obs-fold", "it is unfolded or refused", as_recorded_or_refused),
    check("bare-lf", "it is understood or refused", as_recorded_or_refused),
    check("bad-chunk-size", "it is refused", |seen| {
        // The fault is the client's, so by default 400 will do.
        let by_default = seen.mode == Compat::Better && refused_with(seen, "400").is_ok();
        if !by_default {
            refused_with(seen, recorded_status(seen))?;
        }
        at_most(seen, 1)
    }),
    check("huge-header-ok", "it passes", as_recorded),
    check("huge-header-too-big", "it is refused", |seen| {
        seen.answer(0)?.status(431)?;
        let count = seen.nth("upstream_count", 0)?;
        holds(count.number("count") == Some(0.0), || format!("the app saw it: {}", count.shown()))
    }),
];

/// The recorded status, the end of the connection, and nothing at the app.
fn refused(seen: &Observed) -> Held {
    refused_with(seen, recorded_status(seen))?;
    at_most(seen, 0)
}

fn as_recorded_or_refused(seen: &Observed) -> Held {
    seen.as_recorded().or_else(|why| match refused_with(seen, "400").and_then(|()| at_most(seen, 0)) {
        Ok(()) => Ok(()),
        Err(_) => Err(why),
    })
}

fn refused_with(seen: &Observed, status: &str) -> Held {
    let raw = seen.nth("recv_raw", 0)?;
    let answered = raw.text("raw").split(' ').nth(1) == Some(status);
    holds(answered, || format!("status: expected {status}, got {}", raw.shown()))?;
    holds(raw.ended(), || format!("the connection stays open: {}", raw.shown()))
}

fn recorded_status<'a>(seen: &Observed<'a>) -> &'a str {
    seen.recorded("recv_raw", 0)["raw"].as_str().and_then(|raw| raw.split(' ').nth(1)).unwrap_or_default()
}

fn at_most(seen: &Observed, count: usize) -> Held {
    let requests = seen.requests()?;
    holds(requests.len() <= count, || format!("the app saw {} requests", requests.len()))
}
