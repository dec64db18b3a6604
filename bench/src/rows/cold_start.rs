//! What a start from zero costs on the local floor beside the app's own start,
//! which is the time from its exec to its open port.

use crate::book::Measure;
use crate::crowd::{self, ask};
use crate::peers::{Peer, local, myself, ours_binary};
use crate::process::Process;
use crate::sample::{App, Seen};
use crate::session::Session;
use anyhow::{Context, ensure};
use rustix::process::{Pid, test_kill_process};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

/// A round is one start; its median and its 99th of a hundred are the goals'.
pub(crate) const BEYOND: Measure = ("beyond the app's own start", "ms");
pub(crate) const BEYOND_P99: Measure = ("beyond the app's own start, p99", "ms");
const APP: Measure = ("the app's own start", "ms");

/// Instances that wake while others fall asleep, which takes the shortest
/// window of 6 s.
const INSTANCES: u16 = 10;
const PATIENCE: Duration = Duration::from_secs(30);

pub(super) fn run(session: &mut Session) -> anyhow::Result<()> {
    let zeroscale = ours_binary("zeroscale").context("`zeroscale` is not in ZEROSCALE_BIN_DIR")?;
    let cycles = if session.options.quick { 1 } else { 10 };
    let mut instances = Vec::new();
    for number in 0..INSTANCES {
        instances.push(Instance::start(&zeroscale, number, session.folder())?);
    }
    let mut all = Vec::new();
    for _ in 0..cycles {
        for instance in &instances {
            let (beyond, app) = instance.wake()?;
            session.book.add("cold-start", BEYOND, Peer::Local, all.len(), beyond);
            session.book.add("cold-start", APP, Peer::Local, all.len(), app);
            all.push(beyond);
        }
    }
    all.sort_by(f64::total_cmp);
    if let Some(p99) = all.get((all.len() * 99).div_ceil(100).saturating_sub(1)) {
        session.book.add("cold-start", BEYOND_P99, Peer::Local, 0, *p99);
    }
    Ok(())
}

struct Instance {
    _process: Process,
    front: SocketAddr,
    journal: PathBuf,
}

impl Instance {
    fn start(zeroscale: &Path, number: u16, folder: &Path) -> anyhow::Result<Instance> {
        let front = local(9300 + number);
        let journal = folder.join(format!("journal-{number}"));
        let mut command = Command::new(zeroscale);
        command.args(["run", "--window", "6s", "--log-level", "error", "--listen", &front.to_string(), "--"]);
        command.arg(myself()?).arg("app").arg(&journal).arg("{port}");
        let mut process = Process::start(&format!("zeroscale-{number}"), &mut command, None, folder)?;
        process.listens(front)?;
        Ok(Instance { _process: process, front, journal })
    }

    /// One start: what it took beyond the app's own, and that, in milliseconds.
    fn wake(&self) -> anyhow::Result<(f64, f64)> {
        let before = self.seen();
        if let Some(last) = before.last() {
            let began = Instant::now();
            let pid = Pid::from_raw(last.pid).context("a number of a process")?;
            while test_kill_process(pid).is_ok() {
                ensure!(began.elapsed() < PATIENCE, "it does not fall asleep");
                thread::sleep(Duration::from_millis(10));
            }
            // Zero is reached when the order has been carried out.
            thread::sleep(Duration::from_millis(300));
        }
        let mut stream = crowd::connected(self.front, 0)?;
        let began = Instant::now();
        ask(&mut stream, "/")?;
        let whole = began.elapsed();
        let seen = self.seen();
        ensure!(seen.len() == before.len() + 1, "one start was expected: {seen:?}");
        let app = Duration::from_nanos(seen.last().context("a start")?.took_ns());
        let beyond = whole.saturating_sub(app);
        Ok((beyond.as_secs_f64() * 1e3, app.as_secs_f64() * 1e3))
    }

    fn seen(&self) -> Vec<Seen> {
        App::read(&self.journal)
    }
}
