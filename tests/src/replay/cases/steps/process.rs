//! Steps on the process: its end, and what it wrote.

use super::super::pattern::Pattern;
use super::super::sidecar::Sidecar;
use serde_json::{Value, json};
use std::time::Duration;

pub(super) async fn wait_exit(sidecar: &mut Sidecar, limit: Duration) -> Value {
    match sidecar.wait(limit).await {
        Some(code) => {
            json!({ "exit_code": code, "elapsed_ms_since_signal_or_start": sidecar.since.elapsed().as_millis() })
        }
        None => json!({ "running": true }),
    }
}

/// The lines that match; and all of them, for checks that look for more than
/// the original's words.
pub(super) fn lines(all: Vec<String>, grep: Option<&str>) -> anyhow::Result<Value> {
    let grep = grep.map(Pattern::new).transpose()?;
    let fits = |line: &&String| grep.as_ref().is_none_or(|grep| grep.is_match(line));
    let lines: Vec<&String> = all.iter().filter(fits).collect();
    Ok(json!({ "lines": lines, "all": all }))
}
