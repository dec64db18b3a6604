//! Knative's queue-proxy, if `KNATIVE_QUEUE_PROXY` names a binary. With its
//! defaults: no log and no metrics of requests, which is when it is fastest.

use super::{Peer, Protocol, Running, Setup, local, sidecar_env};
use anyhow::Context;
use std::path::{Path, PathBuf};
use std::process::Command;

const VARIABLE: &str = "KNATIVE_QUEUE_PROXY";
const QUIET: &str = concat!(
    r#"{"tracing":{"protocol":"none"},"metrics":{"protocol":"none"},"#,
    r#""runtime":{"profiling":"disabled","exportInterval":15000000000},"requestMetrics":{"protocol":"none"}}"#
);

fn binary() -> Option<PathBuf> {
    std::env::var_os(VARIABLE).map(PathBuf::from)
}

pub(super) fn missing() -> Option<String> {
    match binary() {
        None => Some(format!("`{VARIABLE}` names no binary (build cmd/queue of knative.dev/serving)")),
        Some(path) if !path.is_file() => Some(format!("{} is not there", path.display())),
        Some(_) => None,
    }
}

/// What Go wrote into the binary, if its `go` is here.
pub(super) fn version() -> String {
    let read = || {
        let binary = binary()?;
        let go = crate::process::find("go").unwrap_or_else(|| PathBuf::from("/usr/local/go/bin/go"));
        let output = Command::new(go).args(["version", "-m"]).arg(&binary).output().ok()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        Some(text.lines().next()?.rsplit(' ').next()?.to_owned())
    };
    read().unwrap_or_default()
}

/// The controller passes it by its port which protocol the app speaks.
fn port(setup: Setup) -> u16 {
    match setup.protocol {
        Protocol::Http1 => 8012,
        Protocol::Http2 => 8013,
    }
}

/// The command alone, for who starts it himself.
pub(crate) fn command(setup: Setup) -> anyhow::Result<(Command, std::net::SocketAddr)> {
    let mut command = Command::new(binary().context("it is missing")?);
    sidecar_env::set(&mut command, setup, port(setup));
    command.env("OBSERVABILITY_CONFIG", QUIET);
    Ok((command, local(port(setup))))
}

pub(super) fn start(setup: Setup, folder: &Path) -> anyhow::Result<Running> {
    let (mut command, address) = command(setup)?;
    Running::of(Peer::Knative, "knative", &mut command, address, folder)
}
