//! What is kept over a restart, as a file: written whole each few seconds and
//! at the end, put in place by a rename, bounded, and read only while young
//! (`policy::saved`). A file that makes no sense is told of and left alone
//! until the next one takes its place.
//!
//! The history of decisions is a file beside it, `FILE.history`: it may be far
//! larger, so it is written so seldom that this takes a twentieth of the time.

use crate::Autoscaler;
use plumbing::clock;
use plumbing::shutdown::Shutdown;
use policy::active::{Active, Activity};
use policy::decider::Status;
use policy::moment::Moment;
use policy::revision::RevisionId;
use policy::saved::{Saved, SavedLoad};
use policy::scale::SavedMemory;
use policy::steady::Steady;
use policy::world;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How often it is written.
pub const EVERY: Duration = Duration::from_secs(5);
/// The history is written again after so many times what the last time took.
const HISTORY_PAUSE: u32 = 20;
/// Bytes of a file, and seconds of a revision.
const BYTES_MAX: u64 = 256 << 20;
const SECONDS_MAX: usize = 3600;
/// Candidates of a delay window: an hour of ticks.
const DELAY_MAX: usize = 1800;

/// The format of the file.
const VERSION: u32 = 1;

#[derive(Serialize, Deserialize)]
struct Whole {
    version: u32,
    revisions: BTreeMap<String, Revision>,
}

/// Times are nanoseconds since 1970.
#[derive(Serialize, Deserialize)]
struct Revision {
    at: i64,
    seconds: Vec<(f64, f64)>,
    silent: u32,
    panic_since: Option<i64>,
    max_panic_pods: i32,
    after_panic: Option<i32>,
    steady: (i32, f64, Option<i64>, Option<i64>),
    delay: Vec<(i64, i32)>,
    desired: i32,
    excess_burst_capacity: i32,
    active: (String, String),
    active_since: i64,
    initialized: bool,
    ordered: Option<u32>,
    direct: bool,
}

impl Revision {
    fn of(saved: &Saved) -> Revision {
        let Saved { at, load, memory, status, activity, ordered, path } = saved;
        let Steady { pods, credit, at: decided, since } = memory.steady;
        Revision {
            at: at.unix_nanos(),
            seconds: load.seconds.clone(),
            silent: load.silent,
            panic_since: memory.panic_since.map(Moment::unix_nanos),
            max_panic_pods: memory.max_panic_pods,
            after_panic: memory.after_panic,
            steady: (pods, credit, decided.map(Moment::unix_nanos), since.map(Moment::unix_nanos)),
            delay: memory.delay.clone(),
            desired: status.desired,
            excess_burst_capacity: status.excess_burst_capacity,
            active: (activity.active().status().to_owned(), activity.active().reason().to_owned()),
            active_since: activity.since().unix_nanos(),
            initialized: activity.initialized(),
            ordered: *ordered,
            direct: *path == world::Path::Direct,
        }
    }

    /// `None` when it makes no sense.
    fn saved(self) -> Option<Saved> {
        let sound = self.seconds.iter().all(|second| second.0.is_finite() && second.1.is_finite())
            && self.seconds.len() <= SECONDS_MAX
            && self.delay.len() <= DELAY_MAX
            && self.steady.1.is_finite();
        if !sound {
            return None;
        }
        let moment = Moment::from_unix_nanos;
        let (pods, credit, decided, since) = self.steady;
        let active = Active::parse(&self.active.0, &self.active.1)?;
        Some(Saved {
            at: moment(self.at),
            load: SavedLoad { seconds: self.seconds, silent: self.silent },
            memory: SavedMemory {
                panic_since: self.panic_since.map(moment),
                max_panic_pods: self.max_panic_pods,
                after_panic: self.after_panic,
                steady: Steady { pods, credit, at: decided.map(moment), since: since.map(moment) },
                delay: self.delay,
            },
            status: Status { desired: self.desired, excess_burst_capacity: self.excess_burst_capacity },
            activity: Activity::restore(active, moment(self.active_since), self.initialized),
            ordered: self.ordered,
            path: if self.direct { world::Path::Direct } else { world::Path::Activator },
        })
    }
}

/// As the text of a file.
///
/// # Errors
/// When it would be too long.
pub fn text(saved: &BTreeMap<RevisionId, Saved>) -> io::Result<String> {
    let revisions = saved.iter().map(|(id, saved)| (id.to_string(), Revision::of(saved))).collect();
    let text = serde_json::to_string(&Whole { version: VERSION, revisions })?;
    if text.len() as u64 > BYTES_MAX {
        return Err(io::Error::other(format!("{} revisions need more than {BYTES_MAX} bytes", saved.len())));
    }
    Ok(text)
}

