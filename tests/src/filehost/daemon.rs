//! A program that runs beside the test; killed when it is dropped.

use crate::program::{Lines, follow};
use rustix::process::{Pid, Signal, kill_process};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(30);
const LOOK: Duration = Duration::from_millis(2);

/// See the module.
pub struct Daemon {
    child: Child,
    lines: Lines,
    readers: Vec<JoinHandle<()>>,
}

impl Daemon {
    /// Starts it, with nothing but these variables.
    ///
    /// # Panics
    /// When it cannot be started.
    pub fn start(binary: &Path, arguments: &[&str], variables: &[(&str, &str)]) -> Daemon {
        let mut command = Command::new(binary);
        command.args(arguments).env_clear().envs(variables.iter().copied());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("it starts");
        let lines = Lines::default();
        let readers = vec![follow(child.stdout.take(), &lines), follow(child.stderr.take(), &lines)];
        Daemon { child, lines, readers }
    }

    /// The address after `what` in its log.
    ///
    /// # Panics
    /// When it does not come.
    pub fn address(&mut self, what: &str) -> SocketAddr {
        let began = Instant::now();
        loop {
            let of_line = |line: &String| -> Option<SocketAddr> {
                let rest = line.split_once(what)?.1.split_once("address=")?.1;
                rest.split(' ').next()?.parse().ok()
            };
            if let Some(address) = self.lines().iter().find_map(of_line) {
                return address;
            }
            let ended = self.child.try_wait().expect("its state is known");
            assert!(ended.is_none() && began.elapsed() < PATIENCE, "no {what}: {:#?}", self.lines());
            std::thread::sleep(LOOK);
        }
    }

    /// Waits until it has written a line with `what` in it.
    ///
    /// # Panics
    /// When it does not.
    pub async fn says(&self, what: &str) {
        let began = Instant::now();
        while !self.lines().iter().any(|line| line.contains(what)) {
            assert!(began.elapsed() < PATIENCE, "not said: {what}: {:#?}", self.lines());
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Its number.
    pub fn pid(&self) -> i32 {
        Pid::from_child(&self.child).as_raw_pid()
    }

    /// What it has written so far.
    pub fn lines(&self) -> Vec<String> {
        self.lines.all()
    }

    /// Sends TERM, waits for the end; the exit code, -1 after a signal.
    ///
    /// # Panics
    /// When it does not end.
    pub async fn terminate(mut self) -> (i32, Vec<String>) {
        kill_process(Pid::from_child(&self.child), Signal::TERM).expect("it runs");
        self.ended().await
    }

    /// Waits for its end by itself.
    ///
    /// # Panics
    /// When it does not end.
    pub async fn ended(&mut self) -> (i32, Vec<String>) {
        let began = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().expect("its state is known") {
                self.readers.drain(..).for_each(|reader| drop(reader.join()));
                return (status.code().unwrap_or(-1), self.lines());
            }
            assert!(began.elapsed() < PATIENCE, "it does not end: {:#?}", self.lines());
            tokio::time::sleep(LOOK).await;
        }
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
