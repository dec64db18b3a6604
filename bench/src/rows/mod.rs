//! What is measured: a row for each line of the goals.

pub(crate) mod cold_start;
mod cpu;
pub(crate) mod held;
pub(crate) mod idle;
pub(crate) mod latency;
pub(crate) mod limit;
pub(crate) mod memory;
pub(crate) mod revisions;
pub(crate) mod start;
pub(crate) mod syscalls;

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
    Row { name: "syscalls", about: "system calls for each request, strace", needs: SIDECAR, run: syscalls::run },
    Row {
        name: "limit",
        about: "a limit of 10 and 64 clients: p99 by p50",
        needs: SIDECAR_AND_ACTIVATOR,
        run: limit::run,
    },
    Row {
        name: "latency",
        about: "added latency of one connection",
        needs: SIDECAR_AND_ACTIVATOR,
        run: latency::plain,
    },
    Row {
        name: "quota",
        about: "added latency of 200 requests a second under a quota of 0.1 processor",
        needs: SIDECAR,
        run: latency::under_quota,
    },
    Row {
        name: "both",
        about: "activator and sidecar together, a limit of 10, 64 connections",
        needs: SIDECAR_AND_ACTIVATOR,
        run: limit::both,
    },
    Row {
        name: "memory",
        about: "resident memory: fresh, idle clients, load",
        needs: SIDECAR_AND_ACTIVATOR,
        run: memory::run,
    },
    Row { name: "held", about: "memory of a request held at the activator", needs: &["activator"], run: held::run },
    Row { name: "start", about: "start of the process to its first answer", needs: SIDECAR, run: start::run },
    Row {
        name: "cold-start",
        about: "start from zero on the local floor, beyond the app's own",
        needs: &["local"],
        run: cold_start::run,
    },
    Row {
        name: "idle",
        about: "context switches in a minute, 100 kept connections",
        needs: SIDECAR_AND_ACTIVATOR,
        run: idle::run,
    },
    Row {
        name: "revisions",
        about: "activator with 10,000 revisions (Zipf) by itself with 10",
        needs: &["activator"],
        run: revisions::run,
    },
    Row {
        name: "autoscaler",
        about: "stats ingested and ticks: measured by a campaign of the tests",
        needs: &[],
        run: autoscaler,
    },
];

/// Not from here: it has its own clients, and no peer.
fn autoscaler(session: &mut Session) -> anyhow::Result<()> {
    let how = "autoscaler: `cargo run --profile dist -p tests --bin campaign -- autoscaler-load` measures it \
               (stats ingested per CPU second: 1,000,000 at least; a tick of 20,000 revisions: 200 ms at most)";
    session.book.notes.push(how.to_owned());
    Ok(())
}
