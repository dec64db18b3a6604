//! Small apps in Python, and what is left of them.

use super::eventually;
use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::LazyLock;

/// The interpreter itself: wrappers around it would be slow and would fork.
static PYTHON: LazyLock<OsString> = LazyLock::new(|| {
    let found = Command::new("python3").args(["-c", "import sys; print(sys.executable)"]).output();
    let found = found.expect("these tests need python3").stdout;
    String::from_utf8(found).unwrap().trim().into()
});

/// What all apps may use. `{port}` is filled in by the platform.
const PRELUDE: &str = r#"
import os, signal, socket, sys, time

def say(text):
    print(text, flush=True)

def note_pid(file):
    new = "%s.%d" % (file, os.getpid())
    with open(new, "w") as out:
        out.write(str(os.getpid()))
    os.rename(new, file)

def listen():
    server = socket.socket()
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    server.bind(("127.0.0.1", int(sys.argv[1])))
    server.listen(64)
    return server

def serve(server):
    while True:
        connection, _ = server.accept()
        connection.close()

def on_term(action):
    signal.signal(signal.SIGTERM, action)

def daemon(file):
    """A process with a session of its own and no parent, which ignores TERM."""
    if os.fork() == 0:
        os.setsid()
        if os.fork():
            os._exit(0)
        on_term(signal.SIG_IGN)
        note_pid(file)
        while True:
            time.sleep(1000)
    while not os.path.exists(file):
        time.sleep(0.002)
"#;

/// A command that runs this text as an app.
pub fn python(text: &str) -> Vec<OsString> {
    let flags = ["-S", "-E", "-c"].map(OsString::from);
    let mut command = vec![PYTHON.clone()];
    command.extend(flags);
    command.push(format!("{PRELUDE}\n{text}").into());
    command.push("{port}".into());
    command
}

/// An app that listens and does nothing else.
pub fn plain() -> Vec<OsString> {
    python("serve(listen())")
}

/// The process id in a file, once it is there.
pub async fn pid_in(file: &Path) -> i32 {
    let read = || fs::read_to_string(file).ok().and_then(|text| text.parse().ok());
    eventually(&format!("a pid in {}", file.display()), || read().is_some()).await;
    read().unwrap()
}

/// True while a process runs; a zombie does not.
pub fn runs(pid: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit_once(") ").map(|(_, rest)| rest.starts_with(['Z', 'X']));
    state == Some(false)
}

/// True while there is an entry of it, be it a zombie.
pub fn exists(pid: i32) -> bool {
    fs::exists(format!("/proc/{pid}")).unwrap_or(false)
}

/// Waits until nothing is left of these processes, not even zombies.
pub async fn until_gone(pids: &[i32]) {
    let gone = || !pids.iter().any(|pid| exists(*pid));
    eventually(&format!("the end of processes {pids:?}"), gone).await;
}

/// Processes whose parent is `pid`.
pub fn children(pid: u32) -> Vec<i32> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    pids.filter(|child| parent_of(*child) == Some(pid.cast_signed())).collect()
}

fn parent_of(pid: i32) -> Option<i32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse().ok()
}

/// Sends a signal.
pub fn signal(pid: i32, name: &str) {
    let status = Command::new("kill").args([&format!("-{name}"), "--", &pid.to_string()]).status();
    assert!(status.unwrap().success());
}
