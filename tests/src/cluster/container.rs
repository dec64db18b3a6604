//! The sidecar in its container.

use super::network::Namespace;
use anyhow::Context;
use rustix::process::{Pid, Signal, kill_process};
use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// How it is made.
const SCRIPT: &str = include_str!("container.sh");
/// The programs that the script needs; a container has a PATH too.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
const LOOK: Duration = Duration::from_millis(2);

/// A running sidecar; killed when it is dropped, or when the thread that made
/// it ends.
pub struct Container {
    process: Child,
    output: [Option<JoinHandle<String>>; 2],
    /// Where its root is mounted, in its own mount namespace.
    _root: TempDir,
}

impl Container {
    /// Starts it with this environment; what a runtime adds by itself is there too.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start(
        binary: &Path,
        environment: &BTreeMap<String, String>,
        hostname: &str,
        network: &Namespace,
    ) -> anyhow::Result<Container> {
        let root = tempfile::tempdir()?;
        // Outside, the environment is the test's.
        let enter = network.command("unshare");
        let mut command = Command::new(enter.get_program());
        command.args(enter.get_args()).args(["--mount", "sh", "-c", SCRIPT, "container.sh"]);
        command.arg(root.path()).arg(binary.canonicalize()?);
        command.env_clear().envs(environment).env("PATH", PATH).env("HOSTNAME", hostname).env("HOME", "/");
        command.env("KUBERNETES_SERVICE_HOST", "10.96.0.1").env("KUBERNETES_SERVICE_PORT", "443");
        let mut process =
            command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().context("nsenter")?;
        let output = [reader(process.stdout.take()), reader(process.stderr.take())];
        Ok(Container { process, output, _root: root })
    }

    /// A file of /proc about it.
    pub fn proc(&self, file: &str) -> String {
        fs::read_to_string(format!("/proc/{}/{file}", self.process.id())).unwrap_or_default()
    }

    /// A line of its `status`.
    pub fn status(&self, key: &str) -> String {
        let status = self.proc("status");
        let line = status.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'));
        line.unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ")
    }

    /// Sends TERM.
    ///
    /// # Panics
    /// When it has ended.
    pub fn terminate(&self) {
        kill_process(Pid::from_child(&self.process), Signal::TERM).expect("it runs");
    }

    /// Whether it runs.
    pub fn runs(&mut self) -> bool {
        self.process.try_wait().is_ok_and(|status| status.is_none())
    }

    /// Waits for its end; the exit code, -1 after a signal or a kill at the limit.
    pub fn ended(&mut self, limit: Duration) -> i32 {
        let began = Instant::now();
        while began.elapsed() < limit {
            if let Ok(Some(status)) = self.process.try_wait() {
                return status.code().unwrap_or(-1);
            }
            thread::sleep(LOOK);
        }
        self.end();
        -1
    }

    /// Ends it; what it wrote, both streams.
    pub fn last_words(&mut self) -> String {
        self.end();
        let texts = self.output.iter_mut().filter_map(|reader| reader.take()?.join().ok());
        texts.collect()
    }

    fn end(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        self.end();
    }
}

fn reader(stream: Option<impl Read + Send + 'static>) -> Option<JoinHandle<String>> {
    let mut stream = stream?;
    Some(thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = stream.read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    }))
}
