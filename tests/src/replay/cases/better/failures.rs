//! Apps that fail, and clients that leave half.

use super::super::observed::{Held, Observed, holds};
use super::{Check, check};
use policy::compat::Compat;

pub(super) const CHECKS: &[Check] = &[
    check("app-not-listening", "both are 502 and the connection stays", |seen| {
        for number in 0..2 {
            bad_gateway(seen, number)?;
        }
        Ok(())
    }),
    check("app-slow-start", "it is refused or held, and served later", |seen| {
        // Holding it for a short time is allowed.
        seen.answer(0)?.status_among(&[502, 200])?;
        seen.answer(1)?.status(200)?;
        seen.answer(1)?.body("ok")
    }),
    check("app-closes-before-response", "both are 502 and each was sent once", |seen| {
        bad_gateway(seen, 0)?;
        bad_gateway(seen, 1)?;
        app_saw_as_recorded(seen)
    }),
    check("app-resets-before-response", "it is 502", |seen| bad_gateway(seen, 0)),
    check("app-malformed-response", "it is 502", |seen| bad_gateway(seen, 0)),
    check("stale-keepalive-post-not-retried", "it was sent once: 502, or served on a new connection", |seen| {
        seen.answer(0)?.status(200)?;
        // By default it does not go on a connection that may end any moment.
        if seen.mode == Compat::Better && seen.answer(1)?.code() == Some(200) {
            let requests = seen.requests()?.len();
            return holds(requests == 2, || format!("the app saw {requests} requests"));
        }
        bad_gateway(seen, 1)?;
        app_saw_as_recorded(seen)
    }),
    check("app-truncates-length", "the head and the part that came are there, then it is cut", |seen| {
        let answer = seen.answer(0)?;
        answer.status(200)?;
        answer.body("part")?;
        holds(answer.is("incomplete"), || format!("it passes for whole: {}", answer.shown()))
    }),
    check("client-half-close", "the client that waits is answered", answered_after_half_close),
    check("client-half-close-late", "the client that waits is answered", answered_after_half_close),
];

fn bad_gateway(seen: &Observed, number: usize) -> Held {
    let answer = seen.answer(number)?;
    answer.status(502)?;
    let open = answer.text("connection");
    holds(open == "open", || format!("the connection is {open} after it"))
}

fn app_saw_as_recorded(seen: &Observed) -> Held {
    let last = seen.case.steps.iter().zip(seen.got).rfind(|(step, _)| step.op.name() == "upstream");
    match last {
        Some((step, got)) => {
            super::super::compare::step(step, got, seen.slack).map_err(|miss| format!("what the app saw: {miss:?}"))
        }
        None => Err("the app was not asked".to_owned()),
    }
}

fn answered_after_half_close(seen: &Observed) -> Held {
    let answer = seen.answer(0)?;
    answer.status(200)?;
    answer.body("ok")?;
    let requests = seen.requests()?;
    holds(requests.len() == 1, || format!("the app saw {} requests", requests.len()))
}
