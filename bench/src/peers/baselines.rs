//! The baselines of `bench/baselines`: plain hyper, and pingora.

use super::{Peer, Protocol, Running, Setup, local};
use anyhow::Context;
use std::path::{Path, PathBuf};
use std::process::Command;

fn binary(name: &str) -> Option<PathBuf> {
    let folder = std::env::var_os("BASELINES_BIN_DIR")?;
    Some(PathBuf::from(folder).join(format!("baseline-{name}"))).filter(|file| file.is_file())
}

pub(super) fn missing(name: &str) -> Option<String> {
    match binary(name) {
        Some(_) => None,
        None => Some(format!("`baseline-{name}` has not been built (bench/baselines)")),
    }
}

pub(super) fn start(peer: Peer, setup: Setup, folder: &Path) -> anyhow::Result<Running> {
    let (name, port) = match peer {
        Peer::Pingora => ("pingora", 9140),
        _ => ("hyper", 9150),
    };
    let (protocol, address) = match setup.protocol {
        Protocol::Http1 => ("http1", local(port)),
        Protocol::Http2 => ("http2", local(port + 1)),
    };
    let mut command = Command::new(binary(name).context("it is missing")?);
    command.args([protocol, &address.to_string(), &setup.protocol.app().to_string()]);
    Running::of(peer, name, &mut command, address, folder)
}
