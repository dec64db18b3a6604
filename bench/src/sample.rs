//! The app of cold starts: opens its port at once, notes how long that took it,
//! answers whatever is asked.

use rustix::time::{ClockId, clock_gettime};
use std::fs::OpenOptions;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::Path;

/// See the module.
pub(crate) struct App;

/// One start of it; times on the clock that all processes share.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen {
    pub(crate) pid: i32,
    made_ns: u64,
    open_ns: u64,
}

impl Seen {
    /// From the process to the open port.
    pub(crate) fn took_ns(self) -> u64 {
        self.open_ns.saturating_sub(self.made_ns)
    }
}

impl App {
    /// Serves for ever.
    pub(crate) fn run(journal: &Path, port: u16) -> anyhow::Result<()> {
        let made = made_ns();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
        let open = nanos(ClockId::Monotonic);
        let mut file = OpenOptions::new().append(true).create(true).open(journal)?;
        file.write_all(format!("{} {made} {open}\n", std::process::id()).as_bytes())?;
        for stream in listener.incoming() {
            let stream = stream?;
            std::thread::spawn(move || serve(stream));
        }
        Ok(())
    }

    /// What starts have noted.
    pub(crate) fn read(journal: &Path) -> Vec<Seen> {
        let text = std::fs::read_to_string(journal).unwrap_or_default();
        let line = |line: &str| {
            let mut words = line.split(' ');
            let pid = words.next()?.parse().ok()?;
            Some(Seen { pid, made_ns: words.next()?.parse().ok()?, open_ns: words.next()?.parse().ok()? })
        };
        text.lines().filter_map(line).collect()
    }
}

fn serve(mut stream: TcpStream) {
    let mut head = Vec::new();
    let mut piece = [0; 4096];
    while let Ok(read @ 1..) = stream.read(&mut piece) {
        head.extend_from_slice(&piece[..read]);
        if head.ends_with(b"\r\n\r\n") {
            head.clear();
            if stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").is_err() {
                return;
            }
        }
    }
}

fn nanos(clock: ClockId) -> u64 {
    let now = clock_gettime(clock);
    now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs()
}

/// When this process was made: now, without what it spent since on a processor
/// and in the queue for one. Right as long as it has not slept yet.
fn made_ns() -> u64 {
    let queued = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    let queued: u64 = queued.split(' ').nth(1).and_then(|queued| queued.parse().ok()).unwrap_or(0);
    nanos(ClockId::Monotonic).saturating_sub(nanos(ClockId::ProcessCPUTime) + queued)
}
