//! Notices that a file has changed: the kernel tells of its folder, and the
//! file is looked at from time to time as well, since not every file system
//! tells.

use rustix::fs::inotify::{CreateFlags, WatchFlags, add_watch, init};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, SystemTime};
use tokio::net::unix::pipe::Receiver;

/// Between two hints of the kernel: a folder may be a busy one.
const HINT_EVERY: Duration = Duration::from_millis(2);

/// Younger than this, a file may change again without looking any different.
const FRESH: Duration = Duration::from_millis(100);

/// What a file looks like from outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mark {
    file: (u64, u64),
    bytes: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Mark {
    /// `None` when it is not there.
    pub(super) fn of(path: &Path) -> Option<Mark> {
        let seen = std::fs::metadata(path).ok()?;
        Some(Mark {
            file: (seen.dev(), seen.ino()),
            bytes: seen.len(),
            modified: (seen.mtime(), seen.mtime_nsec()),
            changed: (seen.ctime(), seen.ctime_nsec()),
        })
    }

    /// True when it changed a moment ago.
    pub(super) fn is_fresh(&self) -> bool {
        let changed = Duration::new(self.changed.0.unsigned_abs(), self.changed.1.try_into().unwrap_or(0));
        // A clock that was set back would make it fresh for ever.
        SystemTime::now().duration_since(SystemTime::UNIX_EPOCH + changed).is_ok_and(|age| age < FRESH)
    }
}

/// Looks out for changes in a file's folder.
pub(super) struct Eye {
    events: Option<Receiver>,
}

impl Eye {
    /// On the folder rather than the file, which may be replaced.
    pub(super) fn on(path: &Path) -> Eye {
        let events = watch(super::folder(path))
            .inspect_err(|error| tracing::debug!(%error, "the kernel does not tell of changes; only looking is left"));
        Eye { events: events.ok() }
    }

    /// Ready when something may have changed, at the latest after `longest`.
    pub(super) async fn hint(&mut self, longest: Duration) {
        let told = async {
            let Some(events) = &self.events else { return std::future::pending().await };
            if events.readable().await.is_err() {
                return std::future::pending().await;
            }
            drain(events);
            tokio::time::sleep(HINT_EVERY).await;
        };
        let _ = tokio::time::timeout(longest, told).await;
    }
}

fn watch(folder: &Path) -> std::io::Result<Receiver> {
    let events: OwnedFd = init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
    let what = WatchFlags::CLOSE_WRITE | WatchFlags::MODIFY | WatchFlags::MOVED_TO | WatchFlags::CREATE;
    add_watch(&events, folder, what | WatchFlags::DELETE | WatchFlags::ONLYDIR)?;
    // To the runtime it is a pipe: bytes that come. Its type for any descriptor
    // cannot be made in safe code.
    Receiver::from_owned_fd_unchecked(events)
}

/// Reads what there is; that something is there says enough.
fn drain(events: &Receiver) {
    let mut bytes = [0; 4096];
    while events.try_read(&mut bytes).is_ok_and(|read| read > 0) {}
}
