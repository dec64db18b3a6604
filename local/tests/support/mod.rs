//! The real binary, in a world of its own: its runtime folder, and a mark in
//! its environment by which all its processes are found.
#![allow(dead_code, unreachable_pub, reason = "each test file uses a part of it")]

use std::io::{BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

pub const PROGRAM: &str = env!("CARGO_BIN_EXE_zeroscale");
/// Nothing in these tests takes this long unless it is broken.
pub const DEADLINE: Duration = Duration::from_secs(90);
const MARK: &str = "ZEROSCALE_TEST_WORLD";

/// A runtime folder, and what was started with it.
pub struct World {
    folder: TempDir,
}

impl World {
    pub fn new() -> World {
        World { folder: tempfile::tempdir().unwrap() }
    }

    /// `zeroscale` with these arguments, not started yet.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(PROGRAM);
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.env("XDG_RUNTIME_DIR", self.folder.path()).env(MARK, self.folder.path());
        command
    }

    /// Where the admin sockets are.
    pub fn sockets(&self) -> PathBuf {
        self.folder.path().join("zeroscale")
    }

    /// The command lines of all processes of this world.
    pub fn processes(&self) -> Vec<String> {
        let mark = format!("{MARK}={}", self.folder.path().display());
        let entries = std::fs::read_dir("/proc").unwrap().filter_map(Result::ok);
        let marked = entries.filter_map(|entry| {
            let environment = std::fs::read(entry.path().join("environ")).ok()?;
            environment.split(|byte| *byte == 0).any(|line| line == mark.as_bytes()).then_some(())?;
            let words = std::fs::read(entry.path().join("cmdline")).ok()?;
            Some(String::from_utf8_lossy(&words).replace('\0', " "))
        });
        marked.collect()
    }

    /// Fails when a process is left after a moment.
    pub fn assert_no_process(&self) {
        until("all processes are gone", || self.processes().is_empty());
    }
}

/// `zeroscale run` of the sample app, and where it listens.
pub struct Running {
    pub child: Child,
    pub address: String,
    pub socket: PathBuf,
}

/// Starts one.
pub fn run(world: &World, name: &str) -> Running {
    let arguments = ["run", "--listen", "127.0.0.1:0", "--name", name, "--", PROGRAM, "__sample-app"];
    let mut child = world.command(&arguments).spawn().unwrap();
    let mut line = String::new();
    // The reader may hold bytes back only if there were more lines; there are none.
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    let address = line.trim().strip_prefix("zeroscale: listening on http://").unwrap_or_else(|| panic!("{line:?}"));
    let (address, socket) = (address.to_owned(), world.sockets().join(format!("{}.sock", child.id())));
    Running { child, address, socket }
}

/// Waits for a claim to be true.
pub fn until(claim: &str, mut holds: impl FnMut() -> bool) {
    let limit = Instant::now() + Duration::from_secs(20);
    while !holds() {
        assert!(Instant::now() < limit, "not so in 20 s: {claim}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Waits for the end; kills what does not end.
pub fn finish(mut child: Child) -> (ExitStatus, String, String) {
    let readers = (drain(child.stdout.take()), drain(child.stderr.take()));
    let limit = Instant::now() + DEADLINE;
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if Instant::now() > limit {
            child.kill().unwrap();
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    (status, readers.0.join().unwrap(), readers.1.join().unwrap())
}

fn drain(stream: Option<impl Read + Send + 'static>) -> std::thread::JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut stream) = stream {
            stream.read_to_end(&mut bytes).unwrap();
        }
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

/// As Ctrl-C or `kill` does.
pub fn signal(child: &Child, signal: rustix::process::Signal) {
    rustix::process::kill_process(rustix::process::Pid::from_child(child), signal).unwrap();
}

/// Asks `GET path`, and returns status, head and body as they came.
pub fn get(mut stream: impl Read + Write, method: &str, path: &str) -> (u16, String) {
    write!(stream, "{method} {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let code = answer.split(' ').nth(1).and_then(|code| code.parse().ok());
    (code.unwrap_or_else(|| panic!("no answer: {answer:?}")), answer)
}
