//! The two calls of this crate that the compiler cannot check, and nothing else.
#![allow(unsafe_code)]

use rustix::process::{Pid, Resource, Rlimit, Signal, getppid, getrlimit, set_parent_process_death_signal, setrlimit};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::Arc;

/// Makes the child of `command` die with `parent`, the calling process, and
/// sets its soft limit of file descriptors (the hard one stays).
pub(super) fn bind_to_parent(command: &mut Command, parent: Pid, soft_nofile: Option<u64>) {
    let limit = soft_nofile.map(|soft| {
        let hard = getrlimit(Resource::Nofile).maximum;
        let current = hard.map_or(soft, |hard| soft.min(hard));
        Rlimit { current: Some(current), maximum: hard }
    });
    let in_child = move || {
        set_parent_process_death_signal(Some(Signal::KILL))?;
        if getppid() != Some(parent) {
            // The parent died before the line above: nobody would tell us.
            return Err(io::Error::from(rustix::io::Errno::SRCH));
        }
        match limit {
            Some(limit) => Ok(setrlimit(Resource::Nofile, limit)?),
            None => Ok(()),
        }
    };
    // SAFETY: runs in the child between fork and exec, where only
    // async-signal-safe calls are allowed. It makes three system calls, touches
    // no memory but its own copies, allocates nothing and takes no lock.
    unsafe {
        command.pre_exec(in_child);
    }
}

/// From now on each of `signals` writes to `wake` (an eventfd that does not
/// block) instead of doing what it does by default. Handlers, unlike ignored
/// signals, are not inherited over exec, so children are not affected.
pub(super) fn wake_on(signals: &[Signal], wake: &Arc<OwnedFd>) -> io::Result<()> {
    for signal in signals {
        let wake = Arc::clone(wake);
        let action = move || {
            // Full means that a wake-up is due already.
            let _ = rustix::io::write(wake.as_fd(), &1_u64.to_ne_bytes());
        };
        // SAFETY: the action may only make async-signal-safe calls; it makes
        // one, write(2), through rustix, which issues the system call directly
        // and leaves errno alone.
        unsafe {
            signal_hook_registry::register(signal.as_raw(), action)?;
        }
    }
    Ok(())
}
