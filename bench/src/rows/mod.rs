//! What is measured: a row for each line of the goals.

mod cpu;

use crate::session::Session;

/// One row.
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    /// What of ours it takes, by package.
    pub(crate) needs: &'static [&'static str],
    pub(crate) run: fn(&mut Session) -> anyhow::Result<()>,
}

const SIDECAR: &[&str] = &["queue-proxy"];
const SIDECAR_AND_ACTIVATOR: &[&str] = &["queue-proxy", "activator"];

pub(crate) const ALL: &[Row] = &[
    Row { name: "get-0", about: "GET, 0 B, 64 connections", needs: SIDECAR_AND_ACTIVATOR, run: cpu::get_0 },
    Row { name: "get-1k", about: "GET, 1 KiB, 64 connections", needs: SIDECAR_AND_ACTIVATOR, run: cpu::get_1k },
    Row {
        name: "get-12-headers",
        about: "GET with 12 headers, 1 KiB, 64 connections",
        needs: SIDECAR_AND_ACTIVATOR,
        run: cpu::get_12_headers,
    },
    Row { name: "post-10k", about: "POST of 10 KiB, 64 connections", needs: SIDECAR_AND_ACTIVATOR, run: cpu::post_10k },
    Row { name: "get-64k", about: "GET, 64 KiB, 16 connections", needs: SIDECAR_AND_ACTIVATOR, run: cpu::get_64k },
    Row { name: "get-1m", about: "GET, 1 MiB, 8 connections", needs: SIDECAR_AND_ACTIVATOR, run: cpu::get_1m },
    Row {
        name: "h2c-unary",
        about: "h2c: POST of 128 B, 1 KiB, 4 connections of 16 streams",
        needs: SIDECAR_AND_ACTIVATOR,
        run: cpu::h2c_unary,
    },
    Row {
        name: "h2c-64k",
        about: "h2c: GET, 64 KiB, 4 connections of 4 streams",
        needs: SIDECAR_AND_ACTIVATOR,
        run: cpu::h2c_64k,
    },
    Row {
        name: "grpc-unary",
        about: "gRPC: 128 B, 1 KiB, 4 connections of 16 streams",
        needs: SIDECAR_AND_ACTIVATOR,
        run: cpu::grpc_unary,
    },
    Row {
        name: "grpc-stream",
        about: "gRPC: 100 messages of 128 B for each request, 4 connections of 4 streams",
        needs: SIDECAR_AND_ACTIVATOR,
        run: cpu::grpc_stream,
    },
];
