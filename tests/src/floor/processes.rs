//! Processes as /proc shows them. An instance is started with a mark in its
//! environment, which all that comes from it inherits: so nothing that it
//! leaves behind goes unseen, whatever its parent, group or session.

use std::fs;
use std::time::Duration;

/// The environment's variable that carries the mark.
pub const MARK: &str = "ZEROSCALE_TEST_MARK";

/// A process that runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    /// Its number.
    pub pid: i32,
    /// Its command line.
    pub arguments: Vec<String>,
}

/// All that run with this mark, zombies not among them.
pub fn marked(mark: &str) -> Vec<Process> {
    let wanted = format!("{MARK}={mark}");
    let has_mark = |pid: i32| {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|entry| entry == wanted.as_bytes())
    };
    let pids = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    pids.filter(|pid| has_mark(*pid)).map(|pid| Process { pid, arguments: arguments(pid) }).collect()
}

fn arguments(pid: i32) -> Vec<String> {
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let parts = line.split(|byte| *byte == 0).filter(|part| !part.is_empty());
    parts.map(|part| String::from_utf8_lossy(part).into_owned()).collect()
}

/// Processor time of a process so far, all threads that live together.
pub fn cpu_time(pid: i32) -> Duration {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let spent = threads.filter_map(|thread| {
        let text = fs::read_to_string(thread.path().join("schedstat")).ok()?;
        text.split_ascii_whitespace().next()?.parse::<u64>().ok()
    });
    Duration::from_nanos(spent.sum())
}

/// Resident memory of a process, in bytes.
pub fn resident_bytes(pid: i32) -> Option<u64> {
    status_bytes(pid, "VmRSS:")
}

/// The most of it that there ever was.
pub fn peak_resident_bytes(pid: i32) -> Option<u64> {
    status_bytes(pid, "VmHWM:")
}

fn status_bytes(pid: i32, name: &str) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_ascii_whitespace().next()?.parse::<u64>().ok().map(|kib| kib * 1024)
}

/// How often the threads of a process have given up their processor of their
/// own accord, all threads that live together.
pub fn voluntary_switches(pid: i32) -> u64 {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let switches = threads.filter_map(|thread| {
        let text = fs::read_to_string(thread.path().join("status")).ok()?;
        text.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"))?.trim().parse::<u64>().ok()
    });
    switches.sum()
}
