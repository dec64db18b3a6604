//! One running `zeroscale run`, in a world of its own: its folder, its admin
//! socket, its mark.

use super::processes::{self, MARK, Process};
use super::status::Status;
use super::{PATIENCE, binaries, until};
use anyhow::{Context, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};
use std::ffi::OsString;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tokio::sync::mpsc;

/// The one line on stdout that tells where requests go.
const LISTENING: &str = "zeroscale: listening on http://";

/// An instance. Dropped, it is killed, with all that came from it.
pub struct Instance {
    /// Where it takes requests.
    pub address: SocketAddr,
    child: Child,
    mark: String,
    folder: TempDir,
}

/// How an instance ended, or that it never began.
#[derive(Debug)]
pub struct Ended {
    /// Its exit code; `None` = killed.
    pub code: Option<i32>,
    /// What it wrote on stderr.
    pub stderr: String,
}

impl Instance {
    /// Starts `zeroscale run FLAGS -- COMMAND` on a free port, and waits for
    /// its line.
    ///
    /// # Errors
    /// When it ends instead, with what it said.
    pub async fn start(flags: &str, command: &[OsString]) -> anyhow::Result<Instance> {
        Instance::listen(flags, command, "127.0.0.1:0").await
    }

    /// As [`Instance::start`], at an address.
    ///
    /// # Errors
    /// When it ends instead, with what it said.
    pub async fn listen(flags: &str, command: &[OsString], address: &str) -> anyhow::Result<Instance> {
        let folder = tempfile::tempdir()?;
        let mark = new_mark();
        let flags = format!("run --listen {address} {flags} --");
        let flags = flags.split_ascii_whitespace().map(OsString::from);
        let mut child = spawn(flags.chain(command.iter().cloned()), folder.path(), &mark)?;
        let mut lines = lines_of(&mut child)?;
        let line = tokio::time::timeout(PATIENCE, lines.recv()).await;
        let address = match line.ok().flatten().as_deref().and_then(|line| line.strip_prefix(LISTENING)) {
            Some(address) => address.parse().with_context(|| format!("{address} is no address"))?,
            None => {
                let _ = child.kill();
                bail!("zeroscale did not begin: {:?}, {}", child.wait()?, stderr_of(folder.path()));
            }
        };
        Ok(Instance { address, child, mark, folder })
    }

    /// Its process number.
    pub fn pid(&self) -> i32 {
        self.child.id().cast_signed()
    }

    /// All that came from it and runs, itself and its guard too.
    pub fn processes(&self) -> Vec<Process> {
        processes::marked(&self.mark)
    }

    /// Its guard, if one runs.
    pub fn guard(&self) -> Option<i32> {
        let is_guard = |process: &Process| process.arguments.get(1).is_some_and(|first| first == "__guard");
        self.processes().into_iter().find(is_guard).map(|guard| guard.pid)
    }

    /// What runs for the service: all but itself and its guard.
    pub fn apps(&self) -> Vec<Process> {
        let guard = self.guard();
        let is_app = |process: &Process| process.pid != self.pid() && Some(process.pid) != guard;
        self.processes().into_iter().filter(is_app).collect()
    }

    /// Its own folder, for files of the test.
    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// What it says of itself.
    ///
    /// # Errors
    /// When it does not answer.
    pub async fn status(&self) -> anyhow::Result<Status> {
        let socket = self.file("zeroscale").join(format!("{}.sock", self.pid()));
        Status::ask(&socket).await
    }

    /// Waits until it says so of itself; how long that took.
    ///
    /// # Errors
    /// When that is not soon, or it does not answer.
    pub async fn until_status(&self, what: &str, mut holds: impl FnMut(&Status) -> bool) -> anyhow::Result<Duration> {
        until(what, async || self.status().await.is_ok_and(|status| holds(&status))).await
    }

    /// Waits until the service is at zero: no pod, no process, none wanted.
    ///
    /// # Errors
    /// When that is not soon.
    pub async fn until_zero(&self) -> anyhow::Result<Duration> {
        let waited = self.until_status("no pod is left", |status| status.is_at_zero()).await;
        let took = waited.with_context(|| format!("stderr of zeroscale:\n{}", stderr_of(self.folder.path())))?;
        Ok(took + until("no process is left", async || self.apps().is_empty()).await?)
    }

    /// Sends it a signal.
    ///
    /// # Errors
    /// When it is not there any more.
    pub fn signal(&self, signal: Signal) -> anyhow::Result<()> {
        kill(self.pid(), signal)
    }

