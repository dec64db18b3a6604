//! A row of `cases.jsonl`, as its README describes it.

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;

/// One case.
#[derive(Debug, Deserialize)]
pub struct Case {
    /// What it is called.
    pub name: String,
    /// What it is about, in a word.
    pub group: String,
    /// What it shows, in a sentence.
    pub about: String,
    /// How the original's outcome counts.
    pub verdict: Kind,
    /// The better outcome, where the original's is not to be matched.
    #[serde(default)]
    pub better: String,
    /// Changes to the base environment; `None` removes.
    #[serde(default)]
    pub env: BTreeMap<String, Option<String>>,
    /// The scripted app.
    pub app: Option<App>,
    /// Several of them.
    #[serde(default)]
    pub apps: Vec<App>,
    /// A certificate is mounted.
    #[serde(default)]
    pub tls: bool,
    /// The first step waits until the ports accept.
    pub wait_for_ports: bool,
    /// What is done, and what was seen.
    pub steps: Vec<Step>,
}

/// How the recorded outcome counts.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// To be matched in full.
    Match,
    /// The essence is to be matched.
    Quirk,
    /// The original is wrong.
    Flaw,
}

/// A scripted app.
#[derive(Clone, Debug, Deserialize)]
pub struct App {
    /// What it speaks.
    #[serde(rename = "type")]
    pub speaks: Speaks,
    /// Where it listens, on loopback.
    #[serde(default = "app_port")]
    pub port: u16,
    /// How long after the sidecar it starts.
    #[serde(default)]
    pub start_after_ms: u64,
    /// What it does, by path.
    #[serde(default)]
    pub routes: Routes,
}

/// What an app speaks.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum Speaks {
    /// HTTP/1.1, byte for byte as scripted.
    Http1,
    /// HTTP/2 with prior knowledge.
    H2,
    /// Nothing listens.
    None,
}

/// Actions by path, in the order of the row: the first that fits is used.
#[derive(Clone, Debug, Default)]
pub struct Routes(pub Vec<(String, Vec<Act>)>);

/// One action of an app: one of these, and `end` beside `headers`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Act {
    pub(super) send: Option<String>,
    pub(super) fill: Option<usize>,
    pub(super) sleep_ms: Option<u64>,
    pub(super) before_body: Option<bool>,
    pub(super) read_body: Option<bool>,
    pub(super) close: Option<bool>,
    pub(super) reset: Option<bool>,
    pub(super) close_if_nth: Option<usize>,
    pub(super) echo_raw: Option<bool>,
    pub(super) wait_eof: Option<bool>,
    pub(super) headers: Option<Vec<(String, String)>>,
    pub(super) end: Option<bool>,
    pub(super) data: Option<String>,
    pub(super) data_b64: Option<String>,
    pub(super) trailers: Option<Vec<(String, String)>>,
    pub(super) rst: Option<u32>,
}

/// One step, with what was recorded of it.
#[derive(Debug, Deserialize)]
pub struct Step {
    /// What is done.
    #[serde(flatten)]
    pub op: Op,
    /// What came of it.
    #[serde(default)]
    pub expect: Value,
    /// `any`: lists in `expect` have no order.
    pub order: Option<String>,
}

/// What a step does.
#[derive(Debug, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case")]
#[expect(missing_docs, reason = "the README of the vectors has a line for each")]
pub enum Op {
    Send {
        conn: Option<String>,
        data: String,
        fill: Option<usize>,
        port: Option<Port>,
        tls: Option<Tls>,
    },
    Recv {
        conn: Option<String>,
        timeout_ms: Option<u64>,
        #[serde(default)]
        head: bool,
    },
    RecvHead {
        conn: Option<String>,
        timeout_ms: Option<u64>,
    },
    RecvRaw {
        conn: Option<String>,
        timeout_ms: Option<u64>,
        bytes: Option<usize>,
    },
    Close {
        conn: Option<String>,
    },
    HalfClose {
        conn: Option<String>,
    },
    Connect {
        port: Option<Port>,
    },
    Sleep {
        ms: u64,
    },
    Signal {
        signal: String,
    },
    WaitExit {
        timeout_ms: Option<u64>,
    },
    WaitTick,
    Stat,
    Text {
        port: Option<Port>,
        path: Option<String>,
        grep: Option<String>,
    },
    Stdout {
        grep: Option<String>,
    },
    Stderr {
        grep: Option<String>,
    },
    H2(H2),
    Upstream,
    UpstreamCount,
    StopApp,
}

/// Requests over one HTTP/2 connection.
#[derive(Debug, Deserialize)]
pub struct H2 {
    /// Which connection.
    pub conn: Option<String>,
    /// Where to.
    pub port: Option<Port>,
    /// With TLS.
    pub tls: Option<Tls>,
    /// How long all answers may take.
    pub timeout_ms: Option<u64>,
    /// Sent at once, in this order.
    pub requests: Vec<H2Request>,
}

