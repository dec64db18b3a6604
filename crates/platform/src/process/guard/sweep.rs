//! Who descends from whom: one look at /proc, and whose an orphan is.

use super::{MARK, SWEEP_LIMIT};
use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process, waitpid};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::time::{Duration, Instant};

/// One process that runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) pid: Pid,
    /// 0 for what has none.
    parent: i32,
    /// This and the session are None where they began outside our PID
    /// namespace (0: as in a container that is entered from without), and where
    /// the process is being taken away during the look (-1).
    pub(super) group: Option<Pid>,
    session: Option<Pid>,
    zombie: bool,
}

/// All processes, at one moment.
pub(super) struct Census {
    by_parent: BTreeMap<i32, Vec<Entry>>,
}

/// Looks at /proc for one census, at most.
const LOOKS: usize = 5;

impl Census {
    /// Looks at /proc. A look spans time: it is taken again, a few times at
    /// most, when in it a process has a parent that ended meanwhile, since that
    /// process would be found below nobody.
    pub(super) fn take() -> Census {
        let mut census = Census::look();
        for _ in 1..LOOKS {
            if census.is_whole() {
                break;
            }
            census = Census::look();
        }
        census
    }

    fn look() -> Census {
        let pids = fs::read_dir("/proc").into_iter().flatten().flatten();
        let entries = pids.filter_map(|entry| {
            entry_of(pid_of(entry.file_name().to_str()?.parse().ok()?)?)
        });
        Census::of(entries)
    }

    fn of(entries: impl Iterator<Item = Entry>) -> Census {
        let mut by_parent: BTreeMap<i32, Vec<Entry>> = BTreeMap::new();
        for entry in entries {
            by_parent.entry(entry.parent).or_default().push(entry);
        }
        Census { by_parent }
    }

    fn is_whole(&self) -> bool {
        let all: BTreeSet<i32> = self.by_parent.values().flatten().map(|entry| entry.pid.as_raw_pid()).collect();
        self.by_parent.keys().all(|parent| *parent == 0 || all.contains(parent))
    }

    /// Children of `pid`, zombies included.
    pub(super) fn children(&self, pid: Pid) -> &[Entry] {
        self.by_parent.get(&pid.as_raw_pid()).map_or(&[], Vec::as_slice)
    }

    /// `top` and all below it that run.
    pub(super) fn family(&self, top: Entry) -> Vec<Entry> {
        let mut found = vec![top];
        let mut next = 0;
        while let Some(entry) = found.get(next).copied() {
            // Numbers used again during the look could show a circle.
            let fresh = self.children(entry.pid).iter().filter(|child| !found.contains(child));
            let fresh: Vec<Entry> = fresh.copied().collect();
            found.extend(fresh);
            next += 1;
        }
        found.retain(|entry| !entry.zombie);
        found
    }

    /// All below `pid` that run.
    pub(super) fn descendants(&self, pid: Pid) -> Vec<Entry> {
        self.children(pid).iter().flat_map(|child| self.family(*child)).collect()
    }
}

fn entry_of(pid: Pid) -> Option<Entry> {
    parse(&fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_pid())).ok()?)
}

/// None for 0 and below, on which `Pid::from_raw` panics or stands for nobody.
fn pid_of(number: i32) -> Option<Pid> {
    (number > 0).then(|| Pid::from_raw(number))?
}

/// From the text of /proc/PID/stat. The name, in brackets, may hold anything.
fn parse(stat: &str) -> Option<Entry> {
    let (pid, rest) = stat.split_once(' ')?;
    let mut fields = rest.rsplit_once(')')?.1.split_ascii_whitespace();
    let state = fields.next()?;
    let mut number = || fields.next()?.parse::<i32>().ok();
    Some(Entry {
        pid: pid_of(pid.parse().ok()?)?,
        parent: number()?,
        group: pid_of(number()?),
        session: pid_of(number()?),
        zombie: matches!(state, "Z" | "X"),
    })
}

/// The pod that a process was started for, by its environment.
pub(super) fn mark_of(pid: Pid) -> Option<String> {
    let environment = fs::read(format!("/proc/{}/environ", pid.as_raw_pid())).ok()?;
    let of_mark = |entry: &[u8]| {
        let value = entry.strip_prefix(MARK.as_bytes())?.strip_prefix(b"=")?;
        String::from_utf8(value.to_vec()).ok()
    };
    environment.split(|byte| *byte == 0).find_map(of_mark)
}

