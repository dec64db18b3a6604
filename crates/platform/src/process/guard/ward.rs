//! The guard's state: the pods' processes, their stopping, their orphans.

use super::protocol::{Event, Exit, ProcessId, Request, Spawn};
use super::sweep::{Census, Entry, mark_of};
use super::{SWEEP_LIMIT, spawn};
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, getpid, kill_process, kill_process_group, wait};
use std::collections::{BTreeMap, HashSet};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

/// All that the guard watches over.
#[derive(Default)]
pub(super) struct Ward {
    held: BTreeMap<ProcessId, Held>,
    /// What to tell `zeroscale`, in order. A process causes four at most.
    events: Vec<Event>,
}

/// One process of a pod and whatever came from it.
struct Held {
    pod: String,
    /// The first process, until it is reaped.
    main: Option<Pid>,
    /// Its group; it keeps its number while a member lives.
    group: Pid,
    stop: Option<Stop>,
}

/// On its way out.
struct Stop {
    /// When KILL is due.
    deadline: Instant,
    /// When to look again for what is left.
    next_look: Instant,
    pause: Duration,
    /// Who got TERM by itself, not with the group.
    told: HashSet<Pid>,
}

/// Between two looks: at first, and at most.
const PAUSE_FIRST: Duration = Duration::from_millis(1);
const PAUSE_CAP: Duration = Duration::from_millis(50);

impl Ward {
    /// Does what is asked.
    pub(super) fn serve(&mut self, request: Request, fds: Vec<OwnedFd>, now: Instant) {
        match request {
            Request::Spawn(id, spawn) => self.spawn(id, spawn, fds),
            Request::Stop(id, grace) => self.stop(id, grace, now),
        }
    }

