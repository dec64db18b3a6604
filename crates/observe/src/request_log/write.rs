//! Lines for standard output, written by a thread of their own.
//!
//! A pipe that nobody empties blocks whoever writes to it; that must not be
//! the thread that serves requests. Lines gather in a buffer of bounded size,
//! which the thread takes whole and writes; what finds no room falls and is
//! counted. Two buffers change places, so nothing is allocated for a line.

use crate::metrics::Dropped;
use parking_lot::{Condvar, Mutex};
use std::io::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Bytes that wait, at most.
const WAITING: usize = 1024 * 1024;

/// The thread needs hardly any stack.
const STACK: usize = 64 * 1024;

/// Clones write to the same place.
#[derive(Clone)]
pub(crate) struct Lines {
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<State>,
    /// Something waits, or it is over.
    more: Condvar,
    /// All has been written.
    written: Condvar,
    dropped: Arc<Dropped>,
    limit: usize,
}

#[derive(Default)]
struct State {
    waiting: Vec<u8>,
    /// The thread is between taking and having written.
    writing: bool,
    /// The thread has nothing to do and waits to be told.
    asleep: bool,
    /// Nobody reads any more; all that comes falls.
    broken: bool,
}

impl Lines {
    /// Starts the thread. Without one (the process is out of threads) each
    /// line falls and is counted.
    pub(crate) fn to_stdout(dropped: Arc<Dropped>) -> Lines {
        Lines::to(std::io::stdout(), dropped, WAITING)
    }

    pub(crate) fn to(target: impl Write + Send + 'static, dropped: Arc<Dropped>, limit: usize) -> Lines {
        let state = Mutex::new(State::default());
        let shared = Arc::new(Shared { state, more: Condvar::new(), written: Condvar::new(), dropped, limit });
        let lines = Lines { shared: shared.clone() };
        let thread = std::thread::Builder::new().name("lines".to_owned()).stack_size(STACK);
        if thread.spawn(move || shared.run(target)).is_err() {
            lines.shared.state.lock().broken = true;
        }
        lines
    }

    /// Takes whole lines. Never waits for whoever reads them.
    pub(crate) fn push(&self, text: &[u8]) {
        let mut state = self.shared.state.lock();
        if state.broken || state.waiting.len() + text.len() > self.shared.limit {
            drop(state);
            self.shared.dropped.add_line();
            return;
        }
        state.waiting.extend_from_slice(text);
        let wake = std::mem::take(&mut state.asleep);
        drop(state);
        if wake {
            self.shared.more.notify_one();
        }
    }

    /// Waits until all is written, at most so long. For the end of the process.
    pub(crate) fn flush(&self, longest: Duration) -> bool {
        let until = Instant::now() + longest;
        let mut state = self.shared.state.lock();
        while !state.broken && (state.writing || !state.waiting.is_empty()) {
            if self.shared.written.wait_until(&mut state, until).timed_out() {
                return false;
            }
        }
        true
    }
}

impl Shared {
    /// Ends only with the process, or when the target breaks: the thread may
    /// be inside a write that never returns.
    fn run(&self, mut target: impl Write) {
        let mut taken = Vec::new();
        loop {
            let mut state = self.state.lock();
            state.writing = false;
            while state.waiting.is_empty() {
                self.written.notify_all();
                state.asleep = true;
                self.more.wait(&mut state);
            }
            std::mem::swap(&mut state.waiting, &mut taken);
            state.writing = true;
            state.asleep = false;
            drop(state);
            if target.write_all(&taken).and_then(|()| target.flush()).is_err() {
                let mut state = self.state.lock();
                state.broken = true;
                state.waiting = Vec::new();
                self.written.notify_all();
                return;
            }
            taken.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::{Receiver, Sender, channel};

    /// Writes go to a channel, and wait for a word before each.
    struct Slow {
        go: Option<Receiver<()>>,
        out: Sender<Vec<u8>>,
    }

    impl Write for Slow {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            if let Some(go) = &self.go {
                let _ = go.recv();
            }
            let _ = self.out.send(bytes.to_vec());
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn lines_come_out_whole_and_in_order() {
        let (out, lines_out) = channel();
        let lines = Lines::to(Slow { go: None, out }, Arc::default(), 1000);
        lines.push(b"a\n");
        lines.push(b"b\n");
        assert!(lines.flush(Duration::from_secs(10)));
        let all: Vec<u8> = lines_out.try_iter().flatten().collect();
        assert_eq!(all, b"a\nb\n");
    }

    #[test]
    fn a_stalled_pipe_holds_nobody_and_what_falls_is_counted() {
        let (go, told) = channel();
        let (out, lines_out) = channel();
        let dropped = Arc::<Dropped>::default();
        let lines = Lines::to(Slow { go: Some(told), out }, dropped.clone(), 100);
        let began = Instant::now();
        for _ in 0..1000 {
            lines.push(b"0123456789");
        }
        assert!(began.elapsed() < Duration::from_secs(5));
        assert!(!lines.flush(Duration::from_millis(20)), "the pipe is stalled");
        drop(go);
        assert!(lines.flush(Duration::from_secs(10)));
        let written = lines_out.try_iter().flatten().count() as u64 / 10;
        assert!(written >= 10 && written + dropped.lines() == 1000, "{written} and {}", dropped.lines());
    }

    #[test]
    fn a_closed_pipe_makes_all_fall() {
        struct Closed;
        impl Write for Closed {
            fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
                Err(std::io::ErrorKind::BrokenPipe.into())
            }
            fn flush(&mut self) -> std::io::Result<()> {
                Ok(())
            }
        }
        let dropped = Arc::<Dropped>::default();
        let lines = Lines::to(Closed, dropped.clone(), 100);
        lines.push(b"a\n");
        assert!(lines.flush(Duration::from_secs(10)));
        lines.push(b"b\n");
        assert_eq!(dropped.lines(), 1);
    }
}
