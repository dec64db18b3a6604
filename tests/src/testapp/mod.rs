//! A small app that does on purpose what apps do by accident: opens its port
//! late or never, exits, leaves a daemon behind. It writes down when each
//! request began and ended, so that a test can judge by the app's own clock.
//!
//! A thread a connection and nothing else: it is there within a millisecond.

mod journal;
mod options;
mod request;
mod serve;

pub use journal::{Journal, monotonic_ns, process_made_ns};
pub use options::Options;

use std::ffi::OsString;
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// Hidden first arguments of the two steps to a daemon.
const DAEMONIZE: &str = "__daemonize";
const STAY: &str = "__stay";

/// How often a file that is waited for is looked for.
const LOOK_EVERY: Duration = Duration::from_millis(1);

/// Runs the app; `born` is when its process was made, and when its first
/// instruction ran.
pub fn main(born: [u64; 2], arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let arguments: Vec<OsString> = arguments.collect();
    let outcome = match arguments.first().and_then(|first| first.to_str()) {
        Some(DAEMONIZE) => daemonize(&arguments[1..]),
        Some(STAY) => stay(&arguments[1..]),
        _ => Options::parse(arguments).and_then(|options| run(born, options)),
    };
    match outcome {
        Ok(code) => code,
        Err(error) => {
            eprintln!("testapp: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run([made, first]: [u64; 2], options: Options) -> io::Result<ExitCode> {
    let journal = Journal::open(options.log.as_deref())?;
    if options.daemon {
        start_daemon(&options)?;
    }
    if let Some(exit) = &options.exit
        && exit.unless.as_ref().is_none_or(|file| !file.exists())
    {
        thread::sleep(exit.after);
        journal.write_at(made, "exec", "-");
        journal.write("exit", "-");
        eprintln!("testapp: exits with {} as told", exit.code);
        return Ok(ExitCode::from(exit.code));
    }
    thread::sleep(options.open_after());
    while options.open_when.as_ref().is_some_and(|file| !file.exists()) {
        thread::sleep(LOOK_EVERY);
    }
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, options.port))?;
    let opened = monotonic_ns();
    journal.write_at(made, "exec", "-");
    journal.write_at(first, "main", "-");
    journal.write_at(opened, "open", &options.port.to_string());
    let app = Arc::new(serve::App { journal, work: options.work });
    for stream in listener.incoming() {
        let app = app.clone();
        // A connection that breaks off is the test's business, or nobody's.
        thread::spawn(move || app.connection(stream?));
    }
    Ok(ExitCode::SUCCESS)
}

/// Leaves a process behind that has its own session and no living parent.
fn start_daemon(options: &Options) -> io::Result<()> {
    let log = options.log.iter().map(|log| log.as_os_str());
    myself(DAEMONIZE).args(log).status().map(drop)
}

fn daemonize(arguments: &[OsString]) -> io::Result<ExitCode> {
    rustix::process::setsid()?;
    // Not waited for: that is the point.
    myself(STAY).args(arguments).spawn()?;
    Ok(ExitCode::SUCCESS)
}

fn stay(arguments: &[OsString]) -> io::Result<ExitCode> {
    Journal::open(arguments.first().map(AsRef::as_ref))?.write("daemon", "-");
    loop {
        thread::sleep(Duration::from_secs(3600));
    }
}

fn myself(argument: &str) -> Command {
    let mut command = Command::new("/proc/self/exe");
    command.arg(argument).stdin(Stdio::null()).stdout(Stdio::null());
    command
}
