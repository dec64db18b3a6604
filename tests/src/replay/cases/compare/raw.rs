//! Answers that were recorded byte for byte.

use super::super::latin;
use super::super::wire::Head;
use super::{headers, malformed};
use crate::replay::row::{Verdict, differs};
use serde_json::{Value, json};

/// The same bytes; heads of answers are compared as such, since the order of
/// their fields is free.
pub(super) fn same(want: &Value, got: &Value) -> Verdict {
    let (want, got) = (bytes(want)?, bytes(got)?);
    if let (Some(wanted), Some(there)) = (head(&want), head(&got)) {
        if wanted.start != there.start {
            return differs(format!("status line: expected {:?}, got {:?}", wanted.start, there.start));
        }
        headers::same(&json!(wanted.fields), &json!(there.fields), false)?;
        return equal("body", &want[wanted.len..], &got[there.len..]);
    }
    equal("raw", &want, &got)
}

/// As many bytes of the next answer, without headers that may be added.
pub(super) fn extra(want: &Value, got: &Value) -> Verdict {
    let bytes = bytes(got)?;
    let added: usize = head(&bytes)
        .iter()
        .flat_map(|head| &head.fields)
        .filter(|(name, _)| headers::is_free(&name.to_ascii_lowercase()) && !name.eq_ignore_ascii_case("date"))
        .map(|(name, value)| name.len() + value.len() + ": \r\n".len())
        .sum();
    let length = bytes.len().saturating_sub(added);
    if want.as_u64() == u64::try_from(length).ok() {
        return Ok(());
    }
    differs(format!("bytes of the next answer: expected {want}, got {length}"))
}

fn head(bytes: &[u8]) -> Option<Head> {
    bytes.starts_with(b"HTTP/").then(|| Head::read(bytes)).flatten()
}

fn bytes(value: &Value) -> Verdict<Vec<u8>> {
    latin::bytes(value.as_str().unwrap_or_default(), None).map_err(malformed)
}

fn equal(what: &str, want: &[u8], got: &[u8]) -> Verdict {
    if want == got {
        return Ok(());
    }
    let short = |bytes: &[u8]| latin::shortened(&latin::text(bytes));
    differs(format!("{what}: expected {:?}, got {:?}", short(want), short(got)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_may_have_another_order_and_more() {
        let want = json!("HTTP/1.1 200 OK\r\nA: 1\r\nDate: *\r\n\r\nok");
        let got = |text: &str| same(&want, &json!(text));
        assert_eq!(got("HTTP/1.1 200 OK\r\ndate: now\r\na: 1\r\nRetry-After: 1\r\n\r\nok"), Ok(()));
        assert!(got("HTTP/1.1 200 OK\r\na: 2\r\n\r\nok").is_err());
        assert!(got("HTTP/1.1 200 Fine\r\na: 1\r\n\r\nok").is_err());
        assert!(got("HTTP/1.1 200 OK\r\na: 1\r\n\r\nno").is_err());
        assert!(got("ok").is_err());
    }

    #[test]
    fn added_headers_do_not_count_as_extra_bytes() {
        let got = json!("HTTP/1.1 200 OK\r\nretry-after: 1\r\n\r\nok");
        assert_eq!(extra(&json!(21), &got), Ok(()));
        assert!(extra(&json!(22), &got).is_err());
    }
}
