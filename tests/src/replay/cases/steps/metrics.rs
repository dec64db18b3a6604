//! Steps on the metrics ports.

use super::super::case::Port;
use super::super::client::Conn;
use super::super::exposition;
use super::super::latin;
use super::super::pattern::Pattern;
use super::super::sidecar::Sidecar;
use super::super::stat;
use anyhow::{Context, bail};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// The port for the autoscaler.
const STAT_PORT: u16 = 9090;

/// How long an answer may take.
const ANSWERS_WITHIN: Duration = Duration::from_secs(8);

/// How long a report may take: it comes each second.
const TICKS_WITHIN: Duration = Duration::from_secs(6);

/// How often a new report is looked for.
const LOOK: Duration = Duration::from_millis(10);

/// Reads the Stat.
pub(super) async fn stat(sidecar: &Sidecar) -> anyhow::Result<Value> {
    let age = sidecar.started.elapsed().as_millis();
    let answer = get(STAT_PORT, "/metrics").await?;
    let mut told = json!({ "status": answer["status"], "content_type": header(&answer, "content-type") });
    let body = latin::bytes(answer["body"].as_str().unwrap_or_default(), None)?;
    match stat::decode(&body) {
        Ok(stat) => told["stat"] = stat,
        Err(why) => bail!("the body on port {STAT_PORT} is no Stat: {why}"),
    }
    told["age_ms"] = json!(age);
    Ok(told)
}

/// Waits for the next report.
pub(super) async fn wait_tick() -> anyhow::Result<Value> {
    let uptime = async || -> anyhow::Result<Value> {
        let answer = get(STAT_PORT, "/metrics").await?;
        let body = latin::bytes(answer["body"].as_str().unwrap_or_default(), None)?;
        Ok(stat::decode(&body).map_err(anyhow::Error::msg)?["process_uptime"].clone())
    };
    let deadline = Instant::now() + TICKS_WITHIN;
    let before = uptime().await?;
    while uptime().await? == before {
        if Instant::now() > deadline {
            bail!("no new report on port {STAT_PORT} within {TICKS_WITHIN:?}");
        }
        tokio::time::sleep(LOOK).await;
    }
    Ok(json!({}))
}

/// Reads a page of text.
pub(super) async fn text(port: Option<&Port>, path: &str, grep: Option<&str>) -> anyhow::Result<Value> {
    let answer = get(Port::number(port)?, path).await?;
    let grep = grep.map(Pattern::new).transpose()?;
    let body = answer["body"].as_str().unwrap_or_default();
    let lines: Vec<&str> = body.lines().filter(|line| grep.as_ref().is_none_or(|grep| grep.is_match(line))).collect();
    let mut told = exposition::read(&lines);
    told["status"] = answer["status"].clone();
    told["content_type"] = json!(header(&answer, "content-type"));
    told["lines"] = json!(lines);
    Ok(told)
}

async fn get(port: u16, path: &str) -> anyhow::Result<Value> {
    let (mut conn, _) = Conn::open(port, None, None).await.with_context(|| format!("connecting to port {port}"))?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n");
    conn.send(request.as_bytes(), ANSWERS_WITHIN).await?;
    let answer = conn.recv(false, false, ANSWERS_WITHIN).await;
    conn.close().await;
    if answer["status"].is_null() {
        bail!("port {port} gave no answer: {answer}");
    }
    Ok(answer)
}

fn header(answer: &Value, name: &str) -> Option<String> {
    let all = answer["headers"].as_array()?;
    let found = all.iter().find(|pair| pair[0].as_str().is_some_and(|key| key.eq_ignore_ascii_case(name)))?;
    Some(found[1].as_str()?.to_owned())
}
