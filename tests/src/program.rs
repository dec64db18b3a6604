//! The sidecar as a process of its own: the real binary, on ports that the
//! system chooses.

use crate::floor::binaries;
use crate::replay::cases::env::BASE;
use crate::rig::send;
use proto::stats::Stat;
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader, Read};
use std::net::{Ipv4Addr, SocketAddr};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::io::AsyncReadExt;

/// How long anything may take before a test gives up on it.
const PATIENCE: Duration = Duration::from_secs(20);
/// What the autoscaler reads of a stat.
const STAT_BYTES_MAX: usize = 336;
/// How often something is looked for.
const LOOK: Duration = Duration::from_millis(1);

/// Beside what a stock controller passes: ports that the system chooses.
const FREE_PORTS: &[(&str, &str)] = &[
    ("QUEUE_SERVING_PORT", "0"),
    ("QUEUE_SERVING_TLS_PORT", "0"),
    ("SERVING_READINESS_PROBE", r#"{"tcpSocket":{"host":"127.0.0.1"},"successThreshold":1}"#),
    ("ZEROSCALE_BIND", "127.0.0.1"),
    ("ZEROSCALE_ADMIN_PORT", "0"),
    ("ZEROSCALE_METRICS_PORT", "0"),
];

/// Lines that a process has written. Clones share them.
#[derive(Clone, Default)]
pub(crate) struct Lines(Arc<Mutex<Vec<String>>>);

impl Lines {
    /// What there is so far.
    pub(crate) fn all(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// A sidecar that runs; killed when it is dropped.
pub struct Program {
    child: Child,
    lines: Lines,
    readers: Vec<JoinHandle<()>>,
    /// Its main port.
    pub main: SocketAddr,
    /// The stop hook's.
    pub admin: SocketAddr,
    /// The scraped one.
    pub metrics: SocketAddr,
}

impl Program {
    /// In front of `app`, with changes to the stock environment; ready to be
    /// connected to.
    ///
    /// # Panics
    /// When it does not come up.
    pub fn start(app: SocketAddr, changes: &[(&str, &str)]) -> Program {
        Program::start_under(&[], app, changes)
    }

    /// The same under another program, which is given the sidecar's path as its
    /// last argument.
    ///
    /// # Panics
    /// When it does not come up.
    pub fn start_under(wrapper: &[&str], app: SocketAddr, changes: &[(&str, &str)]) -> Program {
        let mut child = spawn(wrapper, app, changes, &[]);
        let lines = Lines::default();
        let readers = vec![follow(child.stdout.take(), &lines), follow(child.stderr.take(), &lines)];
        let nowhere = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let mut program = Program { child, lines, readers, main: nowhere, admin: nowhere, metrics: nowhere };
        program.main = program.port("main");
        program.admin = program.port("admin");
        program.metrics = program.port("metrics");
        program
    }

    /// The port of one of its servers, from its log.
    ///
    /// # Panics
    /// When it has ended, or there is no such server.
    pub fn port(&mut self, server: &str) -> SocketAddr {
        let mark = format!("Starting http server {server}:");
        let began = Instant::now();
        loop {
            let found = self.lines().iter().find_map(|line| {
                let digits = line.split_once(&mark)?.1;
                digits[..digits.find(|c: char| !c.is_ascii_digit())?].parse::<u16>().ok()
            });
            if let Some(port) = found {
                return (Ipv4Addr::LOCALHOST, port).into();
            }
            let ended = self.child.try_wait().expect("its state is known");
            assert!(ended.is_none() && began.elapsed() < PATIENCE, "no {server} server: {:#?}", self.lines());
            std::thread::sleep(LOOK);
        }
    }

    /// What it has written so far, to both streams.
    pub fn lines(&self) -> Vec<String> {
        self.lines.all()
    }

    /// Its stat, by the raw bytes that the autoscaler gets.
    ///
    /// # Panics
    /// When there is none that the autoscaler would take.
    pub async fn stat(&self) -> Stat {
        let mut stream = send(self.metrics, "GET /metrics HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n").await;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await.expect("an answer");
        let at = answer.windows(4).position(|window| window == b"\r\n\r\n").expect("a head");
        proto::decode(&answer[at + 4..], STAT_BYTES_MAX).expect("a stat that the autoscaler would take")
    }

    /// Waits for a stat of which something holds.
    ///
    /// # Panics
    /// When none comes.
    pub async fn stat_with(&self, what: &str, holds: impl Fn(&Stat) -> bool) -> Stat {
        let began = Instant::now();
        loop {
            let stat = self.stat().await;
            if holds(&stat) {
                return stat;
            }
            assert!(began.elapsed() < PATIENCE, "{what}: {stat:?}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Its number.
    pub fn pid(&self) -> i32 {
        Pid::from_child(&self.child).as_raw_pid()
    }

    /// How often its threads have gone to sleep by themselves.
    ///
    /// # Panics
    /// When it has ended.
    pub fn sleeps(&self) -> u64 {
        let of = |task: std::fs::DirEntry| -> u64 {
            let status = std::fs::read_to_string(task.path().join("status")).unwrap_or_default();
            let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
            line.map_or(0, |count| count.trim().parse().unwrap_or(0))
        };
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.child.id())).expect("it runs");
        tasks.flatten().map(of).sum()
    }

    /// Sends TERM.
    ///
    /// # Panics
    /// When it has ended.
    pub fn terminate(&self) {
        kill_process(Pid::from_child(&self.child), Signal::TERM).expect("it runs");
    }

    /// Stops it where it is, as a machine that is too busy does.
    ///
    /// # Panics
    /// When it has ended.
    pub fn freeze(&self) {
        kill_process(Pid::from_child(&self.child), Signal::STOP).expect("it runs");
    }

    /// Lets it go on.
    ///
    /// # Panics
    /// When it has ended.
    pub fn thaw(&self) {
        kill_process(Pid::from_child(&self.child), Signal::CONT).expect("it runs");
    }

    /// True while it runs.
    pub fn is_running(&mut self) -> bool {
        self.child.try_wait().is_ok_and(|status| status.is_none())
    }

    /// Waits for its end; the exit code, -1 after a signal.
    ///
    /// # Panics
    /// When it does not end.
    pub async fn ended(&mut self) -> i32 {
        self.ended_within(PATIENCE).await
    }

    /// The same, for an end that may take longer.
    ///
    /// # Panics
    /// When it does not end.
    pub async fn ended_within(&mut self, patience: Duration) -> i32 {
        let began = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().expect("its state is known") {
                self.readers.drain(..).for_each(|reader| drop(reader.join()));
                return status.code().unwrap_or(-1);
            }
            assert!(began.elapsed() < patience, "it does not end: {:#?}", self.lines());
            tokio::time::sleep(LOOK).await;
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs it to its end, with changes to the stock environment and without the
/// `removed` variables: exit code, and the lines on standard error.
///
/// # Panics
/// When it cannot be run.
pub fn run(changes: &[(&str, &str)], removed: &[&str]) -> (i32, Vec<String>) {
    let child = spawn(&[], (Ipv4Addr::LOCALHOST, 1).into(), changes, removed);
    let output = child.wait_with_output().expect("it ends");
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.code().unwrap_or(-1), text.lines().map(str::to_owned).collect())
}

fn spawn(wrapper: &[&str], app: SocketAddr, changes: &[(&str, &str)], removed: &[&str]) -> Child {
    let binary = binaries::queue_proxy().expect("the binary");
    let mut command = match wrapper {
        [] => Command::new(binary),
        [program, arguments @ ..] => {
            let mut command = Command::new(program);
            command.args(arguments).arg(binary);
            command
        }
    };
    command.env_clear().envs(BASE.iter().chain(FREE_PORTS).copied());
    command.env("USER_PORT", app.port().to_string()).env("ZEROSCALE_APP_ADDR", app.ip().to_string());
    command.envs(changes.iter().copied());
    for name in removed {
        command.env_remove(name);
    }
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts")
}

/// Takes down what comes, on a thread that ends with the stream.
pub(crate) fn follow(stream: Option<impl Read + Send + 'static>, into: &Lines) -> JoinHandle<()> {
    let (stream, into) = (stream.expect("a pipe"), into.clone());
    std::thread::spawn(move || {
        for line in BufReader::new(stream).lines().map_while(Result::ok) {
            into.0.lock().unwrap_or_else(PoisonError::into_inner).push(line);
        }
    })
}
