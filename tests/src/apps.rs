//! Apps as people write them, on the servers that people use (`tests/apps`).
//!
//! | path | what |
//! | --- | --- |
//! | `/` | `ok` |
//! | `/echo` | the body of the request |
//! | `/stream` | ten events of 50 bytes, one each 200 ms: `data: WHEN ...` |
//! | `/work/MS` | `done`, after so long |
//! | anything, as a websocket | an echo; not with gunicorn |
//! | `/bytes`, `/received` | see `asgi.py`; with uvicorn alone |

use crate::lags::tell;
use crate::program::{Lines, follow};
use rustix::process::{Pid, Signal, kill_process_group};
use std::ffi::OsString;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Events of `/stream`.
pub const EVENTS: usize = 10;

/// Interpreters are slow to start on a busy machine.
const START_MAX: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(2);
/// Debian's own first: another one does not see Debian's modules.
const PYTHONS: &[&str] = &["/usr/bin/python3", "python3"];
/// Where Debian keeps modules of Node; its own build looks there by itself.
const NODE_PATH: &str = "/usr/share/nodejs";

/// An app that runs; killed with all its children when it is dropped.
pub struct RealApp {
    child: Child,
    lines: Lines,
    /// Where it listens.
    pub address: SocketAddr,
}

impl RealApp {
    /// ASGI on uvicorn; `None` and a word about it when that is not there.
    pub fn uvicorn() -> Option<RealApp> {
        let mut command = python(&["uvicorn", "websockets"])?;
        command.args(["-m", "uvicorn", "--port", "0", "--no-access-log", "--app-dir"]).arg(folder()).arg("asgi:app");
        Some(RealApp::start(command))
    }

    /// WSGI on gunicorn; `None` and a word about it when that is not there.
    pub fn gunicorn() -> Option<RealApp> {
        let mut command = python(&["gunicorn"])?;
        command.args(["-m", "gunicorn", "--bind", "127.0.0.1:0", "--threads", "32", "--keep-alive", "75", "--chdir"]);
        command.arg(folder()).arg("wsgi:app");
        Some(RealApp::start(command))
    }

    /// Node with a framework (`express`, or `http` for none) and ws.
    pub fn node(framework: &str) -> Option<RealApp> {
        let mut command = node(&if framework == "http" { vec!["ws"] } else { vec![framework, "ws"] })?;
        command.arg(folder().join("app.js")).arg(framework);
        Some(RealApp::start(command))
    }

    /// gRPC on grpcio.
    pub fn grpc() -> Option<RealApp> {
        let mut command = python(&["grpc"])?;
        command.arg(folder().join("grpc_app.py"));
        Some(RealApp::start(command))
    }

    fn start(mut command: Command) -> RealApp {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        let mut child = command.spawn().expect("the app starts");
        let lines = Lines::default();
        follow(child.stdout.take(), &lines);
        follow(child.stderr.take(), &lines);
        let nowhere = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let mut app = RealApp { child, lines, address: nowhere };
        app.address = app.listening();
        app
    }

    /// From what it says when it listens.
    fn listening(&mut self) -> SocketAddr {
        let began = Instant::now();
        loop {
            let lines = self.lines.all();
            let found = lines.iter().find_map(|line| {
                let rest = line.split_once("http://127.0.0.1:")?.1;
                rest.split(|c: char| !c.is_ascii_digit()).next()?.parse::<u16>().ok()
            });
            if let Some(port) = found {
                return (Ipv4Addr::LOCALHOST, port).into();
            }
            let ended = self.child.try_wait().expect("its state is known");
            assert!(ended.is_none() && began.elapsed() < START_MAX, "the app does not listen: {lines:#?}");
            std::thread::sleep(LOOK);
        }
    }
}

impl Drop for RealApp {
    fn drop(&mut self) {
        let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
        let _ = self.child.wait();
    }
}

/// A program that calls the app of [`RealApp::grpc`] at `address`, as
/// `grpc_client.py` says.
pub fn grpc_client(address: SocketAddr, scenario: &str) -> Option<Command> {
    let mut command = python(&["grpc"])?;
    command.arg(folder().join("grpc_client.py")).arg(address.to_string()).arg(scenario);
    Some(command)
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("apps")
}

/// An interpreter that has all these modules.
fn python(modules: &[&str]) -> Option<Command> {
    let script = format!("import {}", modules.join(", "));
    let found = PYTHONS.iter().find(|python| {
        let mut command = Command::new(python);
        is_wanted("python3-", modules) && succeeds(command.args(["-c", &script]))
    });
    let Some(python) = found else {
        tell(&format!("SKIPPED: there is no python3 with {}", modules.join(", ")));
        return None;
    };
    let mut command = Command::new(python);
    command.env("PYTHONUNBUFFERED", "1").env("PYTHONDONTWRITEBYTECODE", "1");
    Some(command)
}

fn node(modules: &[&str]) -> Option<Command> {
    let script: String = modules.iter().map(|module| format!("require('{module}');")).collect();
    let mut path = std::env::var_os("NODE_PATH").unwrap_or_default();
    if !path.is_empty() {
        path.push(":");
    }
    path.push(OsString::from(NODE_PATH));
    let command = || {
        let mut command = Command::new("node");
        command.env("NODE_PATH", &path);
        command
    };
    if is_wanted("node-", modules) && succeeds(command().args(["-e", &script])) {
        return Some(command());
    }
    tell(&format!("SKIPPED: there is no node with {}", modules.join(", ")));
    None
}

/// False when whoever runs the tests has named one of them as to be skipped.
fn is_wanted(prefix: &str, modules: &[&str]) -> bool {
    let skipped = std::env::var("ZEROSCALE_TEST_SKIP").unwrap_or_default();
    !skipped.split(',').any(|name| name.strip_prefix(prefix).is_some_and(|module| modules.contains(&module)))
}

fn succeeds(command: &mut Command) -> bool {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}
