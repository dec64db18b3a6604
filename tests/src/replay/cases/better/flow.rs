//! Headers, early answers, limits of time: what passes through, and when.

use super::super::observed::{Held, Observed, Part, holds};
use super::{Check, as_recorded, check};
use serde_json::Value;

pub(super) const CHECKS: &[Check] = &[
    check("post-chunked-with-trailer", "trailers reach the app, or are not announced", |seen| {
        seen.answer(0)?.status(200)?;
        let requests = seen.requests()?;
        let [request] = requests[..] else { return Err(format!("the app saw {} requests", requests.len())) };
        request.body("hello world")?;
        let there = request.0["trailers"].as_array().is_some_and(|all| {
            all.iter()
                .any(|field| field[0].as_str().unwrap_or_default().eq_ignore_ascii_case("x-t") && field[1] == "tv")
        });
        holds(there || request.header("trailer").is_none(), || format!("they are lost: {}", request.shown()))
    }),
    check("response-http10", "it passes, with no content type or a guessed one", |seen| {
        plain(seen.answer(0)?, "hi", "text/plain; charset=utf-8")
    }),
    check("content-type-not-sniffed", "no content type is invented, or a guessed one", |seen| {
        plain(seen.answer(0)?, "<html>", "text/html; charset=utf-8")?;
        plain(seen.answer(1)?, "", "")
    }),
    check("odd-status-code", "it passes, whatever its reason phrase", as_recorded),
    check("client-http10-no-host", "it is served, and the app gets a Host", |seen| {
        let answer = seen.answer(0)?;
        answer.status(200)?;
        answer.body("ok")?;
        let (proto, after) = (answer.text("proto"), answer.text("connection"));
        holds(proto == "HTTP/1.0" && after == "closed", || format!("{proto}, {after} after it"))?;
        let requests = seen.requests()?;
        let host = requests.first().and_then(|request| request.header("host")).unwrap_or_default();
        holds(requests.len() == 1 && !host.is_empty(), || "the app saw no Host".to_owned())
    }),
    check("options-star", "it is answered, by the sidecar or by the app", |seen| {
        seen.answer(0)?.status_among(&[200, 204])?;
        let requests = seen.requests()?;
        let fits = |request: &Part| request.text("method") == "OPTIONS" && request.text("target") == "*";
        holds(requests.len() <= 1 && requests.iter().all(fits), || "the app saw something else".to_owned())
    }),
    check("duplicate-headers", "equal names keep their order", as_recorded),
    check("response-with-length-not-flushed-early", "the head comes with the first part", |seen| {
        seen.nth("recv_head", 0)?.status(200)?;
        seen.answer(0)?.body("abcdefghij")
    }),
    check("expect-100-continue", "the client need not wait for its 100", |seen| {
        let early = seen.answer(0)?;
        early.status(100)?;
        let soon = early.number("elapsed_ms").is_some_and(|elapsed| elapsed < 500.0);
        holds(soon, || format!("it came late: {}", early.shown()))?;
        seen.answer(1)?.status(200)?;
        let requests = seen.requests()?;
        let whole = requests.len() == 1 && requests[0].text("body") == "body";
        holds(whole, || "the app did not get the body".to_owned())
    }),
    check("expect-unknown", "it is refused by the sidecar", |seen| {
        seen.answer(0)?.status(417)?;
        holds(seen.requests()?.is_empty(), || "the app saw it".to_owned())
    }),
    check("early-response-http1-default", "the answer comes once, early or after the body", |seen| {
        let answers = [seen.answer(0)?, seen.answer(1)?];
        let come: Vec<&Part> = answers.iter().filter(|answer| answer.code().is_some()).collect();
        let [answer] = come[..] else {
            return Err(format!("{} answers: {}", come.len(), answers[1].shown()));
        };
        answer.status(200)?;
        answer.body("early")?;
        let requests = seen.requests()?.len();
        holds(requests == 1, || format!("the app saw {requests} requests"))
    }),
    check("bidi-stream-default", "the whole answer comes, early or after the body", |seen| {
        let answer = seen.answer(0)?;
        answer.status(200)?;
        answer.body("firstlast")?;
        let requests = seen.requests()?;
        let whole = requests.len() == 1 && requests[0].text("body") == "abcdef";
        holds(whole, || "the app did not get the body".to_owned())
    }),
    check("xff-multiple-lines", "Forwarded names every node", |seen| {
        let requests = seen.requests()?;
        let forwarded = requests.first().and_then(|request| request.header("forwarded")).unwrap_or_default();
        let named = forwarded.contains("for=1.2.3.4") && forwarded.contains("for=5.6.7.8");
        holds(named, || format!("it says {forwarded:?}"))
    }),
    check("forwarded-odd-inputs", "Forwarded is valid, or as the original has it", forwarded_is_valid),
    check("cc1-kubelet-header-bypasses", "the header skips no limit", |seen| {
        let (probe, other) = (seen.answer(0)?, seen.answer(1)?);
        probe.status(200)?;
        other.status(200)?;
        let waited = probe.number("elapsed_ms").is_some_and(|elapsed| elapsed >= 650.0);
        holds(waited, || format!("it did not wait for its turn: {}", probe.shown()))
    }),
    check("timeout-zero-revision", "it is 504 at once, or there is no limit", |seen| {
        let answer = seen.answer(0)?;
        answer.status_among(&[504, 200])?;
        holds(answer.code() != Some(200) || answer.text("body") == "ok", || answer.shown())
    }),
    check("timeout-slow-body-then-rest", "the 504 comes when the limit passes", |seen| {
        let answer = seen.answer(0)?;
        answer.status(504)?;
        holds(answer.is("before_last_send"), || format!("it came after the rest of the body: {}", answer.shown()))
    }),
];

