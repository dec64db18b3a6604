//! Compares what a step brought with what was recorded.
//!
//! Compared is what a row lists. Free everywhere: order and case of header
//! names, `Date`, and headers that a replacement may add.

pub mod headers;
mod lines;
mod lists;
mod raw;
mod value;

use super::case::Step;
use super::latin;
use super::pattern::Pattern;
use crate::replay::row::{Miss, Verdict, differs};
use serde_json::Value;
use std::time::Duration;

pub use value::same_value;

/// How much later than recorded something may be on this machine, beyond
/// what the windows of the rows allow.
#[derive(Clone, Copy, Debug, Default)]
pub struct Slack(pub Duration);

impl Slack {
    fn millis(self) -> f64 {
        self.0.as_secs_f64() * 1000.0
    }
}

/// What must not be there where a row does not list it: without these an
/// answer would count as whole.
const ABSENT_MEANS_NO: [&str; 6] = ["timeout", "eof", "incomplete", "send_error", "tls_error", "running"];

/// The first difference between a step's outcome and what was recorded.
///
/// # Errors
/// The difference, in one sentence.
pub fn step(step: &Step, got: &Value, slack: Slack) -> Verdict {
    let none = serde_json::Map::new();
    let expect = step.expect.as_object().unwrap_or(&none);
    // What a step brought counts only where the row says something about it;
    // that bytes can be sent goes without saying.
    if expect.is_empty() && got["send_error"].is_null() {
        return Ok(());
    }
    for key in ABSENT_MEANS_NO {
        if !expect.contains_key(key) && is_yes(&got[key]) {
            return differs(format!("{key}: not expected; {}", told(got)));
        }
    }
    let in_order = step.order.as_deref() != Some("any");
    // The status says most, so it comes first.
    let status_first = expect.get_key_value("status").into_iter();
    for (key, want) in status_first.chain(expect) {
        match key.as_str() {
            "requests" => lists::requests(want, &got[key], in_order)?,
            "responses" => lists::responses(want, &got[key], in_order, slack)?,
            "lines" => lines::same(want, &got[key])?,
            "stat" => lists::stat(want, got, slack)?,
            "series" => lists::series(want, &got[key])?,
            "types" | "bucket_bounds" => lists::named(key, want, &got[key])?,
            "raw" => raw::same(want, &got[key])?,
            _ => part(key, want, expect, got, slack)?,
        }
    }
    Ok(())
}

/// One key of an answer, a request, or a plain outcome.
fn part(key: &str, want: &Value, expect: &serde_json::Map<String, Value>, got: &Value, slack: Slack) -> Verdict {
    match key {
        "headers" => headers::same(want, &got[key], expect.contains_key("body_re")),
        "trailers" => headers::same(want, &got[key], false),
        // That one is there is asked for; that none is there is free.
        "date_header" if want == &Value::Bool(false) => Ok(()),
        "body_b64" => body_is(got, &latin::base64(text(want)).map_err(malformed)?),
        "body_len" => {
            let length = body(got).chars().count();
            if want.as_u64() == u64::try_from(length).ok() {
                return Ok(());
            }
            differs(format!("body: expected {want} bytes, got {length}"))
        }
        "body_sha256" => {
            let bytes = latin::bytes(body(got), None).map_err(malformed)?;
            let sum = ring::digest::digest(&ring::digest::SHA256, &bytes);
            let sum: String = sum.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
            same_value("body_sha256", want, &Value::String(sum))
        }
        "body_re" => matches("body", text(want), body(got)),
        "raw_re" => matches("raw", text(want), text(&got["raw"])),
        "extra_bytes" => raw::extra(want, &got["extra"]),
        "elapsed_ms" | "elapsed_ms_since_signal_or_start" => window(key, want, &got[key], slack.millis()),
        _ => same_value(key, want, &got[key]),
    }
}

/// A number within a window that is wider by `slack` on both sides: what
/// came before it may be late too.
fn window(key: &str, want: &Value, got: &Value, slack: f64) -> Verdict {
    let (Some(low), Some(high)) = (want[0].as_f64(), want[1].as_f64()) else {
        return differs(format!("malformed row: {key}: {want}"));
    };
    match got.as_f64() {
        Some(number) if number >= low - slack && number <= high + slack => Ok(()),
        _ => differs(format!("{key}: expected {low} to {high} (and {slack:.0} for this machine), got {got}")),
    }
}

fn matches(what: &str, pattern: &str, got: &str) -> Verdict {
    if Pattern::new(pattern).map_err(malformed)?.is_match(got) {
        return Ok(());
    }
    differs(format!("{what}: expected to match {pattern}, got {:?}", latin::shortened(got)))
}

fn body_is(got: &Value, want: &[u8]) -> Verdict {
    same_value("body", &Value::String(latin::text(want)), &got["body"])
}

fn body(got: &Value) -> &str {
    text(&got["body"])
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn is_yes(value: &Value) -> bool {
    !matches!(value, Value::Null | Value::Bool(false))
}

/// What came instead, short.
fn told(got: &Value) -> String {
    latin::shortened(&got.to_string())
}

fn malformed(error: anyhow::Error) -> Miss {
    Miss::Differs(error.to_string())
}
