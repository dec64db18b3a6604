//! Programs that are started, bound to a processor, and ended.

use anyhow::{Context, bail, ensure};
use rustix::process::{Pid, Resource, Rlimit, Signal, getrlimit, kill_process, setpriority_process, setrlimit};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::fs::File;
use std::io::Read;
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The processor of clients and the app.
pub(crate) const CLIENTS: usize = 0;
/// The processor of the proxy.
pub(crate) const PROXY: usize = 1;

const PATIENCE: Duration = Duration::from_secs(20);
const LOOK: Duration = Duration::from_millis(2);

/// Ahead of what else runs on the machine: figures are of the proxies, not of
/// who is in their way.
const NICENESS: i32 = -10;

/// What this process and all that it starts are given, as far as it is allowed:
/// descriptors, and a place in front.
pub(crate) fn prepare() {
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
    let _ = setpriority_process(None, NICENESS);
}

/// One that runs; killed when it is dropped.
pub(crate) struct Process {
    child: Child,
    name: String,
    log: PathBuf,
}

impl Process {
    /// Starts it, on one processor or on any; what it says goes to `NAME.log` in `folder`.
    pub(crate) fn start(
        name: &str,
        command: &mut Command,
        processor: Option<usize>,
        folder: &Path,
    ) -> anyhow::Result<Process> {
        let log = folder.join(format!("{name}.log"));
        let file = File::create(&log)?;
        command.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file);
        let child = match processor {
            Some(processor) => on(processor, || command.spawn()),
            None => command.spawn(),
        }
        .with_context(|| format!("starting {name}"))?;
        Ok(Process { child, name: name.to_owned(), log })
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Its number, and those of the processes that it has started.
    pub(crate) fn family(&self) -> Vec<u32> {
        let mut all = vec![self.id()];
        let mut next = 0;
        while let Some(parent) = all.get(next).copied() {
            next += 1;
            let children = std::fs::read_to_string(format!("/proc/{parent}/task/{parent}/children"));
            all.extend(children.unwrap_or_default().split_ascii_whitespace().filter_map(|id| id.parse::<u32>().ok()));
        }
        all
    }

    /// Waits until it takes connections there.
    pub(crate) fn listens(&mut self, at: SocketAddr) -> anyhow::Result<()> {
        let began = Instant::now();
        while TcpStream::connect(at).is_err() {
            if let Some(status) = self.child.try_wait()? {
                bail!("{} ended with {status}: {}", self.name, self.said());
            }
            ensure!(began.elapsed() < PATIENCE, "{} does not listen at {at}: {}", self.name, self.said());
            std::thread::sleep(LOOK);
        }
        Ok(())
    }

    /// False when it has ended.
    pub(crate) fn is_running(&mut self) -> bool {
        self.child.try_wait().is_ok_and(|status| status.is_none())
    }

    /// The end of its log.
    pub(crate) fn said(&self) -> String {
        let text = std::fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(5)..].join(" | ")
    }

    /// Asks it to end, and waits for that.
    pub(crate) fn interrupt(mut self) -> anyhow::Result<()> {
        kill_process(Pid::from_child(&self.child), Signal::INT)?;
        self.child.wait()?;
        Ok(())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // A worker whose master is killed goes on listening.
        for id in self.family() {
            let id = i32::try_from(id).ok().and_then(Pid::from_raw);
            let _ = id.map(|id| kill_process(id, Signal::KILL));
        }
        let _ = self.child.wait();
    }
}

/// Waits until nobody listens there any more.
pub(crate) fn is_free(at: SocketAddr) -> anyhow::Result<()> {
    let began = Instant::now();
    while TcpStream::connect(at).is_ok() {
        ensure!(began.elapsed() < PATIENCE, "somebody listens at {at}");
        std::thread::sleep(LOOK);
    }
    Ok(())
}

/// Runs a program to its end on one processor; what it wrote.
pub(crate) fn output(command: &mut Command, processor: usize, at_most: Duration) -> anyhow::Result<String> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let name = command.get_program().to_string_lossy().into_owned();
    let mut child = on(processor, || command.spawn()).with_context(|| format!("starting {name}"))?;
    let mut stdout = child.stdout.take().context("a pipe")?;
    let reader = std::thread::spawn(move || {
        let mut text = String::new();
        let _ = stdout.read_to_string(&mut text);
        text
    });
    let began = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if began.elapsed() > at_most {
            child.kill()?;
            child.wait()?;
            bail!("{name} does not end");
        }
        std::thread::sleep(LOOK);
    };
    let text = reader.join().unwrap_or_default();
    if !status.success() {
        let mut error = String::new();
        let _ = child.stderr.take().map(|mut stderr| stderr.read_to_string(&mut error));
        bail!("{name} ended with {status}: {} {}", error.trim(), text.trim());
    }
    Ok(text)
}

/// What is started within is bound to this processor, if there is more than one.
fn on<T>(processor: usize, start: impl FnOnce() -> T) -> T {
    let Ok(mine) = sched_getaffinity(None) else { return start() };
    let mut only = CpuSet::new();
    only.set(processor);
    let bound = mine.is_set(processor) && sched_setaffinity(None, &only).is_ok();
    let started = start();
    if bound {
        let _ = sched_setaffinity(None, &mine);
    }
    started
}

/// Where a program is, if it is installed.
pub(crate) fn find(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let folders = std::env::split_paths(&path).chain(["/usr/sbin", "/usr/local/sbin"].map(PathBuf::from));
    folders.map(|folder| folder.join(name)).find(|file| file.is_file())
}
