//! Carries out orders: reads the order file, starts and stops pods, writes the
//! snapshot file. A thread and no more; what a supervisor or a script would do.

use super::pod::Pod;
use super::world::{self, Line};
use platform::file::read_orders;
use policy::world::Path as Way;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Between two looks at the order file.
const LOOK: Duration = Duration::from_millis(10);
/// From `terminating` in the file to TERM.
const NOTICE: Duration = Duration::from_millis(500);

/// What a host is told.
pub struct Settings {
    /// The file that it writes.
    pub snapshots: PathBuf,
    /// The file that it reads.
    pub orders: PathBuf,
    /// Further lines of the revision.
    pub revision: String,
    /// How long each request takes.
    pub work: Duration,
    /// Variables of the sidecars.
    pub sidecar: Vec<(String, String)>,
}

/// A host that runs until it is dropped.
pub struct Host {
    stop: Arc<AtomicBool>,
    pods: Arc<AtomicUsize>,
    started: Arc<AtomicUsize>,
    thread: Option<JoinHandle<()>>,
}

impl Host {
    /// Starts it; the snapshot file is there then.
    pub fn start(settings: Settings) -> Host {
        let stop = Arc::new(AtomicBool::new(false));
        let (pods, started) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let mut work = Work { settings, pods: Vec::new(), made: 0, path: Way::Activator, written: String::new() };
        work.write();
        let told = (stop.clone(), Arc::clone(&pods), Arc::clone(&started));
        let thread = std::thread::spawn(move || {
            let (stop, pods, started) = told;
            while !stop.load(Ordering::SeqCst) {
                work.turn();
                pods.store(work.pods.len(), Ordering::SeqCst);
                started.store(work.made, Ordering::SeqCst);
                std::thread::sleep(LOOK);
            }
        });
        Host { stop, pods, started, thread: Some(thread) }
    }

    /// Pods that exist, ending ones included.
    pub fn pods(&self) -> usize {
        self.pods.load(Ordering::SeqCst)
    }

    /// Pods that were ever started.
    pub fn started(&self) -> usize {
        self.started.load(Ordering::SeqCst)
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

struct Work {
    settings: Settings,
    pods: Vec<Seat>,
    made: usize,
    path: Way,
    written: String,
}

struct Seat {
    name: String,
    pod: Pod,
    /// Set when it is to go: since when, and whether TERM was sent.
    ending: Option<(Instant, bool)>,
}

impl Work {
    fn turn(&mut self) {
        if let Ok(orders) = read_orders(&self.settings.orders)
            && let Some(order) = orders.first()
        {
            self.path = order.path;
            self.reach(order.wanted as usize);
        }
        for seat in &mut self.pods {
            if let Some((since, told @ false)) = &mut seat.ending
                && since.elapsed() > NOTICE
            {
                seat.pod.end();
                *told = true;
            }
        }
        self.pods.retain_mut(|seat| seat.pod.is_running());
        self.write();
    }

    fn reach(&mut self, wanted: usize) {
        let staying = self.pods.iter().filter(|seat| seat.ending.is_none()).count();
        for _ in staying..wanted {
            self.made += 1;
            let name = format!("rev-{}", self.made);
            let variables = self.settings.sidecar.iter().map(|(name, value)| (name.as_str(), value.as_str()));
            let variables: Vec<_> = variables.chain([("SERVING_POD", name.as_str())]).collect();
            let pod = Pod::start(self.settings.work, &variables);
            self.pods.push(Seat { name, pod, ending: None });
        }
        let going = staying.saturating_sub(wanted);
        for seat in self.pods.iter_mut().rev().filter(|seat| seat.ending.is_none()).take(going) {
            seat.ending = Some((Instant::now(), false));
        }
    }

    fn write(&mut self) {
        let lines = self.pods.iter().map(|seat| Line {
            name: seat.name.clone(),
            address: seat.pod.address(),
            phase: if seat.ending.is_some() { "terminating" } else { "ready" },
        });
        let path = match self.path {
            Way::Activator => "activator",
            Way::Direct => "direct",
        };
        let settings = format!("  path: {path}\n{}", self.settings.revision);
        let text = world::text(&settings, &lines.collect::<Vec<_>>());
        if text != self.written {
            world::put(&self.settings.snapshots, &text);
            self.written = text;
        }
    }
}