/// Between two looks while killing.
const PAUSE: Duration = Duration::from_millis(1);

/// Kills what fell to this process when its guard died, and all below it;
/// returns how many of its children are left. Blocks, for [`SWEEP_LIMIT`] at most.
///
/// Adopted is what is a child of ours outside our session: the guard begins a
/// session of its own, and children that we start ourselves stay in ours.
/// `guards` are those in charge now, which are spared.
pub(super) fn adopted(guards: impl Fn() -> BTreeSet<i32>) -> usize {
    let ours = entry_of(getpid()).and_then(|entry| entry.session);
    let deadline = Instant::now() + SWEEP_LIMIT;
    loop {
        let census = Census::take();
        // Asked for after the look, so that no guard in it is unknown.
        let guards = guards();
        let strays = census
            .children(getpid())
            .iter()
            .filter(|child| child.session != ours && !guards.contains(&child.pid.as_raw_pid()));
        let mut left = 0;
        for stray in strays {
            for entry in census.family(*stray) {
                let _ = kill_process(entry.pid, Signal::KILL);
            }
            let reaped = waitpid(Some(stray.pid), WaitOptions::NOHANG);
            left += usize::from(!matches!(reaped, Ok(Some(_))));
        }
        if left == 0 || Instant::now() >= deadline {
            return left;
        }
        std::thread::sleep(PAUSE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pids(found: &[Entry]) -> Vec<i32> {
        found.iter().map(|entry| entry.pid.as_raw_pid()).collect()
    }

    fn census(stats: &[&str]) -> Census {
        Census::of(stats.iter().filter_map(|stat| parse(stat)))
    }

    #[test]
    fn a_name_full_of_brackets_does_not_mislead() {
        let entry = parse("42 (a) R 1 (b)) S 7 8 9 0 -1").unwrap();
        let numbers = (entry.parent, entry.group.map(Pid::as_raw_pid));
        assert_eq!((numbers, entry.zombie), ((7, Some(8)), false));
        let outer = parse("42 (a) S 7 0 0 0 -1").unwrap();
        assert_eq!((outer.group, outer.session), (None, None));
        assert_eq!(parse("42 (a"), None);
        assert_eq!(parse(""), None);
    }

    #[test]
    fn no_number_in_a_stat_is_a_fault() {
        let numbers = [i32::MIN, -2, -1, 0, 1, i32::MAX];
        for [pid, parent, group, session] in numbers.iter().flat_map(|a| {
            let rest = numbers.iter().flat_map(|b| numbers.iter().map(|c| [*b, *c]));
            rest.map(|[b, c]| [*a, b, c, c]).collect::<Vec<_>>()
        }) {
            let entry = parse(&format!("{pid} (a) X {parent} {group} {session} 0 -1"));
            assert_eq!(entry.is_some(), pid > 0, "{pid}");
            let named = |found: Option<Pid>| found.map_or(0, Pid::as_raw_pid);
            let seen = entry.map(|entry| (entry.parent, named(entry.group), named(entry.session)));
            assert!(seen.is_none_or(|seen| seen == (parent, group.max(0), session.max(0))));
        }
        assert_eq!(parse("99999999999 (a) S 1 1 1"), None);
    }

    #[test]
    fn descendants_are_found_below_other_groups_and_sessions() {
        let census = census(&[
            "10 (guard) S 1 10 10",
            "11 (app) S 10 11 10",
            "12 (worker) S 11 11 10",
            "13 (daemon) S 12 13 13",
            "14 (gone) Z 11 11 10",
            "20 (other) S 1 20 20",
        ]);
        assert_eq!(pids(&census.descendants(Pid::from_raw(10).unwrap())), [11, 12, 13]);
        assert_eq!(pids(&census.descendants(Pid::from_raw(20).unwrap())), []);
    }

    #[test]
    fn a_look_that_lost_a_parent_is_not_whole() {
        assert!(census(&["1 (init) S 0 1 1", "10 (a) S 1 10 10"]).is_whole());
        assert!(!census(&["1 (init) S 0 1 1", "10 (a) S 9 10 10"]).is_whole());
    }

    #[test]
    fn a_circle_of_reused_numbers_ends() {
        let census = census(&["11 (a) S 12 11 11", "12 (b) S 11 11 11"]);
        assert_eq!(pids(&census.descendants(Pid::from_raw(11).unwrap())), [12, 11]);
    }

    #[test]
    fn the_mark_of_a_process_is_read_from_its_environment() {
        assert_eq!(mark_of(getpid()), None);
    }
}
