//! What the kernel has noted of processes.

use std::collections::BTreeSet;
use std::fs;
use std::time::Duration;

/// Time on a processor so far, of all threads.
#[derive(Clone, Debug, Default)]
pub(crate) struct CpuTime {
    total: Duration,
    user_ticks: u64,
    system_ticks: u64,
    threads: BTreeSet<u32>,
}

/// What was spent between two readings.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spent {
    pub(crate) total: Duration,
    /// Share of it outside the kernel: from counts of ticks, so only as good
    /// as the time was long.
    pub(crate) user_share: f64,
}

impl CpuTime {
    /// Of these processes together: field 1 of each thread's `schedstat`, in
    /// nanoseconds.
    pub(crate) fn of(processes: &[u32]) -> CpuTime {
        let mut all = CpuTime::default();
        for process in processes {
            for thread in fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten() {
                let Some(number) = thread.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
                let text = fs::read_to_string(thread.path().join("schedstat")).unwrap_or_default();
                let Some(spent) = text.split_ascii_whitespace().next().and_then(|field| field.parse().ok()) else {
                    continue;
                };
                all.total += Duration::from_nanos(spent);
                all.threads.insert(number);
            }
            let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
            // Behind the name, which may have spaces: utime and stime are fields 14 and 15.
            let mut fields = stat.rsplit(')').next().unwrap_or_default().split_ascii_whitespace().skip(11);
            let mut ticks = || fields.next().and_then(|field| field.parse::<u64>().ok()).unwrap_or(0);
            all.user_ticks += ticks();
            all.system_ticks += ticks();
        }
        all
    }

    /// Since an earlier reading; nothing when a thread has ended meanwhile and
    /// taken its account with it.
    pub(crate) fn since(&self, before: &CpuTime) -> Option<Spent> {
        if !before.threads.is_subset(&self.threads) {
            return None;
        }
        let user = self.user_ticks.saturating_sub(before.user_ticks) as f64;
        let system = self.system_ticks.saturating_sub(before.system_ticks) as f64;
        let user_share = if user + system > 0.0 { user / (user + system) } else { 0.0 };
        Some(Spent { total: self.total.checked_sub(before.total)?, user_share })
    }
}

/// Resident memory of processes together, in bytes.
pub(crate) fn resident(processes: &[u32]) -> u64 {
    let of = |process: &u32| {
        let text = fs::read_to_string(format!("/proc/{process}/smaps_rollup")).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("Rss:")).unwrap_or_default();
        line.split_ascii_whitespace().next().and_then(|kib| kib.parse::<u64>().ok()).unwrap_or(0) * 1024
    };
    processes.iter().map(of).sum()
}

/// How often their threads have given up the processor by themselves.
pub(crate) fn voluntary_switches(processes: &[u32]) -> u64 {
    let mut sum = 0;
    for process in processes {
        for thread in fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten() {
            let text = fs::read_to_string(thread.path().join("status")).unwrap_or_default();
            let count = text.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
            sum += count.and_then(|count| count.trim().parse::<u64>().ok()).unwrap_or(0);
        }
    }
    sum
}
