//! What the kernel has noted of processes.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

/// Time on a processor so far, of all threads.
#[derive(Clone, Debug, Default)]
pub(crate) struct CpuTime {
    /// By thread.
    threads: BTreeMap<u32, Duration>,
    user_ticks: u64,
    system_ticks: u64,
}

/// What was spent between two readings.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spent {
    pub(crate) total: Duration,
    /// Share of it outside the kernel: from counts of ticks, so only as good
    /// as the time was long.
    pub(crate) user_share: f64,
}

/// What `/proc` counts ticks in: the kernel's `USER_HZ`.
const TICK: Duration = Duration::from_millis(10);

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
                all.threads.insert(number, Duration::from_nanos(spent));
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
    /// taken more than a trace of the account with it.
    pub(crate) fn since(&self, before: &CpuTime) -> Option<Spent> {
        let grown = |(number, now): (&u32, &Duration)| {
            now.saturating_sub(before.threads.get(number).copied().unwrap_or_default())
        };
        let total: Duration = self.threads.iter().map(grown).sum();
        let user = self.user_ticks.saturating_sub(before.user_ticks);
        let system = self.system_ticks.saturating_sub(before.system_ticks);
        let ended = before.threads.keys().any(|number| !self.threads.contains_key(number));
        // Ticks are coarse, but they are the process's: its ended threads' too.
        let ticks = TICK * u32::try_from(user + system).ok()?;
        if ended && ticks > total + total / 20 + TICK * 2 {
            return None;
        }
        let user_share = if user + system > 0 { user as f64 / (user + system) as f64 } else { 0.0 };
        Some(Spent { total, user_share })
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

#[cfg(test)]
mod tests {
    use super::*;

    fn at(threads: &[(u32, u64)], ticks: u64) -> CpuTime {
        let threads = threads.iter().map(|(number, millis)| (*number, Duration::from_millis(*millis))).collect();
        CpuTime { threads, user_ticks: ticks, system_ticks: 0 }
    }

    #[test]
    fn growth_of_threads_is_summed() {
        let spent = at(&[(1, 500), (2, 90)], 59).since(&at(&[(1, 100)], 10)).unwrap();
        assert_eq!((spent.total, spent.user_share), (Duration::from_millis(490), 1.0));
    }

    #[test]
    fn a_thread_that_ended_must_not_have_mattered() {
        let before = at(&[(1, 100), (2, 50)], 15);
        assert!(at(&[(1, 500)], 55).since(&before).is_some());
        assert!(at(&[(1, 500)], 75).since(&before).is_none());
    }
}
