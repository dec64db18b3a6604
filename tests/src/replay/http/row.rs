//! A row of `http.jsonl`, and what the driver saw of one.

use policy::compat::Compat;
use serde::Deserialize;
use std::time::Duration;

/// One row.
#[derive(Clone, Debug, Deserialize)]
pub struct Row {
    /// What it is called.
    pub id: String,
    /// What it shows.
    pub label: String,
    /// `http` or `upgrade_timer`.
    pub kind: String,
    /// How the original's outcome counts.
    pub verdict: String,
    /// Sent to the activator; NUL is a pause.
    #[serde(default)]
    pub request: String,
    /// What came back, until the connection closed or the wait ended.
    #[serde(default)]
    pub response: String,
    /// What the pod saw, if it saw anything.
    pub pod_received: Option<String>,
    /// How long it took, or how long was read.
    #[serde(default)]
    pub elapsed_ms_rounded: u64,
    /// Whether the activator makes traces.
    #[serde(default)]
    pub tracing: String,
    /// Pods are addressed by name.
    #[serde(default)]
    pub passthrough_lb: bool,
    /// Of upgraded connections: `closed` or `open`.
    #[serde(default)]
    pub outcome: String,
    /// When.
    #[serde(default)]
    pub after_ms: u64,
}

impl Row {
    /// The number of `htp-NUMBER`.
    pub fn number(&self) -> u32 {
        self.id.rsplit('-').next().and_then(|number| number.parse().ok()).unwrap_or_default()
    }

    /// How long the client reads, where the connection stays open.
    pub fn reads_for(&self) -> Option<Duration> {
        matches!(self.number(), 52 | 53 | 58).then(|| Duration::from_millis(self.elapsed_ms_rounded))
    }

    /// What the recorder saw, as the driver would have told it.
    pub fn as_recorded(&self) -> Seen {
        let upgrade = self.kind == "upgrade_timer";
        let elapsed = if upgrade { self.after_ms } else { self.elapsed_ms_rounded };
        let elapsed = Duration::from_millis(elapsed);
        Seen {
            mode: Compat::Strict,
            response: self.response.clone(),
            // Pieces of a known length stay in a buffer until the end.
            first_byte: (!self.response.is_empty()).then_some(elapsed),
            elapsed,
            ended: if upgrade { self.outcome == "closed" } else { self.reads_for().is_none() },
            pod_received: self.pod_received.clone().unwrap_or_default(),
        }
    }
}

/// What the driver saw.
#[derive(Clone, Debug)]
pub struct Seen {
    /// In which mode.
    pub mode: Compat,
    /// All that came back, a code point a byte.
    pub response: String,
    /// When its first byte came.
    pub first_byte: Option<Duration>,
    /// When the connection ended, or nobody read any longer.
    pub elapsed: Duration,
    /// The connection ended.
    pub ended: bool,
    /// What pods saw, the pod's address as `POD`.
    pub pod_received: String,
}
