//! `SERVING_READINESS_PROBE`.

use super::super::Target;
use super::super::words::{about, must, one, seen};
use crate::simulation::draw::Draw;
use policy::compat::Compat;
use queue_proxy::Readiness;
use queue_proxy::readiness::Check;
use std::net::SocketAddr;

pub(in super::super) const TARGET: Target = Target {
    name: "readiness",
    about: "probes that are taken can be sent: their parts end no line; what is refused is told in short",
    seeds: include_str!("../../../fuzz/readiness.txt"),
    words: &[
        "\"httpGet\":",
        "\"port\":",
        "\"path\":",
        "\"host\":",
        "null",
        "-1",
        "65536",
        "\"8080\"",
        "\\u000d\\u000a",
        "[",
        "{",
    ],
    sentence,
    judge,
};

fn sentence(draw: &mut Draw) -> Vec<u8> {
    let mut out = String::new();
    let list = draw.one_in(3);
    if list {
        out.push('[');
    }
    for at in 0..if list { draw.below(4) } else { 1 } {
        if at > 0 {
            out.push(',');
        }
        probe(draw, &mut out);
    }
    if list {
        out.push(']');
    }
    out.into_bytes()
}

fn probe(draw: &mut Draw, out: &mut String) {
    let handlers = ["httpGet", "tcpSocket", "grpc", "exec"];
    let numbers = ["0", "1", "3", "-1", "2147483647", "1.5", "null", "\"1\""];
    out.push('{');
    let mut parts = Vec::new();
    for _ in 0..draw.below(3) {
        let mut members = Vec::new();
        for _ in 0..draw.below(5) {
            let member = one(draw, &["port", "path", "host", "scheme", "service", "command", "httpHeaders"]);
            let values = [
                "8080",
                "0",
                "\"81\"",
                "\"http\"",
                "\"\"",
                "\"/ready?x=1\"",
                "\"a b\\r\\nX: y\"",
                "\"127.0.0.1\"",
                "\"[::1]\"",
                "\"HTTP\"",
                "\"https\"",
                "null",
                "[]",
                "{}",
                r#"[{"name":"X-A","value":"1"}]"#,
                r#"[{"name":"a b","value":"\n"}]"#,
            ];
            members.push(format!("\"{member}\":{}", one(draw, &values)));
        }
        parts.push(format!("\"{}\":{{{}}}", one(draw, &handlers), members.join(",")));
    }
    for _ in 0..draw.below(3) {
        let name = one(draw, &["periodSeconds", "timeoutSeconds", "successThreshold", "failureThreshold"]);
        parts.push(format!("\"{name}\":{}", one(draw, &numbers)));
    }
    out.push_str(&parts.join(","));
    out.push('}');
}

fn judge(input: &[u8]) -> Result<u64, String> {
    let text = String::from_utf8_lossy(input);
    let app = SocketAddr::from(([127, 0, 0, 1], 8080));
    let mut all = Vec::new();
    for (several, compat) in
        [(false, Compat::Better), (true, Compat::Better), (false, Compat::Strict), (true, Compat::Strict)]
    {
        let read = Readiness::parse(&text, several, app, compat);
        match &read {
            Ok(readiness) => readiness.probes.iter().try_for_each(|probe| sendable(&probe.check))?,
            Err(why) => must(why.len() <= 4 * input.len() + 512, || format!("{} bytes tell of it", why.len()))?,
        }
        all.push(read.map(|readiness| readiness.probes.iter().map(|probe| kind(&probe.check)).collect::<Vec<_>>()));
    }
    let shape = |read: &Result<Vec<u8>, String>| match read {
        Ok(kinds) => format!("{:?}", &kinds[..kinds.len().min(3)]),
        Err(why) => why.chars().filter(|c| c.is_ascii_alphabetic()).take(24).collect(),
    };
    Ok(seen((all.iter().map(shape).collect::<Vec<_>>(), about(input.len()) / 2)))
}

fn kind(check: &Check) -> u8 {
    match check {
        Check::Tcp(_) => 0,
        Check::Http(get) => 1 + u8::from(get.https) + 2 * u8::from(!get.headers.is_empty()),
        Check::Grpc { .. } => 5,
        Check::Exec => 6,
        Check::Nothing => 7,
    }
}

/// What goes into a request may not end its line, nor begin another.
fn sendable(check: &Check) -> Result<(), String> {
    match check {
        Check::Http(get) => {
            must(get.path.starts_with('/') && get.path.bytes().all(|byte| byte.is_ascii_graphic()), || {
                get.path.clone()
            })?;
            must(get.target.port != 0, || "port 0".to_owned())
        }
        Check::Tcp(target) | Check::Grpc { target, .. } => must(target.port != 0, || "port 0".to_owned()),
        Check::Exec | Check::Nothing => Ok(()),
    }
}