/// One request over HTTP/2.
#[derive(Clone, Debug, Deserialize)]
pub struct H2Request {
    /// As given, pseudo headers too.
    pub headers: Vec<(String, String)>,
    /// The body, a code point a byte.
    pub body: Option<String>,
    /// The body.
    pub body_b64: Option<String>,
    /// After the body.
    pub trailers: Option<Vec<(String, String)>>,
    /// Reset with code 8 after this.
    pub cancel_after_ms: Option<u64>,
}

/// How a client speaks TLS.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Tls {
    /// The highest version.
    pub max: Option<String>,
    /// The protocols that are offered.
    #[serde(default)]
    pub alpn: Vec<String>,
}

/// A port, by name or number.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum Port {
    /// As it is.
    Number(u16),
    /// One of those that the README names.
    Name(String),
}

/// How long a step waits where its row does not say.
pub const TIMEOUT_MS: u64 = 8000;

impl Port {
    /// The number.
    ///
    /// # Errors
    /// When there is no port of this name.
    pub fn number(port: Option<&Port>) -> anyhow::Result<u16> {
        Ok(match port {
            None => 8012,
            Some(Port::Number(number)) => *number,
            Some(Port::Name(name)) => match name.as_str() {
                "main" => 8012,
                "main_h2c" => 8013,
                "tls" => 8112,
                "admin" => 8022,
                "autoscaling_metrics" => 9090,
                "user_metrics" => 9091,
                "profiling" => 8008,
                other => anyhow::bail!("malformed row: there is no port {other}"),
            },
        })
    }
}

impl Case {
    /// All its apps.
    pub fn all_apps(&self) -> impl Iterator<Item = &App> {
        self.app.iter().chain(&self.apps)
    }
}

impl Routes {
    /// What to do for a target, if a route fits.
    pub fn of(&self, target: &str) -> Option<&[Act]> {
        let path = target.split('?').next().unwrap_or_default();
        let fits = |route: &str| match route.strip_suffix('*') {
            Some(prefix) => path.starts_with(prefix),
            None => path == route,
        };
        self.0.iter().find(|(route, _)| fits(route)).map(|(_, acts)| acts.as_slice())
    }
}

impl Op {
    /// What the row calls it.
    pub fn name(&self) -> &'static str {
        match self {
            Op::Send { .. } => "send",
            Op::Recv { .. } => "recv",
            Op::RecvHead { .. } => "recv_head",
            Op::RecvRaw { .. } => "recv_raw",
            Op::Close { .. } => "close",
            Op::HalfClose { .. } => "half_close",
            Op::Connect { .. } => "connect",
            Op::Sleep { .. } => "sleep",
            Op::Signal { .. } => "signal",
            Op::WaitExit { .. } => "wait_exit",
            Op::WaitTick => "wait_tick",
            Op::Stat => "stat",
            Op::Text { .. } => "text",
            Op::Stdout { .. } => "stdout",
            Op::Stderr { .. } => "stderr",
            Op::H2(_) => "h2",
            Op::Upstream => "upstream",
            Op::UpstreamCount => "upstream_count",
            Op::StopApp => "stop_app",
        }
    }

    /// The client connection that it is about.
    pub fn conn(&self) -> Option<&str> {
        match self {
            Op::Send { conn, .. }
            | Op::Recv { conn, .. }
            | Op::RecvHead { conn, .. }
            | Op::RecvRaw { conn, .. }
            | Op::Close { conn }
            | Op::HalfClose { conn } => Some(conn.as_deref().unwrap_or("a")),
            Op::H2(h2) => Some(h2.conn.as_deref().unwrap_or("h")),
            _ => None,
        }
    }
}

fn app_port() -> u16 {
    8080
}

impl<'de> Deserialize<'de> for Routes {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Routes, D::Error> {
        struct InOrder;
        impl<'de> Visitor<'de> for InOrder {
            type Value = Routes;
            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("actions by path")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Routes, A::Error> {
                let mut routes = Vec::new();
                while let Some(route) = map.next_entry()? {
                    routes.push(route);
                }
                Ok(Routes(routes))
            }
        }
        from.deserialize_map(InOrder)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_route_that_fits_is_used_in_the_order_of_the_row() {
        let text = r#"{"type":"http1","routes":{"/z":[],"/*":[{"close":true}],"/a":[]}}"#;
        let app: App = serde_json::from_str(text).unwrap();
        assert_eq!(app.routes.of("/a?x=/z").unwrap().len(), 1);
        assert_eq!(app.routes.of("/z?x").unwrap().len(), 0);
        assert!(app.routes.of("*").is_none());
    }
}
