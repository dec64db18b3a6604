//! Clients: wrk and h2load for saturation, our own for an offered rate and
//! where those two are missing or too coarse.

use crate::load::{Outcome, Pace, Plan, Request};
use crate::peers::{Protocol, myself};
use crate::process::{CLIENTS, find, output};
use anyhow::{Context, bail};
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// Beyond the time of the load itself.
const PATIENCE: Duration = Duration::from_secs(30);

/// What clients do.
#[derive(Clone, Debug)]
pub(crate) struct Work {
    pub(crate) protocol: Protocol,
    pub(crate) request: Request,
    pub(crate) connections: usize,
    /// Of each connection (HTTP/2).
    pub(crate) streams: usize,
}

impl Work {
    pub(crate) fn get(path: &str, expected: usize, connections: usize) -> Work {
        let request = Request { path: path.into(), headers: Vec::new(), body: None, expected, grpc: false };
        Work { protocol: Protocol::Http1, request, connections, streams: 1 }
    }

    /// By our own client.
    pub(crate) fn own(&self, to: SocketAddr, pace: Pace, time: Duration) -> anyhow::Result<Outcome> {
        let plan = Plan {
            to,
            request: self.request.clone(),
            connections: self.connections,
            streams: self.streams,
            pace,
            time,
            hosts: 0,
            each_once: false,
        };
        own(self.protocol, &plan)
    }

    /// By wrk or h2load, as many as the proxy takes; latencies are wrk's.
    pub(crate) fn saturate(&self, to: SocketAddr, time: Duration, folder: &Path) -> anyhow::Result<Outcome> {
        match self.protocol {
            Protocol::Http1 if find("wrk").is_some() && time.subsec_nanos() == 0 => self.wrk(to, time, folder),
            Protocol::Http2 if find("h2load").is_some() => self.h2load(to, time, folder),
            _ => self.own(to, Pace::Closed, time),
        }
    }

    fn wrk(&self, to: SocketAddr, time: Duration, folder: &Path) -> anyhow::Result<Outcome> {
        let mut command = Command::new(find("wrk").context("wrk is missing")?);
        command.arg("-t1").arg(format!("-c{}", self.connections)).arg(format!("-d{}", time.as_secs())).arg("--latency");
        for (name, value) in &self.request.headers {
            command.arg("-H").arg(format!("{name}: {value}"));
        }
        if let Some(length) = self.request.body {
            let script = folder.join("post.lua");
            std::fs::write(&script, format!("wrk.method = \"POST\"\nwrk.body = string.rep(\"x\", {length})\n"))?;
            command.arg("-s").arg(script);
        }
        command.arg(format!("http://{to}{}", self.request.path));
        wrk_outcome(&output(&mut command, CLIENTS, time + PATIENCE)?)
    }

    fn h2load(&self, to: SocketAddr, time: Duration, folder: &Path) -> anyhow::Result<Outcome> {
        let mut command = Command::new(find("h2load").context("h2load is missing")?);
        command.arg("-t1").arg(format!("-c{}", self.connections)).arg(format!("-m{}", self.streams));
        command.arg(format!("--duration={}ms", time.as_millis()));
        for (name, value) in &self.request.headers {
            command.arg("-H").arg(format!("{name}: {value}"));
        }
        if let Some(length) = self.request.body {
            let file = folder.join("body");
            let body = match self.request.grpc {
                true => crate::direct::http2::message(length).to_vec(),
                false => vec![b'x'; length],
            };
            std::fs::write(&file, body)?;
            command.arg("-d").arg(file);
        }
        command.arg(format!("http://{to}{}", self.request.path));
        let mut outcome = h2load_outcome(&output(&mut command, CLIENTS, time + PATIENCE)?)?;
        outcome.seconds = time.as_secs_f64();
        Ok(outcome)
    }
}

/// Runs our own client as a process on the clients' processor.
pub(crate) fn own(protocol: Protocol, plan: &Plan) -> anyhow::Result<Outcome> {
    let kind = match protocol {
        Protocol::Http1 => "load",
        Protocol::Http2 => "load-http2",
    };
    let mut command = Command::new(myself()?);
    command.arg(kind).arg(serde_json::to_string(plan)?);
    Ok(serde_json::from_str(&output(&mut command, CLIENTS, plan.time + PATIENCE)?)?)
}

fn wrk_outcome(text: &str) -> anyhow::Result<Outcome> {
    let mut outcome = Outcome::default();
    for line in text.lines() {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        match words[..] {
            ["50%", value] => outcome.p50 = microseconds(value)?,
            ["90%", value] => outcome.p90 = microseconds(value)?,
            ["99%", value] => outcome.p99 = microseconds(value)?,
            [count, "requests", "in", time, ..] => {
                outcome.completed = count.parse()?;
                outcome.seconds = microseconds(time.trim_end_matches(','))? / 1e6;
            }
            // `Socket errors: connect 0, read 5, write 0, timeout 0`
            ["Socket", "errors:", ..] => {
                let counts = words.iter().filter_map(|word| word.trim_end_matches(',').parse::<u64>().ok());
                outcome.errors += counts.sum::<u64>();
            }
            ["Non-2xx", .., count] => outcome.errors += count.parse::<u64>()?,
            _ => {}
        }
    }
    if outcome.seconds == 0.0 {
        bail!("wrk said: {text}");
    }
    Ok(outcome)
}

/// `1.27ms`, `870.00us`, `1.00s`.
fn microseconds(text: &str) -> anyhow::Result<f64> {
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let factor = match &text[digits.len()..] {
        "us" => 1.0,
        "ms" => 1e3,
        "s" => 1e6,
        "m" => 60e6,
        _ => bail!("no time: {text}"),
    };
    Ok(digits.parse::<f64>()? * factor)
}

fn h2load_outcome(text: &str) -> anyhow::Result<Outcome> {
    // `requests: 9 total, 9 started, 9 done, 9 succeeded, 0 failed, 0 errored, 0 timeout`
    let line = text.lines().find_map(|line| line.strip_prefix("requests: ")).with_context(|| text.to_owned())?;
    let count = |what: &str| -> anyhow::Result<u64> {
        let part = line.split(", ").find_map(|part| part.strip_suffix(what)).with_context(|| line.to_owned())?;
        Ok(part.trim().parse()?)
    };
    let errors = count(" failed")? + count(" errored")? + count(" timeout")?;
    Ok(Outcome { completed: count(" succeeded")?, errors, ..Outcome::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrk_is_read() {
        let text = "Running 1s test @ http://127.0.0.1:1/
  1 threads and 64 connections
  Latency Distribution
     50%  870.00us
     75%    1.12ms
     90%    1.27ms
     99%    1.02s
  51234 requests in 1.10s, 5.86MB read
  Socket errors: connect 0, read 5, write 0, timeout 1
  Non-2xx or 3xx responses: 3
";
        let outcome = wrk_outcome(text).unwrap();
        assert_eq!((outcome.completed, outcome.errors), (51234, 9));
        assert_eq!((outcome.p50, outcome.p90, outcome.p99), (870.0, 1270.0, 1.02e6));
        assert!((outcome.seconds - 1.1).abs() < 1e-9);
    }

    #[test]
    fn h2load_is_read() {
        let text = "finished in 1.00s, 9 req/s
requests: 900 total, 910 started, 905 done, 903 succeeded, 2 failed, 1 errored, 0 timeout
";
        let outcome = h2load_outcome(text).unwrap();
        assert_eq!((outcome.completed, outcome.errors), (903, 3));
    }
}
