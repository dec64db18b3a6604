//! Notices that a file has changed: the kernel tells of its folder, and the
//! file is looked at from time to time as well, since not every file system
//! tells.

use rustix::fs::inotify::{CreateFlags, WatchFlags, add_watch, init};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
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
    path: PathBuf,
    /// The folders that are watched: the file's own, and the one that it lies
    /// in if it is a link. The same places may be other folders later.
    folders: [Option<Place>; 2],
    events: Option<Receiver>,
}

/// A folder, by what does not change when it is moved.
type Place = (u64, u64);

/// File systems on which nobody else writes, so that the kernel sees all:
/// ext2 to ext4, XFS, Btrfs, F2FS, ZFS, tmpfs, ramfs, and a container's overlay.
const LOCAL: [u64; 8] =
    [0xef53, 0x5846_5342, 0x9123_683e, 0xf2f5_2010, 0x2fc1_2fc1, 0x0102_1994, 0x8584_58f6, 0x794c_7630];

impl Eye {
    /// On the folder rather than the file, which may be replaced.
    pub(super) fn on(path: &Path) -> Eye {
        let mut eye = Eye { path: path.to_owned(), folders: [None, None], events: None };
        eye.follow();
        eye
    }

    /// Looks where the file is now, and watches that; true if it is elsewhere
    /// than before.
    pub(super) fn follow(&mut self) -> bool {
        let folders = self.places();
        let now = folders.each_ref().map(|folder| place(folder.as_deref()?));
        if self.events.is_some() && now == self.folders {
            return false;
        }
        let watched = watch(folders.iter().flatten().map(|folder| &**folder));
        if let Err(error) = &watched
            && self.events.is_some()
        {
            tracing::debug!(%error, "the kernel does not tell of changes; only looking is left");
        }
        (self.folders, self.events) = (now, watched.ok());
        true
    }

    fn places(&self) -> [Option<PathBuf>; 2] {
        let folder = super::folder(&self.path).to_owned();
        let linked = self.path.is_symlink().then(|| self.path.canonicalize().ok()).flatten();
        [Some(folder), linked.and_then(|file| Some(file.parent()?.to_owned()))]
    }

    /// True when the kernel tells of all that happens to the file.
    pub(super) fn sees(&self) -> bool {
        let local = |folder: &PathBuf| {
            let seen = rustix::fs::statfs(folder).ok().and_then(|seen| u64::try_from(seen.f_type).ok());
            seen.is_some_and(|kind| LOCAL.contains(&kind))
        };
        self.events.is_some() && self.places().iter().flatten().all(local)
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

fn place(folder: &Path) -> Option<Place> {
    let seen = std::fs::metadata(folder).ok()?;
    Some((seen.dev(), seen.ino()))
}

fn watch<'a>(folders: impl Iterator<Item = &'a Path>) -> std::io::Result<Receiver> {
    let events: OwnedFd = init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
    let what = WatchFlags::CLOSE_WRITE | WatchFlags::MODIFY | WatchFlags::MOVED_TO | WatchFlags::CREATE;
    let gone = WatchFlags::DELETE | WatchFlags::MOVED_FROM | WatchFlags::DELETE_SELF | WatchFlags::MOVE_SELF;
    for folder in folders {
        add_watch(&events, folder, what | gone | WatchFlags::ONLYDIR)?;
    }
    // To the runtime it is a pipe: bytes that come. Its type for any descriptor
    // cannot be made in safe code.
    Receiver::from_owned_fd_unchecked(events)
}

/// Reads what there is; that something is there says enough.
fn drain(events: &Receiver) {
    let mut bytes = [0; 4096];
    while events.try_read(&mut bytes).is_ok_and(|read| read > 0) {}
}
