//! A running guard process: its start, its end, and what falls to this
//! process when it is lost.

use super::client::SLACK;
use super::{SWEEP_LIMIT, sweep};
use crate::process::config::GuardCommand;
use parking_lot::Mutex;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use std::collections::BTreeSet;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tokio::net::UnixDatagram;
use tracing::{error, warn};

/// The guards that this process has; spared when strays are killed.
static GUARDS: Mutex<BTreeSet<i32>> = Mutex::new(BTreeSet::new());

/// A guard process and our end of the socket.
pub(super) struct Running {
    child: Child,
    /// A socket of messages in order; tokio's type for it fits.
    socket: UnixDatagram,
}

impl Running {
    pub(super) fn start(command: &GuardCommand) -> io::Result<Running> {
        let pair = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None);
        let (ours, theirs) = pair?;
        let ours = std::os::unix::net::UnixDatagram::from(ours);
        ours.set_nonblocking(true)?;
        let socket = UnixDatagram::from_std(ours)?;
        // Held over the start, so that no sweep sees a guard it does not know.
        let mut guards = GUARDS.lock();
        let child = Command::new(&command.program)
            .args(&command.args)
            .arg0("zeroscale-guard")
            .stdin(Stdio::from(theirs))
            .stdout(Stdio::null())
            .spawn()
            .map_err(|error| {
                let program = command.program.display();
                io::Error::new(error.kind(), format!("cannot start the guard ({program}): {error}"))
            })?;
        guards.insert(child.id().cast_signed());
        Ok(Running { child, socket })
    }

    pub(super) fn socket(&self) -> &UnixDatagram {
        &self.socket
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Closes the socket, at which a living guard kills everything and exits,
    /// waits for that, and kills what then still runs.
    pub(super) async fn finish(self) {
        let Running { child, socket } = self;
        drop(socket);
        let waited = tokio::task::spawn_blocking(move || {
            let pid = child.id().cast_signed();
            let outcome = wait_or_kill(child);
            GUARDS.lock().remove(&pid);
            (outcome, sweep::adopted(|| GUARDS.lock().clone()))
        });
        match waited.await {
            Ok((Ok(()), 0)) => {}
            Ok((Ok(()), left)) => warn!(left, "some processes could not be killed"),
            Ok((Err(error), _)) => error!(%error, "cannot wait for the guard"),
            Err(error) => error!(%error, "the sweep after the guard failed"),
        }
    }
}

/// Between two looks whether the guard has ended.
const PAUSE: Duration = Duration::from_millis(1);

/// Waits for the guard, for a little longer than it gives itself.
fn wait_or_kill(mut child: Child) -> io::Result<()> {
    let deadline = Instant::now() + SWEEP_LIMIT + SLACK;
    while child.try_wait()?.is_none() {
        if Instant::now() >= deadline {
            child.kill()?;
            child.wait()?;
            return Ok(());
        }
        std::thread::sleep(PAUSE);
    }
    Ok(())
}
