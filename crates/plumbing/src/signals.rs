//! The two signals that end a process.

use tokio::signal::unix::{Signal, SignalKind, signal};

/// Which signal came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// TERM: exit 0 after the drain.
    Terminated,
    /// INT (Ctrl-C): exit 130 after the drain.
    Interrupted,
}

/// TERM and INT, from when it is made.
pub struct Signals {
    term: Signal,
    interrupt: Signal,
}

impl Signals {
    /// Takes the signals over.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn new() -> std::io::Result<Signals> {
        Ok(Signals { term: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    /// The next one.
    pub async fn next(&mut self) -> Ending {
        tokio::select! {
            _ = self.term.recv() => Ending::Terminated,
            _ = self.interrupt.recv() => Ending::Interrupted,
        }
    }
}
