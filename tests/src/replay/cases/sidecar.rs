//! The sidecar under test, as a process.

use rustix::process::{Pid, Signal, kill_process};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Lines kept of each stream: a sidecar that floods must not fill memory.
const KEPT_LINES: usize = 5_000;

/// Bytes kept of a line.
const KEPT_BYTES: u64 = 64 * 1024;

/// How often the end of the process is looked for.
const LOOK: Duration = Duration::from_millis(3);

/// A running sidecar, killed when it is dropped.
pub struct Sidecar {
    child: Child,
    stdout: Captured,
    stderr: Captured,
    /// When it was started.
    pub started: Instant,
    /// When it was started or got a signal last.
    pub since: Instant,
}

/// What a stream brought so far.
struct Captured {
    lines: Arc<Mutex<Vec<String>>>,
    reader: Option<JoinHandle<()>>,
}

impl Sidecar {
    /// Starts it with this environment and no other.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start(binary: &Path, environment: &BTreeMap<String, String>) -> anyhow::Result<Sidecar> {
        let mut child = Command::new(binary)
            .env_clear()
            .envs(environment)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| anyhow::anyhow!("{}: {error}", binary.display()))?;
        let stdout = Captured::of(child.stdout.take());
        let stderr = Captured::of(child.stderr.take());
        let now = Instant::now();
        Ok(Sidecar { child, stdout, stderr, started: now, since: now })
    }

    /// Sends TERM or INT.
    ///
    /// # Errors
    /// For another name, or when it is gone.
    pub fn signal(&mut self, name: &str) -> anyhow::Result<()> {
        let signal = match name {
            "TERM" => Signal::TERM,
            "INT" => Signal::INT,
            other => anyhow::bail!("malformed row: signal {other}"),
        };
        self.since = Instant::now();
        Ok(kill_process(Pid::from_child(&self.child), signal)?)
    }

    /// The code with which it ended, -1 for a signal.
    pub fn exit_code(&mut self) -> Option<i32> {
        let status = self.child.try_wait().ok().flatten()?;
        Some(status.code().unwrap_or(-1))
    }

    /// Waits until it has ended.
    pub async fn wait(&mut self, limit: Duration) -> Option<i32> {
        let deadline = Instant::now() + limit;
        loop {
            if let Some(code) = self.exit_code() {
                // Its last words are on their way still.
                self.stdout.finish();
                self.stderr.finish();
                return Some(code);
            }
            if Instant::now() >= deadline {
                return None;
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// The lines so far.
    pub fn stdout(&self) -> Vec<String> {
        self.stdout.lines()
    }

    /// The lines so far.
    pub fn stderr(&self) -> Vec<String> {
        self.stderr.lines()
    }
}

impl Drop for Sidecar {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Captured {
    fn of(stream: Option<impl Read + Send + 'static>) -> Captured {
        let lines = Arc::new(Mutex::new(Vec::new()));
        let into = lines.clone();
        let reader = stream.map(|stream| std::thread::spawn(move || capture(stream, &into)));
        Captured { lines, reader }
    }

    fn lines(&self) -> Vec<String> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn finish(&mut self) {
        if let Some(reader) = self.reader.take() {
            let _ = reader.join();
        }
    }
}

fn capture(stream: impl Read, into: &Mutex<Vec<String>>) {
    let mut stream = BufReader::new(stream);
    loop {
        let mut line = Vec::new();
        let read = stream.by_ref().take(KEPT_BYTES).read_until(b'\n', &mut line);
        if !matches!(read, Ok(1..)) {
            return;
        }
        let line = String::from_utf8_lossy(line.strip_suffix(b"\n").unwrap_or(&line)).into_owned();
        let mut lines = into.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() < KEPT_LINES {
            lines.push(line);
        }
    }
}