    /// Waits for its end.
    ///
    /// # Errors
    /// When that is not soon.
    pub async fn ended(&mut self) -> anyhow::Result<Ended> {
        let status = wait_for(&mut self.child).await?;
        Ok(Ended { code: status.code(), stderr: stderr_of(self.folder.path()) })
    }

    /// Waits until nothing runs that came from it; how long that took.
    ///
    /// # Errors
    /// Naming what is left.
    pub async fn until_nothing_is_left(&self) -> anyhow::Result<Duration> {
        let waited = until("nothing is left", async || self.processes().is_empty()).await;
        waited.with_context(|| format!("left: {:?}", self.processes()))
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("--- stderr of zeroscale {}\n{}", self.pid(), stderr_of(self.folder.path()));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
        for process in self.processes() {
            let _ = kill(process.pid, Signal::KILL);
        }
    }
}

/// Runs `zeroscale` with a command line that should end by itself.
///
/// # Errors
/// When it does not end.
pub async fn run_to_end(arguments: &[&str]) -> anyhow::Result<Ended> {
    let folder = tempfile::tempdir()?;
    let mark = new_mark();
    let mut child = spawn(arguments.iter().map(OsString::from), folder.path(), &mark)?;
    let ended = wait_for(&mut child).await;
    let _ = child.kill();
    let left = processes::marked(&mark);
    ensure!(left.is_empty(), "left running: {left:?}");
    Ok(Ended { code: ended?.code(), stderr: stderr_of(folder.path()) })
}

/// Sends a signal to any process of a test.
///
/// # Errors
/// When it is not there.
pub fn kill(pid: i32, signal: Signal) -> anyhow::Result<()> {
    let pid = Pid::from_raw(pid).context("0 is no process")?;
    kill_process(pid, signal).with_context(|| format!("signal to {pid:?}"))
}

fn spawn(arguments: impl Iterator<Item = OsString>, folder: &Path, mark: &str) -> anyhow::Result<Child> {
    let child = Command::new(binaries::zeroscale()?)
        .args(arguments)
        .env("XDG_RUNTIME_DIR", folder)
        .env(MARK, mark)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(File::create(folder.join("stderr"))?)
        .spawn()?;
    Ok(child)
}

fn stderr_of(folder: &Path) -> String {
    std::fs::read_to_string(folder.join("stderr")).unwrap_or_default()
}

fn lines_of(child: &mut Child) -> anyhow::Result<mpsc::UnboundedReceiver<String>> {
    let stdout = child.stdout.take().context("stdout is a pipe")?;
    let (send, lines) = mpsc::unbounded_channel();
    // Read to its end, so that nobody blocks on a full pipe.
    std::thread::spawn(move || {
        BufReader::new(stdout).lines().map_while(Result::ok).for_each(|line| drop(send.send(line)));
    });
    Ok(lines)
}

async fn wait_for(child: &mut Child) -> anyhow::Result<ExitStatus> {
    let began = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        ensure!(began.elapsed() < PATIENCE, "zeroscale {} does not end", child.id());
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

fn new_mark() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

/// The command line of the test app, and its journal.
pub struct TestApp {
    /// The whole command line.
    pub command: Vec<OsString>,
    journal: tempfile::NamedTempFile,
}

impl TestApp {
    /// With these options (see `tests::testapp`).
    ///
    /// # Errors
    /// When the app is not there.
    pub fn new(options: &str) -> anyhow::Result<TestApp> {
        TestApp::at(binaries::testapp()?, options)
    }

    /// As [`TestApp::new`], with a program that may not be there.
    ///
    /// # Errors
    /// When there is no place for its journal.
    pub fn at(program: PathBuf, options: &str) -> anyhow::Result<TestApp> {
        let journal = tempfile::NamedTempFile::new()?;
        let mut command = vec![program.into_os_string(), "--log".into(), journal.path().into()];
        command.extend(options.split_ascii_whitespace().map(OsString::from));
        Ok(TestApp { command, journal })
    }

    /// One that does not hear TERM, and whose children do not either.
    ///
    /// # Errors
    /// When the app is not there.
    pub fn deaf(options: &str) -> anyhow::Result<TestApp> {
        let mut app = TestApp::new(options)?;
        // What is ignored stays so over exec.
        let shell = ["sh", "-c", "trap '' TERM; exec \"$@\"", "sh"].map(OsString::from);
        app.command.splice(0..0, shell);
        Ok(app)
    }

    /// What the app wrote down so far.
    pub fn sightings(&self) -> super::sightings::Sightings {
        super::sightings::Sightings::read(self.journal.path())
    }
}
