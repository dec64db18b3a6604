//! Ours, as they ship: a limit set, requests counted and told to Prometheus.

use super::{Peer, Protocol, Running, Setup, local, sidecar_env};
use crate::process::{PROXY, Process};
use anyhow::Context;
use std::fmt::Write;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Command;

const METRICS: &str = r#"{"requestMetrics":{"protocol":"prometheus","endpoint":"127.0.0.1:0"}}"#;
const ACTIVATOR_METRICS: &str = r#"{"metrics":{"protocol":"prometheus","endpoint":"127.0.0.1:0"}}"#;

pub(crate) fn binary(name: &str) -> Option<PathBuf> {
    let folder = std::env::var_os("ZEROSCALE_BIN_DIR")?;
    Some(PathBuf::from(folder).join(name)).filter(|file| file.is_file())
}

pub(super) fn missing(name: &str) -> Option<String> {
    match binary(name) {
        Some(_) => None,
        None => Some(format!("`{name}` is not in ZEROSCALE_BIN_DIR (`bench/compare` builds it)")),
    }
}

/// The sidecar's command alone, for who starts it himself.
pub(crate) fn sidecar_command(setup: Setup, address: SocketAddr) -> anyhow::Result<Command> {
    let mut command = Command::new(binary("queue-proxy").context("it is missing")?);
    sidecar_env::set(&mut command, setup, address.port());
    command.envs([
        ("OBSERVABILITY_CONFIG", METRICS),
        ("QUEUE_SERVING_TLS_PORT", "0"),
        ("ZEROSCALE_BIND", "127.0.0.1"),
        ("ZEROSCALE_ADMIN_PORT", "0"),
        ("ZEROSCALE_METRICS_PORT", "0"),
    ]);
    Ok(command)
}

pub(super) fn queue_proxy(setup: Setup, folder: &Path) -> anyhow::Result<Running> {
    let address = local(match setup.protocol {
        Protocol::Http1 => 9160,
        Protocol::Http2 => 9161,
    });
    Running::of(Peer::QueueProxy, "queue-proxy", &mut sidecar_command(setup, address)?, address, folder)
}

/// A snapshot of so many revisions with a pod each, which is the app itself at
/// an address of its own. Revision `n` has the host `rN.example`.
pub(crate) fn revisions(count: u32, setup: Setup) -> String {
    let mut text = "revisions:\n".to_owned();
    for number in 0..count {
        // From 127.1.0.1 on: all of them are the loopback.
        let address = Ipv4Addr::from_bits(Ipv4Addr::new(127, 1, 0, 1).to_bits() + number);
        let port = setup.protocol.app().port();
        let _ = writeln!(
            text,
            "- {{name: default/r{number}, hosts: [r{number}.example], fallback: {}, containerConcurrency: {}, \
             pods: [{{name: p{number}, address: '{address}:{port}'}}]}}",
            number == 0,
            setup.limit,
        );
    }
    text.push_str("...\n");
    text
}

/// The activator on a snapshot; `unasked` means that pods get requests without
/// being asked whether they are ready, as behind a mesh.
pub(crate) fn activator(setup: Setup, snapshot: &str, unasked: bool, folder: &Path) -> anyhow::Result<Running> {
    let http2 = setup.protocol == Protocol::Http2;
    let port = if unasked { 9170 } else { 9180 } + u16::from(http2);
    let file = folder.join(format!("world-{port}.yaml"));
    std::fs::write(&file, snapshot)?;
    let mut command = Command::new(super::ours::binary("activator").context("it is missing")?);
    command.env_clear().envs([
        ("POD_NAME", "activator-1"),
        ("POD_IP", "127.0.0.1"),
        ("SYSTEM_NAMESPACE", "knative-serving"),
        ("OBSERVABILITY_CONFIG", ACTIVATOR_METRICS),
        ("ZEROSCALE_BIND", "127.0.0.1"),
        ("ZEROSCALE_AUTOSCALER", "127.0.0.1:1"),
        ("ZEROSCALE_HTTP2_PORT", "0"),
        ("ZEROSCALE_HTTPS_PORT", "0"),
        ("ZEROSCALE_WORKERS", "1"),
        ("ZEROSCALE_LOG_LEVEL", "error"),
        ("ZEROSCALE_HELD_MAX", "200000"),
        ("ZEROSCALE_HELD_ALL_MAX", "200000"),
        ("ZEROSCALE_MESH", if unasked { "disabled" } else { "auto" }),
    ]);
    command.env("ZEROSCALE_PLATFORM", format!("file:{}", file.display()));
    command.env("ZEROSCALE_HTTP_PORT", port.to_string());
    command.env("METRICS_PROMETHEUS_PORT", metrics_of(local(port)).port().to_string());
    command.env("PROFILING_PORT", (port + 4).to_string());
    Running::of(Peer::Activator, "activator", &mut command, local(port), folder)
}

/// Where the activator at this address shows its metrics.
pub(crate) fn metrics_of(activator: SocketAddr) -> SocketAddr {
    local(activator.port() + 2)
}

/// The activator in front of a sidecar.
pub(super) fn both(setup: Setup, folder: &Path) -> anyhow::Result<Running> {
    let behind = local(match setup.protocol {
        Protocol::Http1 => 9190,
        Protocol::Http2 => 9191,
    });
    let mut sidecar = Process::start("both-queue-proxy", &mut sidecar_command(setup, behind)?, Some(PROXY), folder)?;
    sidecar.listens(behind)?;
    let snapshot = format!(
        "revisions:\n- {{name: default/rev, fallback: true, containerConcurrency: {}, \
         pods: [{{name: pod, address: '{behind}'}}]}}\n...\n",
        setup.limit
    );
    let mut running = activator(setup, &snapshot, false, folder)?;
    running.peer = Peer::Both;
    running.processes.push(sidecar);
    Ok(running)
}
