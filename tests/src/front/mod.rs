//! An activator as a process of its own, so that its memory is its own, and a
//! sidecar behind it, for tests that speak to both together.
//!
//! Its platform is its standard input: see [`program`] for the words.

mod chain;
pub mod program;

pub use chain::{Chain, Through};

use crate::floor::binaries;
use anyhow::{Context, ensure};
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// How long an answer of its may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// An activator that runs; killed when it is dropped.
pub struct Front {
    child: Child,
    words: ChildStdin,
    lines: Receiver<String>,
    /// Where it takes requests.
    pub address: SocketAddr,
}

/// What it does now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Load {
    /// Requests that wait.
    pub held: usize,
    /// Requests at pods.
    pub in_flight: usize,
}

impl Front {
    /// With these options (see [`program`]); ready to be connected to.
    ///
    /// # Errors
    /// When it does not come up.
    pub fn start(options: &str) -> anyhow::Result<Front> {
        let mut command = Command::new(binaries::front()?);
        command.args(options.split_ascii_whitespace());
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let words = child.stdin.take().context("a pipe")?;
        let stdout = child.stdout.take().context("a pipe")?;
        let (tell, lines) = channel();
        std::thread::spawn(move || {
            BufReader::new(stdout).lines().map_while(Result::ok).for_each(|line| drop(tell.send(line)));
        });
        let nowhere = SocketAddr::from(([127, 0, 0, 1], 0));
        let mut front = Front { child, words, lines, address: nowhere };
        front.address = front.line("listening")?.parse()?;
        Ok(front)
    }

    /// These pods are ready, and no others; returns when that is taken in.
    ///
    /// # Errors
    /// When it does not answer.
    pub fn pods(&mut self, pods: &[SocketAddr]) -> anyhow::Result<()> {
        let pods: Vec<String> = pods.iter().map(ToString::to_string).collect();
        writeln!(self.words, "pods {}", pods.join(" "))?;
        self.line("taken").map(drop)
    }

    /// What it does now.
    ///
    /// # Errors
    /// When it does not answer.
    pub fn load(&mut self) -> anyhow::Result<Load> {
        writeln!(self.words, "load")?;
        let line = self.line("load")?;
        let (held, in_flight) = line.split_once(' ').context("two numbers")?;
        Ok(Load { held: held.parse()?, in_flight: in_flight.parse()? })
    }

    /// Waits until its load is as it should be; how long that took.
    ///
    /// # Errors
    /// When it never is.
    pub async fn until(&mut self, what: &str, holds: impl Fn(Load) -> bool) -> anyhow::Result<Duration> {
        let began = Instant::now();
        loop {
            let load = self.load()?;
            if holds(load) {
                return Ok(began.elapsed());
            }
            ensure!(began.elapsed() < PATIENCE, "{what}: {load:?}");
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    /// Its number.
    pub fn pid(&self) -> i32 {
        Pid::from_child(&self.child).as_raw_pid()
    }

    /// Sends TERM.
    ///
    /// # Errors
    /// When it has ended.
    pub fn terminate(&self) -> anyhow::Result<()> {
        Ok(kill_process(Pid::from_child(&self.child), Signal::TERM)?)
    }

    /// True while it runs.
    pub fn is_running(&mut self) -> bool {
        self.child.try_wait().is_ok_and(|status| status.is_none())
    }

    /// Waits for its end; the exit code, -1 after a signal.
    ///
    /// # Errors
    /// When it does not end.
    pub async fn ended(&mut self) -> anyhow::Result<i32> {
        let began = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status.code().unwrap_or(-1));
            }
            ensure!(began.elapsed() < PATIENCE, "it does not end");
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    /// The rest of its next line, which begins with `word`.
    fn line(&mut self, word: &str) -> anyhow::Result<String> {
        let line = self.lines.recv_timeout(PATIENCE).with_context(|| format!("it does not say `{word}`"))?;
        let rest = line.strip_prefix(word).with_context(|| format!("`{word}` was to come, not `{line}`"))?;
        Ok(rest.trim().to_owned())
    }
}

impl Drop for Front {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
