//! nginx: one worker, no log, connections to the app kept.

use super::{Peer, Protocol, Running, Setup, local};
use anyhow::Context;
use std::path::Path;
use std::process::Command;

pub(super) fn start(setup: Setup, folder: &Path) -> anyhow::Result<Running> {
    let address = local(match setup.protocol {
        Protocol::Http1 => 9120,
        Protocol::Http2 => 9121,
    });
    let app = setup.protocol.app();
    let (listen, passing) = match setup.protocol {
        Protocol::Http1 => (
            format!("listen {address} backlog=1024;"),
            "proxy_pass http://app; proxy_http_version 1.1; proxy_max_temp_file_size 0;
      proxy_set_header Connection \"\"; proxy_set_header Host $http_host;
      proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
      proxy_set_header X-Forwarded-Host $http_host; proxy_set_header X-Forwarded-Proto http;",
        ),
        Protocol::Http2 => (
            format!("listen {address} http2 backlog=1024; http2_max_concurrent_streams 1000;"),
            "grpc_pass grpc://app;
      grpc_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
      grpc_set_header X-Forwarded-Host $http_host; grpc_set_header X-Forwarded-Proto http;",
        ),
    };
    let text = format!(
        "daemon off; worker_processes 1; error_log stderr error; pid {folder}/nginx.pid; worker_rlimit_nofile 65536;
events {{ worker_connections 16384; }}
http {{
  access_log off; server_tokens off; tcp_nodelay on;
  keepalive_requests 1000000000; keepalive_timeout 1h;
  client_body_temp_path {folder}/nginx-body; proxy_temp_path {folder}/nginx-proxy;
  fastcgi_temp_path {folder}/nginx-f; uwsgi_temp_path {folder}/nginx-u; scgi_temp_path {folder}/nginx-s;
  upstream app {{ server {app}; keepalive 512; keepalive_requests 1000000000; keepalive_timeout 1h; }}
  server {{
    {listen}
    location / {{
      {passing}
    }}
  }}
}}
",
        folder = folder.display()
    );
    let file = folder.join("nginx.conf");
    std::fs::write(&file, text)?;
    let mut command = Command::new(crate::process::find("nginx").context("it is missing")?);
    command.arg("-p").arg(folder).arg("-e").arg("stderr").arg("-c").arg(&file);
    Running::of(Peer::Nginx, "nginx", &mut command, address, folder)
}
