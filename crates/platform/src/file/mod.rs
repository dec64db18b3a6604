//! Snapshots from one YAML file, orders into a second: the platform of
//! activators and autoscalers that stand alone, for static ingress, for
//! benches and for tests. Whoever starts and stops pods writes the first file
//! and reads the second; docs/file-platform.md describes both.
//!
//! | job | module |
//! | --- | --- |
//! | noticing that a file has changed | `watch` |
//! | reading it whole, or saying why not | `read` |
//! | its form | `schema`, `resolve` (what it means) |
//! | what changed since the last one | `history` |
//! | orders, both ways | `orders` |

mod history;
mod orders;
mod read;
mod resolve;
mod schema;
mod watch;

pub use orders::{Ordered, orders, read_orders};

use crate::file::history::History;
use crate::file::read::Fault;
use crate::file::watch::{Eye, Mark};
use policy::moment::Moment;
use policy::world::Snapshot;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch as channel;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// How often the file is looked at where the kernel may not tell of changes.
pub const LOOK_EVERY: Duration = Duration::from_millis(100);

/// The same where it tells of them: of the folder, not of those above it.
const LOOK_SELDOM: Duration = Duration::from_secs(10);

/// How long a file without its last line may stay as it is before that is
/// taken for a fault: it may be in the middle of being written.
const UNFINISHED_MAX: Duration = Duration::from_millis(300);

/// Where snapshots come from.
#[derive(Clone, Debug)]
pub struct Source {
    /// The file.
    pub path: PathBuf,
    /// The clock that moments are of.
    pub now: fn() -> Moment,
}

/// Snapshots of a file.
#[derive(Debug)]
pub struct Snapshots {
    /// What is. Empty, with version 0, until the file was good once; a bad file
    /// leaves the last good one.
    pub world: channel::Receiver<Arc<Snapshot>>,
    /// How the file is.
    pub health: channel::Receiver<Health>,
    /// Resolves after the shutdown.
    pub ended: JoinHandle<()>,
}

/// How the file is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Health {
    /// What is wrong with it as it is now; `None` = nothing.
    pub fault: Option<Arc<str>>,
    /// Changes that were taken in.
    pub good: u64,
    /// Changes that were not.
    pub bad: u64,
}

/// Follows a file, on the current runtime, until `shutdown` is cancelled. A
/// file that is missing or bad at the start is waited for.
///
/// # Panics
/// Outside a tokio runtime with I/O and time.
pub fn snapshots(source: Source, shutdown: CancellationToken) -> Snapshots {
    let (publish, world) = channel::channel(Arc::new(Snapshot::default()));
    let (tell, health) = channel::channel(Health::default());
    let follower = Follower { source, history: History::default(), publish, tell, last: None, reported: None };
    let ended = tokio::spawn(async move {
        tokio::select! {
            () = follower.run() => {}
            () = shutdown.cancelled() => {}
        }
    });
    Snapshots { world, health, ended }
}

struct Follower {
    source: Source,
    history: History,
    publish: channel::Sender<Arc<Snapshot>>,
    tell: channel::Sender<Health>,
    /// What the file looked like when it was last read.
    last: Option<Look>,
    /// The look whose fault has been told.
    reported: Option<Option<Mark>>,
}

/// A reading, and when its file was first seen like that.
struct Look {
    mark: Option<Mark>,
    since: Instant,
    /// Read again at the next look, changed or not.
    again: bool,
}

impl Follower {
    async fn run(mut self) {
        let mut eye = Eye::on(&self.source.path);
        loop {
            self.look().await;
            // What happened before a folder was watched was not told.
            let soon = eye.follow() || self.last.as_ref().is_none_or(|last| last.again);
            eye.hint(if soon || !eye.sees() { LOOK_EVERY } else { LOOK_SELDOM }).await;
        }
    }

    async fn look(&mut self) {
        let mark = Mark::of(&self.source.path);
        let since = match &self.last {
            Some(last) if last.mark == mark && !last.again => return,
            Some(last) if last.mark == mark => last.since,
            _ => Instant::now(),
        };
        let path = self.source.path.clone();
        // A disc may hang; that must not stop who else runs here.
        let Ok(read) = tokio::task::spawn_blocking(move || read::world(&path)).await else { return };
        // A clock's step is coarse: what was written just now may be written
        // to again without looking any different.
        let mut again = mark.as_ref().is_none_or(Mark::is_fresh) && mark.is_some();
        match read {
            _ if Mark::of(&self.source.path) != mark => again = true,
            Ok(world) => self.take_in(world),
            Err(Fault::Unfinished(_)) if since.elapsed() < UNFINISHED_MAX => again = true,
            Err(fault) => self.refuse(&mark, fault),
        }
        self.last = Some(Look { mark, since, again });
    }

    fn take_in(&mut self, world: resolve::World) {
        let recovered = self.tell.borrow().fault.is_some();
        self.reported = None;
        let snapshot = self.history.snapshot(world, (self.source.now)());
        if snapshot.is_none() && !recovered {
            return;
        }
        let file = self.source.path.display();
        if let Some(snapshot) = snapshot {
            let pods: usize = snapshot.revisions.values().map(|view| view.pods.len()).sum();
            tracing::debug!(%file, version = snapshot.version, revisions = snapshot.revisions.len(), pods, "taken in");
            self.publish.send_replace(snapshot);
        }
        if recovered {
            tracing::info!(%file, "the file is good again");
        }
        self.tell.send_modify(|health| {
            health.fault = None;
            health.good += 1;
        });
    }

    fn refuse(&mut self, mark: &Option<Mark>, fault: Fault) {
        if self.reported.as_ref() == Some(mark) {
            return;
        }
        self.reported = Some(mark.clone());
        let fault = fault.to_string();
        let file = self.source.path.display();
        let kept = self.history.version();
        tracing::warn!(%file, fault, kept, "the file is of no use; the last good one stays");
        self.tell.send_modify(|health| {
            health.fault = Some(fault.into());
            health.bad += 1;
        });
    }
}

/// The folder that a file is in.
fn folder(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

#[cfg(test)]
mod tests;
