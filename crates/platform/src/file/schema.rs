//! The form of the snapshot file. What it means: `resolve`.

use serde::Deserialize;
use std::net::{IpAddr, SocketAddr};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    pub(super) revisions: Vec<Revision>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Revision {
    pub(super) name: String,
    pub(super) service: Option<String>,
    pub(super) configuration: Option<String>,
    #[serde(default)]
    pub(super) hosts: Vec<String>,
    #[serde(default)]
    pub(super) fallback: bool,
    #[serde(default)]
    pub(super) container_concurrency: u32,
    #[serde(default)]
    pub(super) path: Path,
    #[serde(default)]
    pub(super) timeouts: Timeouts,
    #[serde(default)]
    pub(super) scale: Scale,
    pub(super) trouble: Option<Trouble>,
    #[serde(default)]
    pub(super) without_room: u32,
    pub(super) private_service: Option<SocketAddr>,
    #[serde(default)]
    pub(super) activators: Vec<IpAddr>,
    pub(super) trust_probe: Option<bool>,
    #[serde(default)]
    pub(super) pods: Vec<Pod>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Path {
    #[default]
    Activator,
    Direct,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Timeouts {
    pub(super) total: Option<String>,
    pub(super) response_start: Option<String>,
    pub(super) idle: Option<String>,
    pub(super) upgrade: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Scale {
    #[serde(default)]
    pub(super) metric: Metric,
    pub(super) target: Option<f64>,
    pub(super) target_utilization_percentage: Option<f64>,
    pub(super) target_burst_capacity: Option<f64>,
    pub(super) min: Option<u32>,
    pub(super) max: Option<u32>,
    pub(super) initial: Option<u32>,
    pub(super) activation: Option<u32>,
    pub(super) window: Option<String>,
    pub(super) panic_window_percentage: Option<f64>,
    pub(super) panic_threshold_percentage: Option<f64>,
    pub(super) scale_down_delay: Option<String>,
    pub(super) grace: Option<String>,
    pub(super) retention: Option<String>,
    pub(super) start_timeout: Option<String>,
    pub(super) to_zero: Option<bool>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Metric {
    #[default]
    Concurrency,
    Rps,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Trouble {
    pub(super) reason: TroubleReason,
    pub(super) text: String,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum TroubleReason {
    StartFailed,
    StartTimeout,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Pod {
    pub(super) name: String,
    pub(super) address: SocketAddr,
    #[serde(default)]
    pub(super) phase: Phase,
    pub(super) start_took: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Phase {
    Starting,
    #[default]
    Ready,
    Terminating,
}