fn plain(answer: Part, body: &str, guessed: &str) -> Held {
    answer.status(200)?;
    answer.body(body)?;
    match answer.header("content-type") {
        None => Ok(()),
        Some(kind) => holds(kind == guessed, || format!("content type {kind:?}")),
    }
}

fn forwarded_is_valid(seen: &Observed) -> Held {
    let recorded = &seen.recorded("upstream", 0)["requests"];
    let requests = seen.requests()?;
    holds(requests.len() == 4, || format!("the app saw {} requests", requests.len()))?;
    for (number, request) in requests.iter().enumerate() {
        seen.answer(number)?.status(200)?;
        let original: Option<&Value> = recorded.get(number);
        let original = original.map(Part).and_then(|request| request.header("forwarded"));
        let here = request.header("forwarded");
        let fine = here == original || here.is_none_or(valid_forwarded);
        holds(fine, || format!("request {number}: {here:?}"))?;
    }
    Ok(())
}

/// Whether it is what RFC 7239 allows, as far as quoting goes.
fn valid_forwarded(text: &str) -> bool {
    let token = |text: &str| {
        !text.is_empty() && text.chars().all(|point| point.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(point))
    };
    let quoted = |text: &str| {
        let inside = text.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
        inside.is_some_and(|inside| !inside.is_empty() && !inside.contains('"'))
    };
    text.split([',', ';']).all(|pair| {
        let (name, value) = pair.trim().split_once('=').unwrap_or_default();
        token(name) && (token(value) || quoted(value))
    })
}

#[cfg(test)]
mod tests {
    use super::valid_forwarded;

    #[test]
    fn nodes_with_colons_must_be_quoted_and_none_may_be_empty() {
        for text in ["for=a, for=b", "for=\"[::1]:80\";proto=https", "for=\"1.2.3.4:99\""] {
            assert!(valid_forwarded(text), "{text}");
        }
        for text in ["for=a, for=, for=b", "for=1.2.3.4:99", "for", ""] {
            assert!(!valid_forwarded(text), "{text}");
        }
    }
}
