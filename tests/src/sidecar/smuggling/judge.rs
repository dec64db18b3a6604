//! The verdict on a case, from bytes alone.

use super::super::frames::{self, kind};
use super::lenient::{First, Request, requests};
use super::{Case, May, Outcome};
use std::collections::BTreeSet;

/// How many requests of the case the app got; or what is wrong.
///
/// # Errors
/// Naming the first thing that must not be.
pub fn judge(case: &Case, outcome: &Outcome) -> Result<usize, String> {
    let mut of_case = 0;
    let mut after = 0;
    for bytes in &outcome.recorded {
        if bytes.starts_with(b"PRI ") {
            of_case += streams(bytes);
            continue;
        }
        for request in read_alike(bytes)? {
            plain(&request.head)?;
            clean(&request)?;
            if request.line == "GET /after HTTP/1.1" {
                after += 1;
            } else {
                of_case += 1;
            }
        }
    }
    if outcome.after != 200 || after != 1 {
        return Err(format!("the next client got {}, and the app had its request {after} times", outcome.after));
    }
    let may = match case.may {
        May::Nothing => 0..=0,
        May::One => 0..=1,
        May::Just => 1..=1,
        May::Two => 2..=2,
    };
    if !may.contains(&of_case) {
        return Err(format!("the app got {of_case}, and may get {:?}; the client got {}", case.may, short(outcome)));
    }
    if case.http2 {
        return Ok(of_case);
    }
    let statuses = statuses(&outcome.answers);
    let served = statuses.iter().filter(|status| **status < 400).count();
    if served > of_case || statuses.len() > of_case + 1 {
        return Err(format!("{of_case} at the app, and the client got these answers: {statuses:?}"));
    }
    let text = String::from_utf8_lossy(&outcome.answers).to_ascii_lowercase();
    // A body that turns out to be malformed on its way is a 502, as in the reference.
    let of_body = text.contains("x-zeroscale-reason: malformed");
    match statuses.first() {
        Some(500 | 502 | 503 | 504) if !of_body => {
            Err(format!("it is no fault of ours or the app's: {}", short(outcome)))
        }
        _ => Ok(of_case),
    }
}

/// Both readings, which must be one.
fn read_alike(bytes: &[u8]) -> Result<Vec<Request>, String> {
    let (by_length, by_chunks) = (requests(bytes, First::Length), requests(bytes, First::Chunks));
    if by_length != by_chunks {
        return Err(format!("two readings of {:?}: {by_length:?} and {by_chunks:?}", String::from_utf8_lossy(bytes)));
    }
    if let Some(odd) = by_length.iter().find(|request| request.line.contains("/smuggled")) {
        return Err(format!("smuggled: {:?}", odd.line));
    }
    Ok(by_length)
}

/// A head that nobody can misread.
fn clean(request: &Request) -> Result<(), String> {
    let count = |name: &str| request.fields.iter().filter(|(field, _)| field == name).count();
    let (length, chunks, host) = (count("content-length"), count("transfer-encoding"), count("host"));
    if length + chunks > 1 || host != 1 {
        return Err(format!("{length} Content-Length, {chunks} Transfer-Encoding, {host} Host: {:?}", request.fields));
    }
    if let Some((name, _)) = request.fields.iter().find(|(name, _)| !is_token(name)) {
        return Err(format!("no name of a field: {name:?}"));
    }
    let words: Vec<&str> = request.line.split(' ').collect();
    match words[..] {
        [method, target, "HTTP/1.1"] if is_token(method) && !target.is_empty() => Ok(()),
        _ => Err(format!("no request line: {:?}", request.line)),
    }
}

fn is_token(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}

