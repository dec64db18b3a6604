//! Answers. A path may say how long the request takes: `/work/MS` is silent
//! meanwhile, `/stream/MS` sends a piece each tenth of a second.

use super::journal::Journal;
use super::request::Head;
use std::io::{self, BufReader, Write};
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

const PIECE_EVERY: Duration = Duration::from_millis(100);

/// What all connections share.
pub(super) struct App {
    pub(super) journal: Journal,
    /// How long a request takes whose path says nothing.
    pub(super) work: Duration,
}

impl App {
    /// Serves a connection to its end.
    pub(super) fn connection(&self, mut stream: TcpStream) -> io::Result<()> {
        stream.set_nodelay(true)?;
        let mut reader = BufReader::new(stream.try_clone()?);
        while let Some(head) = Head::read(&mut reader)? {
            self.journal.write("begin", &head.id);
            let served = self.request(&head, &mut reader, &mut stream);
            if served.is_err() {
                self.journal.write("cut", &head.id);
            }
            served?;
            if head.close {
                return Ok(());
            }
        }
        Ok(())
    }

    fn request(&self, head: &Head, reader: &mut BufReader<TcpStream>, stream: &mut TcpStream) -> io::Result<()> {
        if head.expects {
            stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
        }
        let length = head.drain(reader)?;
        if let Some(time) = millis(&head.path, "/stream/") {
            return self.stream(head, time, stream);
        }
        thread::sleep(millis(&head.path, "/work/").unwrap_or(self.work));
        let body = format!("{} {} {length}\n", std::process::id(), head.id);
        let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len());
        // Before the answer goes out: after it, the next request may be here
        // already, and it would look as if both had been at once.
        self.journal.write("end", &head.id);
        stream.write_all(answer.as_bytes())
    }

    fn stream(&self, head: &Head, time: Duration, stream: &mut TcpStream) -> io::Result<()> {
        let until = Instant::now() + time;
        stream.write_all(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")?;
        while Instant::now() < until {
            stream.write_all(b"6\r\npiece\n\r\n")?;
            thread::sleep(PIECE_EVERY.min(until.saturating_duration_since(Instant::now())));
        }
        self.journal.write("end", &head.id);
        stream.write_all(b"0\r\n\r\n")
    }
}

fn millis(path: &str, prefix: &str) -> Option<Duration> {
    path.strip_prefix(prefix)?.parse().ok().map(Duration::from_millis)
}
