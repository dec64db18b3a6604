//! The guard's process: one thread, one loop, no runtime.

use super::protocol::{MESSAGE_LIMIT, Request, receive, send};
use super::raw;
use super::ward::Ward;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::Errno;
use rustix::process::{Signal, getpid, set_child_subreaper, setsid};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Serves as the guard until the socket ends, then kills all that descends
/// from this process and returns. To be called first thing in a process that
/// was started by [`super::super::GuardCommand`], before any thread: the socket
/// is its standard input.
///
/// INT, TERM and HUP are taken and not followed: they also reach `zeroscale`,
/// which decides.
pub fn serve() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("guard: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Signals that wake the loop: the first because children ended, the others
/// for nothing.
const TAKEN: [Signal; 4] = [Signal::CHILD, Signal::INT, Signal::TERM, Signal::HUP];

fn run() -> io::Result<()> {
    let socket = rustix::io::fcntl_dupfd_cloexec(io::stdin().as_fd(), 3)?;
    let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
    let wake = Arc::new(eventfd(0, flags)?);
    raw::wake_on(&TAKEN, &wake)?;
    // Away from the terminal, and told apart from what `zeroscale` starts itself.
    setsid()?;
    set_child_subreaper(Some(getpid()))?;
    let mut ward = Ward::default();
    let outcome = watch_over(&mut ward, &socket, &wake);
    ward.end();
    outcome
}

fn watch_over(ward: &mut Ward, socket: &OwnedFd, wake: &OwnedFd) -> io::Result<()> {
    let mut buffer = vec![0; MESSAGE_LIMIT];
    loop {
        let now = Instant::now();
        ward.reap(now);
        let idle = ward.advance(now);
        for event in ward.take_events() {
            if send(socket.as_fd(), &event.encode(), &[]).is_err() {
                return Ok(());
            }
        }
        if !wait_for(socket, wake, idle)? {
            continue;
        }
        match receive(socket.as_fd(), &mut buffer) {
            // At end of file a message has no length.
            Ok((0, _)) | Err(Errno::CONNRESET) => return Ok(()),
            Ok((length, fds)) => {
                if let Some(request) = Request::decode(&buffer[..length]) {
                    ward.serve(request, fds, Instant::now());
                }
            }
            Err(Errno::INTR | Errno::AGAIN) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Waits for a message, a signal, or the time; true when there is a message.
fn wait_for(socket: &OwnedFd, wake: &OwnedFd, idle: Option<Duration>) -> io::Result<bool> {
    let mut fds = [PollFd::new(socket, PollFlags::IN), PollFd::new(wake, PollFlags::IN)];
    let limit = idle.and_then(|idle| Timespec::try_from(idle).ok());
    match poll(&mut fds, limit.as_ref()) {
        Ok(_) | Err(Errno::INTR) => {}
        Err(error) => return Err(error.into()),
    }
    let has_message = !fds[0].revents().is_empty();
    if !fds[1].revents().is_empty() {
        let _ = rustix::io::read(wake, &mut [0; 8]);
    }
    Ok(has_message)
}
