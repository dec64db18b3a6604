//! The apps' output: lines, cut and rationed, to a sink.
//! An app that writes too much is slowed a little and its lines are counted
//! as dropped; it is never blocked for good, and memory stays the same.

mod lines;

use lines::{Lines, Ration};
use parking_lot::Mutex;
use policy::revision::RevisionId;
use policy::world::PodName;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;
use tokio::time::Instant;

/// Takes the apps' lines.
pub type Sink = Arc<dyn Fn(Line<'_>) + Send + Sync>;

/// Which stream of an app a line came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
    /// A remark of ours about what was dropped.
    Note,
}

/// One line of an app.
#[derive(Clone, Copy, Debug)]
pub struct Line<'a> {
    /// Of which pod.
    pub pod: &'a PodName,
    /// Of which revision.
    pub revision: &'a RevisionId,
    /// Where it came from.
    pub stream: Stream,
    /// Without its line end; what is not UTF-8 is replaced.
    pub text: &'a str,
}

/// Where the apps' output goes, and how much of it: each limit is for each
/// stream of each process.
#[derive(Clone)]
pub struct Output {
    /// Longer lines are cut there, in bytes (default 8 KiB).
    pub line_limit: usize,
    /// Mean rate beyond which lines are dropped and counted, in bytes per
    /// second (default 1 MiB).
    pub rate: u32,
    /// What may come at once on top of that, in bytes (default 1 MiB).
    pub burst: u32,
    /// Takes the lines; default: the log. It runs on the runtime and must not block.
    pub sink: Sink,
}

impl Default for Output {
    fn default() -> Output {
        Output { line_limit: 8 << 10, rate: 1 << 20, burst: 1 << 20, sink: Arc::new(log) }
    }
}

impl fmt::Debug for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Output")
            .field("line_limit", &self.line_limit)
            .field("rate", &self.rate)
            .field("burst", &self.burst)
            .finish_non_exhaustive()
    }
}

fn log(line: Line<'_>) {
    let (pod, text) = (line.pod, line.text);
    match line.stream {
        Stream::Stdout => tracing::info!(target: "app", %pod, stream = "stdout", "{text}"),
        Stream::Stderr => tracing::info!(target: "app", %pod, stream = "stderr", "{text}"),
        Stream::Note => tracing::warn!(target: "app", %pod, "{text}"),
    }
}

/// The last line of standard error that was not empty: often the reason of a crash.
#[derive(Debug, Default)]
pub(super) struct LastWords(Mutex<String>);

/// Longest kept last line, in bytes.
const LAST_WORDS: usize = 200;

impl LastWords {
    /// The line; empty when there was none.
    pub(super) fn get(&self) -> String {
        self.0.lock().clone()
    }

    fn set(&self, text: &str) {
        if !text.trim().is_empty() {
            let mut last = self.0.lock();
            last.clear();
            last.push_str(&text[..text.floor_char_boundary(LAST_WORDS)]);
        }
    }
}

/// One stream of one process, and where its lines go.
pub(super) struct Pump {
    pub(super) pod: PodName,
    pub(super) revision: RevisionId,
    pub(super) stream: Stream,
    pub(super) output: Output,
    /// Where to note the last line.
    pub(super) last_words: Option<Arc<LastWords>>,
}

/// Read at a time, in bytes: the size of a pipe.
const READ: usize = 64 << 10;
/// Pause after each read while an app writes more than its rate, which holds
/// it to about 13 MB/s and us to little work.
const SLOWED: Duration = Duration::from_millis(5);
/// Dropped lines are reported at most this often.
const REPORT_EVERY: Duration = Duration::from_secs(1);

impl Pump {
    /// Reads until the last writer has closed the stream.
    pub(super) async fn run(self, mut from: pipe::Receiver) {
        let mut buffer = Vec::with_capacity(READ);
        let mut lines = Lines::new(self.output.line_limit);
        let mut ration = Ration::new(self.output.rate, self.output.burst, Instant::now());
        let mut reported = Instant::now();
        loop {
            buffer.clear();
            match from.read_buf(&mut buffer).await {
                Ok(0) | Err(_) => break,
                Ok(_) => {}
            }
            let now = Instant::now();
            ration.refill(now);
            lines.take_in(&buffer, |line| self.pass(line, &mut ration));
            if ration.dropped() > 0 {
                if now.duration_since(reported) >= REPORT_EVERY {
                    reported = now;
                    self.report(&mut ration);
                }
                tokio::time::sleep(SLOWED).await;
            }
        }
        lines.finish(|line| self.pass(line, &mut ration));
        self.report(&mut ration);
    }

    fn pass(&self, line: &[u8], ration: &mut Ration) {
        if !ration.allows(line.len()) {
            return;
        }
        let text = String::from_utf8_lossy(line);
        if let Some(last) = &self.last_words {
            last.set(&text);
        }
        self.emit(self.stream, &text);
    }

    fn report(&self, ration: &mut Ration) {
        let dropped = ration.take_dropped();
        if dropped > 0 {
            let rate = self.output.rate;
            self.emit(Stream::Note, &format!("{dropped} lines dropped: the app wrote more than {rate} bytes a second"));
        }
    }

    fn emit(&self, stream: Stream, text: &str) {
        (self.output.sink)(Line { pod: &self.pod, revision: &self.revision, stream, text });
    }
}
