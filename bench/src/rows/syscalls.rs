//! System calls for each request, every one of them, by strace.

use crate::book::Measure;
use crate::clients::Work;
use crate::load::Pace;
use crate::peers::{AMPLE, Peer, Protocol, Running, Setup};
use crate::process::{PROXY, Process, find};
use crate::session::Session;
use anyhow::{Context, ensure};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

pub(crate) const CALLS_64: Measure = ("system calls per request, c64", "");
pub(crate) const CALLS_1: Measure = ("system calls per request, c1", "");
pub(crate) const EMPTY_64: Measure = ("reads that find nothing per request, c64", "");
pub(crate) const EMPTY_1: Measure = ("reads that find nothing per request, c1", "");
pub(crate) const WAKES_64: Measure = ("wake-up writes per request, c64", "");
pub(crate) const WAKES_1: Measure = ("wake-up writes per request, c1", "");

const PEERS: &[Peer] =
    &[Peer::QueueProxy, Peer::Floor, Peer::Nginx, Peer::Haproxy, Peer::Knative, Peer::Hyper, Peer::Pingora];
const PATIENCE: Duration = Duration::from_secs(10);

pub(super) fn run(session: &mut Session) -> anyhow::Result<()> {
    let strace = find("strace").context("`strace` is not installed")?;
    let setup = Setup { protocol: Protocol::Http1, limit: AMPLE };
    let peers = if session.options.quick { &PEERS[..2] } else { PEERS };
    let running = session.start("syscalls", peers, setup, &Work::get("/1k", 1 << 10, 1));
    // Connections are made within this time too: it is long enough that what
    // they take does not show in the second digit.
    let time = Duration::from_secs(if session.options.quick { 3 } else { 8 });
    let kinds = [(64, CALLS_64, EMPTY_64, WAKES_64), (1, CALLS_1, EMPTY_1, WAKES_1)];
    for peer in &running {
        for (connections, calls, empty, wakes) in kinds {
            let counts = traced(&strace, peer, session.folder(), || {
                let work = Work::get("/1k", 1 << 10, connections);
                work.own(peer.address, Pace::Closed, time)
            });
            let (counts, outcome) = match counts {
                Ok((counts, outcome)) => (counts, Ok(outcome)),
                Err(error) => (Counts::default(), Err(error)),
            };
            let Some(outcome) = session.counted("syscalls", peer.peer, 0, outcome) else { continue };
            let each = |count: u64| count as f64 / outcome.completed as f64;
            session.book.add("syscalls", calls, peer.peer, 0, each(counts.calls));
            session.book.add("syscalls", empty, peer.peer, 0, each(counts.empty_reads));
            session.book.add("syscalls", wakes, peer.peer, 0, each(counts.wake_ups));
        }
    }
    Ok(())
}

#[derive(Debug, Default, PartialEq)]
struct Counts {
    calls: u64,
    /// Reads that returned EAGAIN.
    empty_reads: u64,
    /// Writes of a counter of 8 bytes, as to an eventfd.
    wake_ups: u64,
}

fn traced<T>(
    strace: &Path,
    peer: &Running,
    folder: &Path,
    run: impl FnOnce() -> anyhow::Result<T>,
) -> anyhow::Result<(Counts, T)> {
    let trace = folder.join("trace");
    let mut command = Command::new(strace);
    command.arg("-f").arg("-q").arg("-o").arg(&trace).args(["-s", "16"]);
    let ids = peer.ids();
    for id in &ids {
        command.arg("-p").arg(id.to_string());
    }
    // Beside the proxy, which stands still while it is looked at: clients and
    // app keep their processor, and requests come as densely as without it.
    let tracer = Process::start("strace", &mut command, Some(PROXY), folder)?;
    let began = Instant::now();
    while !ids.iter().all(|id| is_traced(*id)) {
        ensure!(began.elapsed() < PATIENCE, "strace does not attach: {}", tracer.said());
        std::thread::sleep(Duration::from_millis(5));
    }
    let outcome = run();
    tracer.interrupt()?;
    let text = std::fs::read(&trace)?;
    Ok((count(&String::from_utf8_lossy(&text)), outcome?))
}

fn is_traced(process: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let tracer = status.lines().find_map(|line| line.strip_prefix("TracerPid:"));
    tracer.is_some_and(|tracer| tracer.trim() != "0")
}

/// Of lines such as `12 recvfrom(7, ..., 65536, 0, NULL, NULL) = -1 EAGAIN (...)`;
/// one that was interrupted by another thread's stands twice: `... <unfinished ...>`
/// and `<... recvfrom resumed>...`.
fn count(trace: &str) -> Counts {
    let mut counts = Counts::default();
    for line in trace.lines() {
        let Some((_, line)) = line.split_once(' ') else { continue };
        let line = line.trim_start();
        let resumed = line.strip_prefix("<... ");
        let name = resumed.unwrap_or(line).split([' ', '(']).next().unwrap_or_default();
        if line.starts_with(['+', '-']) || name.is_empty() {
            continue;
        }
        counts.calls += u64::from(resumed.is_none());
        let reads = ["read", "readv", "recvfrom", "recvmsg", "recv"].contains(&name);
        counts.empty_reads += u64::from(reads && line.contains("= -1 EAGAIN"));
        counts.wake_ups +=
            u64::from(resumed.is_none() && name == "write" && line.contains("\\0\\0\\0\\0\\0\\0\\0\", 8)"));
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_is_counted() {
        let trace = r#"31 epoll_wait(5,  <unfinished ...>
32 recvfrom(7, 0x7f, 65536, 0, NULL, NULL) = -1 EAGAIN (Resource temporarily unavailable)
31 <... epoll_wait resumed>[{events=EPOLLIN, data=0x1}], 512, -1) = 1
31 write(6, "\1\0\0\0\0\0\0\0", 8)   = 8
31 recvfrom(7, "GET /1k HTTP/1.1"..., 65536, 0, NULL, NULL) = 90
31 --- SIGINT {si_signo=SIGINT} ---
31 +++ exited with 0 +++
"#;
        assert_eq!(count(trace), Counts { calls: 4, empty_reads: 1, wake_ups: 1 });
    }
}
