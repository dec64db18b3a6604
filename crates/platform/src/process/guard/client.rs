//! The guard as the rest of the platform sees it: ask for a process, hear how
//! it ends, stop it.

use super::keeper::Keeper;
use super::protocol::{Exit, ProcessId, Spawn};
use super::running::Running;
use crate::process::config::GuardCommand;
use rustix::process::{getpid, set_child_subreaper};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

/// Requests that may wait for the guard.
const ASKS: usize = 256;

/// Asks the guard for processes. When all of its clones and processes are
/// dropped, the guard is told to end.
#[derive(Clone, Debug)]
pub(in crate::process) struct Guard {
    asks: mpsc::Sender<Ask>,
    next: Arc<AtomicU64>,
}

/// What to start, and where its output goes.
#[derive(Debug)]
pub(in crate::process) struct Launch {
    pub(in crate::process) spawn: Spawn,
    pub(in crate::process) stdout: OwnedFd,
    pub(in crate::process) stderr: OwnedFd,
}

/// One process of a pod, being started or running. Dropped, it is killed with
/// all that came from it.
#[derive(Debug)]
pub(in crate::process) struct Process {
    id: ProcessId,
    asks: mpsc::Sender<Ask>,
    life: watch::Receiver<Life>,
}

/// How a process ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::process) enum End {
    /// It could not be started: one sentence for people.
    Failed(Arc<str>),
    /// It ran and ended.
    Exited(Exit),
}

/// How far a process is: grows, never goes back.
#[derive(Clone, Debug, Default)]
pub(super) struct Life {
    pub(super) pid: Option<u32>,
    pub(super) end: Option<End>,
    /// Nothing of it is left.
    pub(super) swept: bool,
}

/// What the keeper is asked for.
#[derive(Debug)]
pub(super) enum Ask {
    Spawn(ProcessId, Launch, watch::Sender<Life>),
    Stop(ProcessId, Duration),
}

/// Starts the guard and the task that talks to it. The task ends when the
/// guard has, and with it all processes.
pub(in crate::process) fn start(command: GuardCommand) -> io::Result<(Guard, JoinHandle<()>)> {
    // What has called setsid falls to this process when the guard is killed.
    set_child_subreaper(Some(getpid()))?;
    let running = Running::start(&command)?;
    let (asks, inbox) = mpsc::channel(ASKS);
    let task = tokio::spawn(Keeper::new(command, inbox).run(running));
    Ok((Guard { asks, next: Arc::default() }, task))
}

impl Guard {
    /// Asks for a process; what became of it is told by [`Process::ended`].
    pub(in crate::process) async fn spawn(&self, launch: Launch) -> Process {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let (life, seen) = watch::channel(Life::default());
        // Refused only when the task is gone; then `life` is dropped, which
        // reads as a failed start.
        let _ = self.asks.send(Ask::Spawn(id, launch, life)).await;
        Process { id, asks: self.asks.clone(), life: seen }
    }
}

/// Beyond its own limits, how long the guard may take to sweep.
pub(super) const SLACK: Duration = Duration::from_secs(1);

impl Process {
    /// Its process id, once it is known.
    pub(in crate::process) fn pid(&self) -> Option<u32> {
        self.life.borrow().pid
    }

    /// Waits until its first process has ended, or failed to start.
    pub(in crate::process) async fn ended(&mut self) -> End {
        let seen = self.life.wait_for(|life| life.end.is_some()).await;
        let end = seen.ok().and_then(|life| life.end.clone());
        end.unwrap_or_else(|| End::Failed("nobody talks to the guard any more".into()))
    }

    /// TERM, then KILL after `grace`, and waits until nothing of it is left.
    pub(in crate::process) async fn stop(&mut self, grace: Duration) {
        let _ = self.asks.send(Ask::Stop(self.id, grace)).await;
        let limit = grace.saturating_add(super::SWEEP_LIMIT).saturating_add(SLACK);
        let swept = self.life.wait_for(|life| life.swept);
        let _ = tokio::time::timeout(limit, swept).await;
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if !self.life.borrow().swept {
            let _ = self.asks.try_send(Ask::Stop(self.id, Duration::ZERO));
        }
    }
}
