//! What was seen against what was recorded.

use super::super::cases::compare::headers;
use super::super::cases::wire::Head;
use super::super::row::{Miss, Verdict, differs, located};
use super::row::{Row, Seen};
use serde_json::{Value, json};
use std::time::Duration;

/// How much earlier than recorded something may be: times are rounded.
const EARLIER: Duration = Duration::from_millis(150);
/// How much later: a busy machine.
const LATER: Duration = Duration::from_millis(1500);

/// The same, but for what is free.
pub(super) fn in_full(row: &Row, seen: &Seen) -> Verdict {
    located(|| "response".to_owned(), answers(&row.response, &seen.response))?;
    let received = row.pod_received.as_deref().unwrap_or_default();
    located(|| "the pod".to_owned(), requests(received, &seen.pod_received))?;
    let recorded = Duration::from_millis(row.elapsed_ms_rounded);
    if seen.elapsed + EARLIER < recorded || seen.elapsed > recorded + LATER {
        return differs(format!("elapsed: expected about {recorded:?}, got {:?}", seen.elapsed));
    }
    Ok(())
}

/// Interim answers, the answer, and its body as it was framed.
fn answers(mut want: &str, mut got: &str) -> Verdict {
    loop {
        let (wanted, there) = (Head::read(want.as_bytes()), Head::read(got.as_bytes()));
        let (Some(wanted), Some(there)) = (wanted, there) else { return equal("bytes", want, got) };
        equal("status line", &wanted.start, &there.start)?;
        // The original guesses one where the pod sent none.
        let guessed = |field: &&(String, String)| {
            !(field.0.eq_ignore_ascii_case("content-type") && there.get("content-type").is_none())
        };
        let fields: Vec<&(String, String)> = wanted.fields.iter().filter(guessed).collect();
        headers::same(&json!(fields), &json!(there.fields), false)?;
        (want, got) = (&want[wanted.len..], &got[there.len..]);
        if wanted.status().is_none_or(|status| status == 101 || status >= 200) {
            return equal("body", want, got);
        }
    }
}

/// Heads and bodies, one after the other.
fn requests(want: &str, got: &str) -> Verdict {
    let (wanted, there): (Vec<&str>, Vec<&str>) = (parts(want), parts(got));
    if wanted.len() != there.len() {
        return differs(format!("expected {want:?}, got {got:?}"));
    }
    for (want, got) in wanted.into_iter().zip(there) {
        let heads = (head(want), head(got));
        match heads {
            (Some(want), Some(got)) => {
                equal("request line", &want.start, &got.start)?;
                headers::same(&patterns(&want), &json!(got.fields), false)?;
            }
            _ => equal("body", want, got)?,
        }
    }
    Ok(())
}

fn parts(text: &str) -> Vec<&str> {
    text.split("\r\n\r\n").collect()
}

fn head(part: &str) -> Option<Head> {
    let is_head = part.lines().next().is_some_and(|line| line.ends_with("HTTP/1.1"));
    is_head.then(|| Head::read(format!("{part}\r\n\r\n").as_bytes())).flatten()
}

/// Ids of traces are as they come.
fn patterns(head: &Head) -> Value {
    let pattern = |value: &String| match value.contains("SPANID") {
        true => {
            let ids = value.replace("TRACEID", "[0-9a-f]{32}").replace("SPANID", "(?!b7ad6b7169203331)[0-9a-f]{16}");
            json!({ "re": format!("^{ids}$") })
        }
        false => json!(value),
    };
    head.fields.iter().map(|(name, value)| json!([name, pattern(value)])).collect()
}

fn equal(what: &str, want: &str, got: &str) -> Verdict {
    if want == got { Ok(()) } else { Err(Miss::Differs(format!("{what}: expected {want:?}, got {got:?}"))) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_free_is_free_and_nothing_else() {
        let want = "HTTP/1.1 200 OK\r\nDate: DATE\r\nContent-Type: text/plain\r\nX-From: pod\r\n\r\nhi";
        assert_eq!(answers(want, "HTTP/1.1 200 OK\r\nx-from: pod\r\n\r\nhi"), Ok(()));
        for other in [
            "HTTP/1.1 200 OK\r\nx-from: pod\r\n\r\nho",
            "HTTP/1.1 200 OK\r\n\r\nhi",
            "HTTP/1.1 200 OK\r\nx-from: pod\r\ncontent-type: text/html\r\n\r\nhi",
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nx-from: pod\r\n\r\nhi",
            "",
        ] {
            assert!(answers(want, other).is_err(), "{other}");
        }
    }

    #[test]
    fn requests_are_compared_one_by_one_with_their_bodies() {
        let want = "POST / HTTP/1.1\r\nTraceparent: 00-TRACEID-SPANID-00\r\n\r\nhello";
        let trace = format!("00-{}-{}-00", "a".repeat(32), "b".repeat(16));
        assert_eq!(requests(want, &format!("POST / HTTP/1.1\r\ntraceparent: {trace}\r\n\r\nhello")), Ok(()));
        assert!(requests(want, &format!("POST / HTTP/1.1\r\ntraceparent: {trace}\r\n\r\nhellO")).is_err());
        assert!(requests(want, "POST / HTTP/1.1\r\ntraceparent: 00-TRACEID-SPANID-00\r\n\r\nhello").is_err());
        assert!(requests("", want).is_err() && requests(want, "").is_err());
    }
}