/// Reads a file; revisions that make no sense are left out.
///
/// # Errors
/// When there is none, or it makes no sense as a whole.
pub fn read(path: &Path) -> io::Result<BTreeMap<RevisionId, Saved>> {
    let mut text = String::new();
    let read = File::open(path)?.take(BYTES_MAX + 1).read_to_string(&mut text)?;
    if read as u64 > BYTES_MAX {
        return Err(io::Error::other(format!("it is longer than {BYTES_MAX} bytes")));
    }
    let Whole { version, revisions } = serde_json::from_str(&text)?;
    if version != VERSION {
        return Err(io::Error::other(format!("it has the format {version}, and {VERSION} is known")));
    }
    let known = revisions.into_iter().filter_map(|(id, revision)| {
        let (namespace, name) = id.split_once('/')?;
        Some((RevisionId::new(namespace, name), revision.saved()?))
    });
    Ok(known.collect())
}

/// Writes the files until `shutdown` stops, and once more.
pub async fn keep(autoscaler: Autoscaler, path: PathBuf, shutdown: Shutdown) {
    let (mut failing, mut last) = (false, false);
    let mut history_due = Instant::now();
    while !last {
        tokio::select! {
            () = tokio::time::sleep(EVERY) => {}
            () = shutdown.stopping() => last = true,
        }
        let (autoscaler, target) = (autoscaler.clone(), path.clone());
        let with_history = last || Instant::now() >= history_due;
        let written = tokio::task::spawn_blocking(move || {
            write(&target, |to| to.write_all(text(&autoscaler.save(clock::now()))?.as_bytes()))?;
            let began = Instant::now();
            if with_history {
                write(&history_of(&target), |to| autoscaler.write_history(to))?;
            }
            Ok::<_, io::Error>(began.elapsed())
        });
        let error = match written.await {
            Ok(Ok(took)) => {
                if with_history {
                    history_due = Instant::now() + took * HISTORY_PAUSE;
                }
                None
            }
            Ok(Err(error)) => Some(error.to_string()),
            Err(error) => Some(error.to_string()),
        };
        if let Some(error) = error.as_ref().filter(|_| !failing) {
            tracing::error!(file = %path.display(), error, "the state cannot be written; trying on");
        }
        failing = error.is_some();
    }
}

/// Takes up what an earlier autoscaler has left; what makes no sense is told of.
pub fn restore(autoscaler: &Autoscaler, path: &Path) {
    match read(path) {
        Ok(saved) => {
            tracing::info!(file = %path.display(), revisions = saved.len(), "going on where an earlier one has ended");
            autoscaler.restore(saved);
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => tracing::warn!(file = %path.display(), %error, "the state is of no use; beginning anew"),
    }
    let path = history_of(path);
    let read = File::open(&path).and_then(|file| autoscaler.read_history(BufReader::new(file), clock::now()));
    match read {
        Ok(revisions) => tracing::info!(file = %path.display(), revisions, "the history goes on"),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => tracing::warn!(file = %path.display(), %error, "the history is of no use; beginning anew"),
    }
}

/// Where the history is that belongs to a state's file.
pub fn history_of(path: &Path) -> PathBuf {
    with_end(path, ".history")
}

fn with_end(path: &Path, end: &str) -> PathBuf {
    let mut longer = path.as_os_str().to_owned();
    longer.push(end);
    PathBuf::from(longer)
}

fn write(path: &Path, fill: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>) -> io::Result<()> {
    let beside = with_end(path, ".new");
    let mut to = BufWriter::new(File::create(&beside)?);
    fill(&mut to)?;
    to.flush()?;
    to.get_ref().sync_all()?;
    std::fs::rename(&beside, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn saved() -> BTreeMap<RevisionId, Saved> {
        let at = Moment::from_unix_nanos(1_700_000_000_123_456_789);
        let saved = Saved {
            at,
            load: SavedLoad { seconds: vec![(1.5, 2.0), (0.1 + 0.2, 0.0)], silent: 1 },
            memory: SavedMemory {
                panic_since: Some(at),
                max_panic_pods: 9,
                after_panic: Some(3),
                steady: Steady { pods: 4, credit: 1.25, at: Some(at), since: None },
                delay: vec![(7, 9), (8, 2)],
            },
            status: Status { desired: 4, excess_burst_capacity: -3 },
            activity: Activity::restore(Active::Yes, at, true),
            ordered: Some(4),
            path: world::Path::Direct,
        };
        BTreeMap::from([(RevisionId::new("default", "shop"), saved)])
    }

    #[test]
    fn what_is_written_is_read() {
        let folder = std::env::temp_dir().join(format!("zeroscale-state-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("state.json");
        write(&path, |to| to.write_all(text(&saved()).unwrap().as_bytes())).unwrap();
        assert_eq!(read(&path).unwrap(), saved());
        for bad in ["", "{", "[]", "{\"version\":2,\"revisions\":{}}", "\u{0}"] {
            std::fs::write(&path, bad).unwrap();
            assert!(read(&path).is_err(), "{bad:?}");
        }
        let odd = text(&saved()).unwrap().replace("\"True\"", "\"Odd\"");
        std::fs::write(&path, odd).unwrap();
        assert!(read(&path).unwrap().is_empty());
        std::fs::remove_dir_all(folder).unwrap();
    }
}
