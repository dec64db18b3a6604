//! A network namespace a case: the vectors use fixed ports.
//!
//! `unshare` of util-linux makes it, with a namespace of processes too: the
//! case is its first process, so whatever a case leaves behind dies with it.
//! Where namespaces are refused, one case at a time runs on the machine's own
//! loopback, under a lock.

use super::child::WORD;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// How cases are kept apart.
#[derive(Debug)]
pub enum Apart {
    /// Each in its own namespace, made with these arguments.
    Namespaces(&'static [&'static str]),
    /// One at a time, while the lock is held.
    OneAtATime {
        /// Held until it is dropped.
        _lock: File,
    },
}

/// As root; and as anybody where that is allowed.
const WAYS: [&[&str]; 2] = [
    &["--net", "--pid", "--fork", "--kill-child=KILL"],
    &["--user", "--map-root-user", "--net", "--pid", "--fork", "--kill-child=KILL"],
];

impl Apart {
    /// The best way that works here.
    ///
    /// # Errors
    /// When there is none, not even a lock.
    pub fn find() -> anyhow::Result<Apart> {
        let works = |way: &&&[&str]| {
            let mut probe = Command::new("unshare");
            probe.args(**way).args(["ip", "link", "set", "lo", "up"]);
            probe.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            probe.status().is_ok_and(|status| status.success())
        };
        if let Some(way) = WAYS.iter().find(works) {
            return Ok(Apart::Namespaces(way));
        }
        let path = lock_path();
        eprintln!("************************************************************");
        eprintln!("*** No network namespaces here (`unshare` of util-linux and `ip` of iproute2, as root).");
        eprintln!("*** Cases run one at a time on this machine's own ports, under {}.", path.display());
        eprintln!("************************************************************");
        let lock = File::create(&path)?;
        lock.lock()?;
        Ok(Apart::OneAtATime { _lock: lock })
    }

    /// Whether cases have namespaces.
    pub fn namespaces(&self) -> bool {
        matches!(self, Apart::Namespaces(_))
    }

    /// How many cases may run at once.
    pub fn at_once(&self, wanted: usize) -> usize {
        match self {
            Apart::Namespaces(_) => wanted,
            Apart::OneAtATime { .. } => 1,
        }
    }

    /// The command that runs one case.
    pub fn command(&self, replay: &Path) -> Command {
        let mut command = match self {
            Apart::Namespaces(way) => {
                let mut command = Command::new("unshare");
                command.args(*way).arg("--").arg(replay);
                command
            }
            Apart::OneAtATime { .. } => Command::new(replay),
        };
        command.arg(WORD);
        command
    }
}

fn lock_path() -> PathBuf {
    std::env::temp_dir().join("zeroscale-replay.lock")
}
