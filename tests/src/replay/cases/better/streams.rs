//! Answers that are cut, upgrades, and HTTP/2.

use super::super::observed::{Held, Observed, holds};
use super::{Check, check};

pub(super) const CHECKS: &[Check] = &[
    check("timeout-request-mid-chunked", "the cut shows, and no text of ours is in the body", cut_shows),
    check("timeout-request-mid-length", "the cut shows, and no text of ours is in the body", cut_shows),
    check("timeout-idle-mid-stream", "the cut shows, and no text of ours is in the body", cut_shows),
    check("timeout-websocket-idle-active", "bytes keep it alive, silence ends it", |seen| {
        let raw = seen.nth("recv_raw", 0)?;
        holds(raw.text("raw").starts_with("p0p1p2p3p4p5"), || format!("bytes are missing: {}", raw.shown()))?;
        holds(raw.ended(), || format!("it outlives the silence: {}", raw.shown()))
    }),
    check("h2c-upgrade", "it is done or ignored, and the app sees the request once", |seen| {
        seen.answer(0)?.status_among(&[101, 200])?;
        let requests = seen.requests()?;
        let once = requests.len() == 1 && requests[0].text("target") == "/u" && requests[0].text("method") == "GET";
        holds(once, || format!("the app saw {} requests", requests.len()))
    }),
    check("h2c-prior-knowledge-h1-app", "the app is asked in its own version", |seen| {
        let answer = seen.h2()?;
        answer.status(200)?;
        answer.body("ok")?;
        let requests = seen.requests()?;
        let served: Vec<_> = requests.iter().filter(|request| request.text("method") != "PRI").collect();
        let once = served.len() == 1 && served[0].text("target") == "/x";
        holds(once, || format!("the app saw {} requests", served.len()))
    }),
    check("http1-client-h2c-app", "the app is asked in its own version", |seen| {
        let answer = seen.answer(0)?;
        answer.status(200)?;
        answer.body("ok")
    }),
    check("grpc-reset-mid", "the stream is reset, with whatever code", |seen| {
        let answer = seen.h2()?;
        answer.status(200)?;
        answer.body("\0\0\0\0\0")?;
        holds(answer.number("reset").is_some(), || format!("it is not reset: {}", answer.shown()))
    }),
    check("grpc-overflow", "it is refused, as HTTP or as gRPC has it", |seen| {
        let answer = seen.h2()?;
        let refused = answer.code() == Some(503) || grpc_failed(seen)?;
        holds(refused, || format!("it is not refused: {}", answer.shown()))
    }),
    check("grpc-timeout-mid-stream", "the cut shows, and no text of ours is in the body", |seen| {
        let answer = seen.h2()?;
        answer.status(200)?;
        answer.body("\0\0\0\0\0")?;
        let cut = answer.number("reset").is_some() || grpc_failed(seen)?;
        holds(cut, || format!("it passes for whole: {}", answer.shown()))
    }),
    check("h2-app-down", "it is 502", |seen| seen.h2()?.status(502)),
];

fn cut_shows(seen: &Observed) -> Held {
    let answer = seen.answer(0)?;
    answer.status(200)?;
    answer.body("part")?;
    holds(answer.is("incomplete"), || format!("it passes for whole: {}", answer.shown()))
}

/// A gRPC status that is not OK, in headers or trailers.
fn grpc_failed(seen: &Observed) -> Result<bool, String> {
    let answer = seen.h2()?;
    let trailers = super::super::compare::headers::by_name(&answer.0["trailers"]);
    let late = trailers.get("grpc-status").and_then(|all| all.first()?.as_str());
    Ok(answer.header("grpc-status").or(late).is_some_and(|status| status != "0"))
}