    /// What there is to tell since the last call.
    pub(super) fn take_events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.events)
    }

    fn spawn(&mut self, id: ProcessId, spawn: Spawn, fds: Vec<OwnedFd>) {
        let started = match <[OwnedFd; 2]>::try_from(fds) {
            Ok([stdout, stderr]) => spawn::spawn(&spawn, stdout, stderr),
            Err(_) => Err("the guard got no descriptors for the output".to_owned()),
        };
        let event = match started {
            Ok(pid) => {
                let held = Held { pod: spawn.pod, main: Some(pid), group: pid, stop: None };
                self.held.insert(id, held);
                Event::Started(id, pid.as_raw_pid().cast_unsigned())
            }
            Err(text) => Event::Failed(id, text),
        };
        self.events.push(event);
    }

    fn stop(&mut self, id: ProcessId, grace: Duration, now: Instant) {
        let Some(held) = self.held.get_mut(&id) else {
            return;
        };
        if held.main.is_some() && !grace.is_zero() && held.stop.is_none() {
            let _ = kill_process_group(held.group, Signal::TERM);
        }
        let deadline = now.checked_add(grace);
        held.leave_by(deadline.unwrap_or(now), now);
    }

    /// Reaps all that ended. What outlives a pod's first process is killed at
    /// once, unless it is being stopped and has time left.
    pub(super) fn reap(&mut self, now: Instant) {
        while let Ok(Some((pid, status))) = wait(WaitOptions::NOHANG) {
            let Some((id, held)) = self.held.iter_mut().find(|(_, held)| held.main == Some(pid)) else {
                continue;
            };
            held.main = None;
            held.look_now(now);
            self.events.push(Event::Exited(*id, exit_of(status)));
        }
    }

    /// Carries the stopping on, and says how long nothing is to be done.
    pub(super) fn advance(&mut self, now: Instant) -> Option<Duration> {
        if self.held.values().any(|held| held.is_due(now)) {
            let census = Census::take();
            let due = self.held.iter().filter(|(_, held)| held.is_due(now));
            let due: Vec<ProcessId> = due.map(|(id, _)| *id).collect();
            for id in due {
                self.look(id, &census, now);
            }
        }
        let next = self.held.values().filter_map(Held::next).min();
        next.map(|next| next.saturating_duration_since(now))
    }

    fn look(&mut self, id: ProcessId, census: &Census, now: Instant) {
        let members = self.members(id, census);
        let Some(held) = self.held.get_mut(&id) else { return };
        let (main, group) = (held.main, held.group);
        let Some(stop) = &mut held.stop else { return };
        let overdue = now.saturating_duration_since(stop.deadline);
        if members.is_empty() && main.is_none() || overdue > SWEEP_LIMIT {
            let left = u32::try_from(members.len()).unwrap_or(u32::MAX);
            self.held.remove(&id);
            self.events.push(Event::Swept(id, left));
            return;
        }
        for entry in members {
            if now >= stop.deadline {
                let _ = kill_process(entry.pid, Signal::KILL);
            } else if entry.group != Some(group) && stop.told.insert(entry.pid) {
                let _ = kill_process(entry.pid, Signal::TERM);
            }
        }
        stop.next_look = now + stop.pause;
        stop.pause = (stop.pause * 2).min(PAUSE_CAP);
    }

    /// What runs of one pod: its first process and group, all below them, and
    /// orphans that carry its mark. Orphans of pods that are no more go with
    /// whichever is swept; orphans without a mark, with the last pod.
    fn members(&self, id: ProcessId, census: &Census) -> Vec<Entry> {
        let alone = self.held.len() == 1;
        let children = census.children(getpid()).iter();
        let ours = children.filter(|child| match self.owner(child) {
            Owner::Held(owner) => owner == id,
            Owner::Dead => true,
            Owner::Unknown => alone,
        });
        ours.flat_map(|child| census.family(*child)).collect()
    }

    fn owner(&self, child: &Entry) -> Owner {
        let find =
            |is: &dyn Fn(&Held) -> bool| self.held.iter().find(|(_, held)| is(held)).map(|(id, _)| Owner::Held(*id));
        let by_group = find(&|held| held.main == Some(child.pid) || Some(held.group) == child.group);
        by_group.unwrap_or_else(|| match mark_of(child.pid) {
            Some(mark) => find(&|held| held.pod == mark).unwrap_or(Owner::Dead),
            None => Owner::Unknown,
        })
    }

    /// Kills all that descends from the guard, until nothing is left.
    pub(super) fn end(&mut self) {
        for held in self.held.values().filter(|held| held.main.is_some()) {
            let _ = kill_process_group(held.group, Signal::KILL);
        }
        let deadline = Instant::now() + SWEEP_LIMIT;
        while Instant::now() < deadline {
            while let Ok(Some(_)) = wait(WaitOptions::NOHANG) {}
            let left = Census::take().descendants(getpid());
            if left.is_empty() {
                return;
            }
            for entry in left {
                let _ = kill_process(entry.pid, Signal::KILL);
            }
            std::thread::sleep(PAUSE_FIRST);
        }
    }
}

/// Whose an orphan is.
enum Owner {
    Held(ProcessId),
    /// Of a pod that is no more.
    Dead,
    Unknown,
}

impl Held {
    fn leave_by(&mut self, deadline: Instant, now: Instant) {
        let stop = self.stop.get_or_insert_with(|| Stop {
            deadline,
            next_look: now,
            pause: PAUSE_FIRST,
            told: HashSet::new(),
        });
        stop.deadline = stop.deadline.min(deadline);
    }

    fn look_now(&mut self, now: Instant) {
        self.leave_by(self.stop.as_ref().map_or(now, |stop| stop.deadline), now);
        if let Some(stop) = &mut self.stop {
            stop.next_look = now;
        }
    }

    /// The next moment at which something is to be done without a signal.
    /// While the first process lives that is the deadline: no looking before.
    fn next(&self) -> Option<Instant> {
        let stop = self.stop.as_ref()?;
        let waits = self.main.is_some();
        Some(if waits { stop.deadline.max(stop.next_look) } else { stop.next_look })
    }

    fn is_due(&self, now: Instant) -> bool {
        self.next().is_some_and(|next| now >= next)
    }
}

fn exit_of(status: WaitStatus) -> Exit {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => Exit::Code(code),
        (None, Some(signal)) => Exit::Signal(signal),
        (None, None) => Exit::Lost,
    }
}