/// Nothing but whole lines.
fn plain(bytes: &[u8]) -> Result<(), String> {
    let odd = |at: usize| match bytes[at] {
        0 => Some("NUL"),
        b'\n' if at == 0 || bytes[at - 1] != b'\r' => Some("a bare line feed"),
        b'\r' if bytes.get(at + 1).is_some_and(|next| *next != b'\n') => Some("a bare carriage return"),
        b' ' | b'\t' if at > 0 && bytes[at - 1] == b'\n' => Some("a folded line"),
        _ => None,
    };
    match (0..bytes.len()).find_map(odd) {
        Some(what) => Err(format!("{what} at the app: {:?}", String::from_utf8_lossy(bytes))),
        None => Ok(()),
    }
}

/// Streams that were opened on an HTTP/2 connection.
fn streams(bytes: &[u8]) -> usize {
    let mut rest = bytes.get(frames::PREFACE.len()..).unwrap_or_default().to_vec();
    let mut opened = BTreeSet::new();
    while let Some(frame) = frames::take(&mut rest) {
        if frame.kind == kind::HEADERS {
            opened.insert(frame.stream);
        }
    }
    opened.len()
}

/// The statuses of all final answers.
fn statuses(bytes: &[u8]) -> Vec<u16> {
    let text = String::from_utf8_lossy(bytes);
    let codes = text.split("HTTP/1.").skip(1).filter_map(|part| part.get(2..5)?.parse().ok());
    codes.filter(|code| *code >= 200 || *code == 101).collect()
}

fn short(outcome: &Outcome) -> String {
    let text = String::from_utf8_lossy(&outcome.answers).into_owned();
    let app: Vec<_> = outcome.recorded.iter().map(|bytes| String::from_utf8_lossy(bytes).into_owned()).collect();
    format!("{text:?}; the app {app:?}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const AFTER: &str = "GET /after HTTP/1.1\r\nhost: a\r\n\r\n";
    const REFUSED: &str = "HTTP/1.1 400 Bad Request\r\n\r\n";
    const SERVED: &str = "HTTP/1.1 200 OK\r\n\r\nok";

    fn verdict(may: May, answers: &str, app: &str) -> Result<usize, String> {
        let case = Case { name: String::new(), bytes: Vec::new(), may, http2: false };
        let outcome = Outcome { answers: answers.into(), recorded: vec![app.into()], after: 200 };
        judge(&case, &outcome)
    }

    #[test]
    fn refused_or_one_request_is_well() {
        assert_eq!(verdict(May::Nothing, REFUSED, AFTER), Ok(0));
        let one = format!("POST /case HTTP/1.1\r\nhost: a\r\ncontent-length: 2\r\n\r\nhi{AFTER}");
        assert_eq!(verdict(May::One, SERVED, &one), Ok(1));
        assert!(verdict(May::Nothing, SERVED, &one).is_err());
    }

    #[test]
    fn a_sidecar_that_passes_everything_on_is_found_out() {
        for app in [
            format!(
                "POST /case HTTP/1.1\r\nhost: a\r\ncontent-length: 2\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n{AFTER}"
            ),
            format!("POST /case HTTP/1.1\r\nhost: a\r\n\r\nGET /smuggled HTTP/1.1\r\nhost: a\r\n\r\n{AFTER}"),
            format!("GET /case HTTP/1.1\r\nhost: a\r\nhost: b\r\n\r\n{AFTER}"),
            format!("GET /case HTTP/1.1\r\nhost: a\r\nx: 1\n\r\n{AFTER}"),
            format!("GET /case HTTP/1.1\r\nhost: a\r\nx: 1\r\n y\r\n\r\n{AFTER}"),
            format!("GET /case HTTP/1.1\r\nhost: a\r\nx: \0\r\n\r\n{AFTER}"),
            format!("GET /case HTTP/1.1\r\nhost: a\r\nx : 1\r\nx y: 2\r\n\r\n{AFTER}"),
            format!("POST /case HTTP/1.1\r\nhost: a\r\ncontent-length: 0\r\n\r\nG{AFTER}"),
        ] {
            assert!(verdict(May::One, SERVED, &app).is_err(), "{app:?}");
        }
    }
}
