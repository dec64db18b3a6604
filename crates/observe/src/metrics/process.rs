//! Figures of the process under the names that Prometheus clients use.

use std::fmt::Write;
use std::fs;

/// Ticks of a second in `/proc`: `USER_HZ`, 100 on each Linux.
const TICKS_PER_SECOND: f64 = 100.0;

const PAGE_BYTES: u64 = 4096;

/// Writes what can be read; what cannot is left out.
pub(super) fn render(out: &mut String) {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let Some(fields) = fields(&stat) else { return };
    let number = |at: usize| fields.get(at).and_then(|field| field.parse::<u64>().ok()).unwrap_or_default();
    let started = boot_time().map(|boot| boot + seconds(number(19)));
    write_one(out, "process_cpu_seconds_total", "counter", seconds(number(11) + number(12)));
    if let Some(limit) = open_limit() {
        write_one(out, "process_max_fds", "gauge", limit);
    }
    if let Ok(open) = fs::read_dir("/proc/self/fd") {
        // One of them is this look itself.
        write_one(out, "process_open_fds", "gauge", whole(open.count().saturating_sub(1) as u64));
    }
    write_one(out, "process_resident_memory_bytes", "gauge", whole(number(21) * page_bytes()));
    if let Some(started) = started {
        write_one(out, "process_start_time_seconds", "gauge", started);
    }
    write_one(out, "process_virtual_memory_bytes", "gauge", whole(number(20)));
}

/// Fields from the third (state) on: the second holds the name, with whatever in it.
fn fields(stat: &str) -> Option<Vec<&str>> {
    let (_, rest) = stat.rsplit_once(')')?;
    Some(rest.split_whitespace().collect())
}

fn seconds(ticks: u64) -> f64 {
    whole(ticks) / TICKS_PER_SECOND
}

#[expect(clippy::cast_precision_loss, reason = "the text form has only floats")]
fn whole(number: u64) -> f64 {
    number as f64
}

fn page_bytes() -> u64 {
    // Exact where it matters: the sidecar's targets have pages of 4 KiB, or
    // say themselves what they have.
    let smaps = fs::read_to_string("/proc/self/smaps_rollup").unwrap_or_default();
    let kernel = smaps.lines().find_map(|line| line.strip_prefix("KernelPageSize:"));
    let kib = kernel.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kib.map_or(PAGE_BYTES, |kib| kib * 1024)
}

fn boot_time() -> Option<f64> {
    let stat = fs::read_to_string("/proc/stat").ok()?;
    let line = stat.lines().find_map(|line| line.strip_prefix("btime "))?;
    line.trim().parse().ok()
}

fn open_limit() -> Option<f64> {
    let limits = fs::read_to_string("/proc/self/limits").ok()?;
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_whitespace().next()?.parse().ok()
}

fn write_one(out: &mut String, name: &str, kind: &str, value: f64) {
    let help = match name {
        "process_cpu_seconds_total" => "Total user and system CPU time spent in seconds.",
        "process_max_fds" => "Maximum number of open file descriptors.",
        "process_open_fds" => "Number of open file descriptors.",
        "process_resident_memory_bytes" => "Resident memory size in bytes.",
        "process_start_time_seconds" => "Start time of the process since unix epoch in seconds.",
        _ => "Virtual memory size in bytes.",
    };
    let _ = write!(out, "# HELP {name} {help}\n# TYPE {name} {kind}\n{name} ");
    crate::go_text::float(out, value);
    out.push('\n');
}
