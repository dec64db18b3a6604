//! What happened when, one line each: `PID WHEN KIND ID`, in nanoseconds of the
//! monotonic clock, which all processes of a machine share. The id is that of a
//! request, or the port that was opened.

use rustix::time::{ClockId, clock_gettime};
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

/// Now, on the clock of all processes.
pub fn monotonic_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs()
}

/// When this process was made: now, without all that it spent since on a
/// processor and in the queue for one. Right as long as it has not slept yet.
pub fn process_made_ns() -> u64 {
    let now = monotonic_ns();
    let spent = clock_gettime(ClockId::ProcessCPUTime);
    let spent = spent.tv_sec.unsigned_abs() * 1_000_000_000 + spent.tv_nsec.unsigned_abs();
    let queued = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    let queued: u64 = queued.split(' ').nth(1).and_then(|queued| queued.parse().ok()).unwrap_or(0);
    now.saturating_sub(spent + queued)
}

/// A file that several processes add lines to.
pub struct Journal {
    file: Option<File>,
}

impl Journal {
    /// Opens it for adding; without a path nothing is written.
    ///
    /// # Errors
    /// When the file cannot be opened.
    pub fn open(path: Option<&Path>) -> io::Result<Journal> {
        let open = |path| OpenOptions::new().append(true).create(true).open(path);
        Ok(Journal { file: path.map(open).transpose()? })
    }

    /// Adds a line about now.
    pub fn write(&self, kind: &str, id: &str) {
        self.write_at(monotonic_ns(), kind, id);
    }

    /// Adds a line, in one write, so that lines of several processes never mix.
    pub fn write_at(&self, at: u64, kind: &str, id: &str) {
        if let Some(mut file) = self.file.as_ref() {
            let line = format!("{} {at} {kind} {id}\n", std::process::id());
            // A test that cannot find its line fails, and that says enough.
            let _ = file.write_all(line.as_bytes());
        }
    }
}
