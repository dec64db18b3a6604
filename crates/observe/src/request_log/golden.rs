//! Every template of `golden.jsonl` beside what Go's `text/template` made of it.

use super::capture::{Captured, Entry};
use super::program::Template;
use crate::facts::RequestFacts;
use crate::identity::Identity;
use http::Request;
use policy::compat::Compat;
use serde_json::Value;

/// Go fails at each request, we at the start.
const EARLIER: [&str; 6] =
    ["{{nil}}", "{{js.x}}", "{{.Request .Response}}", "{{printf}}", "{{with $x = 1}}{{end}}", "{{$ .}}"];

/// Go has them and we do not; all are told at the start.
const UNSUPPORTED: [&str; 3] = ["{{$}}x", "{{1i}}", "{{.Request.Method |}}"];

pub(super) fn who() -> Identity {
    let text = |text: &str| text.into();
    Identity {
        namespace: text("ns1"),
        service: text("svc1"),
        configuration: text("cfg1"),
        revision: text("rev1"),
        pod: text("pod-1"),
        pod_ip: text("10.0.0.7"),
    }
}

/// The request that the recordings were made with.
pub(super) fn captured(template: &Template, target: &str) -> Captured {
    let fields = [
        ("Host", "app.example.com"),
        ("X-A", "v"),
        ("X-M", "one"),
        ("X-M", "two"),
        ("Accept", "*/*"),
        ("User-Agent", "u\"a'<é\t"),
        ("Referer", "http://r/?a=b"),
        ("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"),
    ];
    let request =
        fields.iter().fold(Request::get("/"), |request, (name, value)| request.header(*name, value.as_bytes()));
    let parts = request.body(()).unwrap().into_parts().0;
    let peer = "1.2.3.4:5".parse().unwrap();
    let facts =
        RequestFacts { parts: &parts, target: Some(target), peer, by_agent: true, tls: false, body_length: None };
    Captured::of(&facts, template.headers())
}

fn outcome(row: &Value) -> String {
    let template = row["template"].as_str().unwrap();
    let template = match Template::compile(template) {
        Ok(template) => template,
        Err(faults) => return format!("start: {faults:?}"),
    };
    let request = captured(&template, row["target"].as_str().unwrap());
    let who = who();
    let entry = Entry { request: &request, code: 200, size: 2, seconds: 0.00118, who: &who };
    let mut out = String::new();
    match template.run(&entry, Compat::Strict, &mut out) {
        Ok(()) => out,
        Err(_) => "run".to_owned(),
    }
}

#[test]
fn templates_do_what_they_do_in_go() {
    let mut wrong = Vec::new();
    for line in include_str!("golden.jsonl").lines() {
        let row: Value = serde_json::from_str(line).unwrap();
        let ours = outcome(&row);
        let template = row["template"].as_str().unwrap();
        let refused = ours.starts_with("start: ");
        let same = match (&row["text"], &row["run"]) {
            (Value::String(_), _) if UNSUPPORTED.contains(&template) => refused,
            (Value::String(text), _) => ours == *text,
            (_, Value::String(_)) if EARLIER.contains(&template) => refused,
            (_, Value::String(_)) => ours == "run",
            _ => refused,
        };
        if !same {
            wrong.push(format!("{line}\n    ours: {ours:?}"));
        }
    }
    assert!(wrong.is_empty(), "{} differ\n{}", wrong.len(), wrong.join("\n"));
}
