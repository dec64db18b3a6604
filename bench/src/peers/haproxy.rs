//! HAProxy: one thread, no log, connections to the app kept and shared.

use super::{AMPLE, Peer, Protocol, Running, Setup, local};
use anyhow::Context;
use std::path::Path;
use std::process::Command;

pub(super) fn start(setup: Setup, folder: &Path) -> anyhow::Result<Running> {
    let address = local(match setup.protocol {
        Protocol::Http1 => 9130,
        Protocol::Http2 => 9131,
    });
    let app = setup.protocol.app();
    let protocol = match setup.protocol {
        Protocol::Http1 => "",
        Protocol::Http2 => " proto h2",
    };
    // Beyond it requests wait here, first in, first out.
    let limit = if setup.limit < AMPLE { format!(" maxconn {}", setup.limit) } else { String::new() };
    let text = format!(
        "global
  nbthread 1
  maxconn 4000
defaults
  mode http
  option forwardfor
  http-reuse always
  timeout connect 5s
  timeout client 1h
  timeout server 1h
  timeout queue 300s
  timeout http-keep-alive 1h
frontend in
  bind {address}{protocol}
  http-request set-header X-Forwarded-Host %[req.hdr(host)]
  http-request set-header X-Forwarded-Proto http
  default_backend app
backend app
  server app {app}{protocol}{limit} pool-max-conn 1000
"
    );
    let file = folder.join("haproxy.cfg");
    std::fs::write(&file, text)?;
    let mut command = Command::new(crate::process::find("haproxy").context("it is missing")?);
    // `-db`: in the foreground, one process.
    command.arg("-db").arg("-f").arg(&file);
    Running::of(Peer::Haproxy, "haproxy", &mut command, address, folder)
}
