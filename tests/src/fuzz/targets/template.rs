//! The template of the request log. The input is a template; behind a NUL, what
//! a client sends: target, then a line for each header.

use super::super::Target;
use super::super::words::{about, must, one, seen};
use crate::simulation::draw::Draw;
use http::{HeaderName, HeaderValue, Request};
use observe::request_log::{DEFAULT_TEMPLATE, Template};
use observe::{Identity, RequestFacts};
use policy::compat::Compat;
use std::net::SocketAddr;

pub(in super::super) const TARGET: Target = Target {
    name: "template",
    about: "a template that is taken makes a line of bounded length of any request, and ends",
    seeds: include_str!("../../../fuzz/template.txt"),
    words: &[
        "{{",
        "}}",
        "{{-",
        "-}}",
        "{{end}}",
        "{{else}}",
        "{{range ",
        "{{with ",
        "{{if ",
        "{{$x := ",
        "$x",
        "printf \"%1000s\" ",
        "js ",
        ".Request.Header",
        ".Request.URL.Path",
        "index ",
        "`",
        "/*",
        "*/",
        "|",
        "\\",
        "(",
        ")",
    ],
    sentence,
    judge,
};

/// No line is longer, whatever it is made of.
const LINE_MAX: usize = 16 << 20;

fn sentence(draw: &mut Draw) -> Vec<u8> {
    let mut out = String::new();
    let mut open = 0;
    for _ in 0..draw.below(12) {
        match draw.below(7) {
            0 => out.push_str(one(draw, &["text ", "\"", "\n", "%", "é"])),
            1 if open > 0 => {
                out.push_str(one(draw, &["{{end}}", "{{- end -}}", "{{else}}"]));
                open -= 1;
            }
            2 => {
                open += 1;
                let what = one(draw, &["if", "with", "range", "range $i, $e :=", "range $e :="]);
                out.push_str(&format!("{{{{{what} {}}}}}", pipe(draw, 2)));
            }
            3 => out.push_str(&format!("{{{{$x {} {}}}}}", one(draw, &[":=", "="]), pipe(draw, 2))),
            _ => out.push_str(&format!("{{{{{}}}}}", pipe(draw, 3))),
        }
    }
    out.push_str(&"{{end}}".repeat(open));
    out.push('\0');
    out.push_str(one(draw, &["/", "/a?b=c&d='e'", "*", "http://h/p?q#f", "/%zz/é"]));
    for _ in 0..draw.below(4) {
        out.push('\n');
        out.push_str(one(
            draw,
            &["User-Agent: u\"<&>'\\", "X-A: 1", "X-A: 2", "Traceparent: 00-ab-cd-01", "Referer: http://r/"],
        ));
    }
    out.into_bytes()
}

fn pipe(draw: &mut Draw, depth: u32) -> String {
    let operand = |draw: &mut Draw| {
        if depth > 0 && draw.one_in(4) {
            return format!("({})", pipe(draw, depth - 1));
        }
        let all = [
            ".Request.Method",
            ".Request.Header",
            ".Request.URL",
            ".Request.URL.Path",
            ".Request.RequestURI",
            ".Request.Host",
            ".Response.Code",
            ".Response.Size",
            ".Response.Latency",
            ".Revision.Name",
            ".TraceID",
            ".",
            "$",
            "$x",
            "$e",
            "nil",
            "true",
            "7",
            "100000",
            "-1",
            "1.5",
            "\"%s %v\"",
            "\"%10d%-7s\"",
            "`raw`",
            "'c'",
            ".Request.Header.Accept",
            "\"X-A\"",
        ];
        one(draw, &all).to_owned()
    };
    let mut out = operand(draw);
    if draw.one_in(2) {
        let functions = [
            "and", "or", "not", "len", "index", "print", "printf", "println", "html", "js", "urlquery", "eq", "ne",
            "lt", "ge",
        ];
        out = format!("{} {out}", one(draw, &functions));
        for _ in 0..draw.below(3) {
            out = format!("{out} {}", operand(draw));
        }
    }
    if draw.one_in(4) {
        out = format!("{out} | {}", one(draw, &["js", "html", "printf \"%q\"", "print", "len", "urlquery"]));
    }
    out
}

fn judge(input: &[u8]) -> Result<u64, String> {
    let text = String::from_utf8_lossy(input);
    let (template, client) = text.split_once('\0').unwrap_or((&text, "/"));
    let compiled = match Template::compile(template) {
        Ok(compiled) => compiled,
        Err(faults) => {
            must(!faults.is_empty() && faults.iter().all(|fault| !fault.is_empty()), || "no word of why".to_owned())?;
            let first: String = faults[0].chars().filter(|c| c.is_ascii_alphabetic()).take(24).collect();
            return Ok(seen((first, about(faults.len()))));
        }
    };
    let (target, lines) = client.split_once('\n').unwrap_or((client, ""));
    let mut request = Request::get(target).body(()).unwrap_or_default();
    for (name, value) in lines.lines().filter_map(|line| line.split_once(": ")) {
        if let (Ok(name), Ok(value)) = (name.parse::<HeaderName>(), HeaderValue::from_bytes(value.as_bytes())) {
            request.headers_mut().append(name, value);
        }
    }
    let parts = request.into_parts().0;
    let peer = SocketAddr::from(([1, 2, 3, 4], 5));
    let facts =
        RequestFacts { parts: &parts, target: Some(target), peer, tls: false, body_length: None, by_agent: false };
    let who = Identity { revision: "rev".into(), pod: "pod-1".into(), ..Identity::default() };
    let mut shapes = Vec::new();
    for compat in [Compat::Better, Compat::Strict] {
        let line = compiled.show(&facts, (200, 12, 0.0125), &who, compat);
        let ended = line.is_empty() || line.ends_with('\n') || compat == Compat::Strict;
        must(ended, || format!("the line has no end: {line:?}"))?;
        must(line.len() <= LINE_MAX, || format!("a line of {} bytes", line.len()))?;
        shapes.push((about(line.len()), line.starts_with("Invalid request log")));
        if template == DEFAULT_TEMPLATE && compat == Compat::Better {
            let json: Result<serde_json::Value, _> = serde_json::from_str(&line);
            must(json.is_ok(), || format!("the default line is no JSON: {line}"))?;
        }
    }
    let features =
        ["range", "with", "if", "printf", "index", ":=", "|", "URL", "Header"].map(|word| template.contains(word));
    Ok(seen((shapes, features)))
}
