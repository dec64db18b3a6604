//! The process log and the request log.

use super::super::observed::{Held, Observed, holds};
use super::{Check, by_default, check};
use serde_json::{Value, json};

pub(super) const CHECKS: &[Check] = &[
    check("log-proxy-error", "there is one line of an error", |seen| {
        seen.answer(0)?.status(502)?;
        let errors = errors(seen)?;
        holds(errors.len() == 1, || format!("{} lines: {}", errors.len(), Value::from(errors)))
    }),
    by_default("log-proxy-error", "neither body nor log tells what is inside", |seen| {
        let answer = seen.answer(0)?;
        holds(!answer.text("body").contains("127.0.0.1"), || format!("an address: {}", answer.shown()))?;
        for line in errors(seen)? {
            let text = line.to_string();
            holds(line.get("stacktrace").is_none() && !text.contains("sockstat"), || text)?;
        }
        Ok(())
    }),
    check("request-log-default", "each line is JSON with what was asked", |seen| {
        let lines = requests(seen)?;
        holds(lines.len() == 2, || format!("{} lines", lines.len()))?;
        let common = json!({ "status": 200, "responseSize": "2", "serverIp": "10.0.0.7", "protocol": "HTTP/1.1" });
        let first = json!({
            "requestMethod": "GET", "requestUrl": "/l?x=1&y=\"q\"", "requestSize": "0",
            "userAgent": "u\"a", "referer": "http://r/",
        });
        let second = json!({ "requestMethod": "POST", "requestUrl": "/p", "requestSize": "-1", "userAgent": "" });
        for (line, own) in lines.iter().zip([first, second]) {
            same_keys(&line["httpRequest"], &own)?;
            same_keys(&line["httpRequest"], &common)?;
        }
        let trace = &lines[0]["traceId"];
        holds(trace == "0af7651916cd43dd8448eb211c80319c", || format!("trace {trace}"))
    }),
    check("request-log-js-escape", "the line is JSON with what was asked", |seen| {
        let lines = requests(seen)?;
        holds(lines.len() == 1, || format!("{} lines", lines.len()))?;
        let wanted = json!({ "requestUrl": "/a<b>&c='x'\\%22", "userAgent": "a\tb", "referer": "http://e/" });
        same_keys(&lines[0]["httpRequest"], &wanted)
    }),
];

/// Lines of the request log, as JSON.
fn requests(seen: &Observed) -> Result<Vec<Value>, String> {
    let lines = seen.lines("stdout")?;
    let logged = lines.iter().filter(|line| line.contains("httpRequest"));
    logged.map(|line| serde_json::from_str(line).map_err(|error| format!("no JSON: {error}: {line}"))).collect()
}

/// Lines of errors, as JSON.
fn errors(seen: &Observed) -> Result<Vec<Value>, String> {
    let lines = seen.lines("stderr")?;
    let parsed = lines.iter().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    Ok(parsed.filter(|line| line["severity"] == "ERROR").collect())
}

fn same_keys(line: &Value, wanted: &Value) -> Held {
    for (key, want) in wanted.as_object().into_iter().flatten() {
        holds(&line[key] == want, || format!("{key}: expected {want}, got {}", line[key]))?;
    }
    Ok(())
}
