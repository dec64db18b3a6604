//! How late this machine's timers are: what no program can be blamed for.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

const STEP: Duration = Duration::from_millis(1);

/// A thread that sleeps in short steps until it is asked what it saw.
pub struct Jitter {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Vec<Duration>>,
}

/// Lateness of sleeps of 1 ms.
#[derive(Clone, Copy, Debug, Default)]
pub struct Lateness {
    /// Of a hundred, all but one were less late.
    pub p99: Duration,
    /// The latest.
    pub worst: Duration,
}

impl Jitter {
    /// Begins to measure.
    pub fn measure() -> Jitter {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let thread = thread::spawn(move || {
            let mut late = Vec::new();
            while !stopped.load(Ordering::Relaxed) {
                let began = Instant::now();
                thread::sleep(STEP);
                late.push(began.elapsed().saturating_sub(STEP));
            }
            late
        });
        Jitter { stop, thread }
    }

    /// Ends.
    pub fn finish(self) -> Lateness {
        self.stop.store(true, Ordering::Relaxed);
        let mut late = self.thread.join().unwrap_or_default();
        late.sort();
        let at = |share: usize| late.get(late.len() * share / 100).or(late.last()).copied().unwrap_or_default();
        Lateness { p99: at(99), worst: at(100) }
    }
}

impl Lateness {
    /// How long "at once" may take: 5 ms, or three times the jitter (rules,
    /// section 4).
    pub fn at_once(&self) -> Duration {
        (self.p99 * 3).max(Duration::from_millis(5))
    }
}
