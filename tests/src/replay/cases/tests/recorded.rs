//! A recording turned into what a driver would have seen of the original.

use crate::replay::cases::case::{Case, Step};
use crate::replay::cases::latin;
use crate::replay::cases::pattern::Pattern;
use serde_json::{Value, json};

/// For each expression of the rows, a text that it stands for.
const SAMPLES: &[&str] = &[
    "p0p1p2",
    "read tcp 127.0.0.1:40000->127.0.0.1:8080: read: connection reset by peer\n",
    "net/http: HTTP/1.x transport connection broken: malformed HTTP response \"\"",
    "Grpc-Status, Grpc-Message",
    "1000m",
    "kube-probe/",
    "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01",
    r#"{"httpRequest": {"requestMethod": "GET", "requestUrl": "/l?x\u003D1\u0026y\u003D"q"", "requestSize": "0", "status": 200, "responseSize": "2", "userAgent": "u"a", "remoteIp": "127.0.0.1:4", "serverIp": "10.0.0.7", "referer": "http://r/", "latency": "0.1s", "protocol": "HTTP/1.1"}, "traceId": "0af7651916cd43dd8448eb211c80319c"}"#,
    r#"{"httpRequest": {"requestMethod": "POST", "requestUrl": "/p", "requestSize": "-1", "status": 200, "responseSize": "2", "userAgent": "", "remoteIp": "127.0.0.1:4", "serverIp": "10.0.0.7", "referer": "", "latency": "0.1s", "protocol": "HTTP/1.1"}, "traceId": ""}"#,
    r#"{"httpRequest": {"requestMethod": "GET", "requestUrl": "/a\u003Cb\u003E\u0026c\u003D\'x\'\\%22", "requestSize": "0", "status": 200, "responseSize": "2", "userAgent": "a\u0009b", "remoteIp": "127.0.0.1:4", "serverIp": "10.0.0.7", "referer": "http://e/", "latency": "0.1s", "protocol": "HTTP/1.1"}, "traceId": ""}"#,
];

/// The outcome of every step of the original.
pub(super) fn outcomes(case: &Case) -> Vec<Value> {
    let mut all: Vec<Value> = case.steps.iter().map(outcome).collect();
    if case.name == "expect-100-continue" {
        // The row leaves out how long it took: a second (reference, section 11).
        all[1]["elapsed_ms"] = json!(1000);
    }
    all
}

fn outcome(step: &Step) -> Value {
    let Value::Object(expect) = &step.expect else {
        return json!({});
    };
    let outcome_of = |(key, want): (&String, &Value)| {
        let all = || want.as_array().into_iter().flatten();
        Some(match key.as_str() {
            "body_re" => ("body".to_owned(), json!(sample(want))),
            "raw_re" => ("raw".to_owned(), json!(sample(want))),
            "extra_bytes" => ("extra".to_owned(), json!("x".repeat(number(want)))),
            "lines" => (key.clone(), all().map(line).collect()),
            "requests" | "responses" => (key.clone(), all().map(part).collect()),
            _ => part_of(key, want)?,
        })
    };
    Value::Object(expect.iter().filter_map(outcome_of).collect())
}

/// One request or answer.
fn part(want: &Value) -> Value {
    let all = want.as_object().into_iter().flatten();
    Value::Object(all.filter_map(|(key, want)| part_of(key, want)).collect())
}

fn part_of(key: &str, want: &Value) -> Option<(String, Value)> {
    let named = |name: &str, value: Value| Some((name.to_owned(), value));
    match key {
        "body_b64" => named("body", json!(latin::text(&latin::base64(want.as_str()?).unwrap()))),
        "body_len" => named("body", json!("a".repeat(number(want)))),
        "body_sha256" => None,
        _ => named(key, seen(want)),
    }
}

/// A value of a window, a text for an expression, all else as it is.
fn seen(want: &Value) -> Value {
    match want {
        Value::Array(all) if all.len() == 2 && all.iter().all(Value::is_number) => {
            json!(all.iter().filter_map(Value::as_f64).sum::<f64>() / 2.0)
        }
        Value::Array(all) => all.iter().map(seen).collect(),
        Value::Object(rule) if rule.contains_key("re") => json!(sample(&rule["re"])),
        Value::Object(all) => Value::Object(all.iter().map(|(key, want)| (key.clone(), seen(want))).collect()),
        _ => want.clone(),
    }
}

fn line(want: &Value) -> Value {
    match (want.get("text"), want.get("json_subset")) {
        (Some(text), _) => text.clone(),
        (_, Some(part)) => json!(part.to_string()),
        _ => json!(sample(&want["re"])),
    }
}

fn sample(pattern: &Value) -> &'static str {
    let text = pattern.as_str().unwrap();
    let pattern = Pattern::new(text).unwrap();
    SAMPLES.iter().find(|sample| pattern.is_match(sample)).unwrap_or_else(|| panic!("no sample for {text}"))
}

fn number(value: &Value) -> usize {
    usize::try_from(value.as_u64().unwrap()).unwrap()
}
