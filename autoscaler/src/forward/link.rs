//! A websocket to another replica.

use plumbing::websocket::handshake;
use plumbing::websocket::message::{Kind, Reader, Said, Writer, code};
use std::future::pending;
use std::io;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at, sleep_until, timeout};

/// How long an address may take to connect and to switch (the reference's).
const OPEN_MAX: Duration = Duration::from_millis(500);
/// How long a message may take to be taken.
const WRITE_MAX: Duration = Duration::from_secs(3);
/// Without an answer to a ping for so long, nobody is there.
const SILENT_MAX: Duration = Duration::from_secs(10);
/// How often the other side is asked.
const PING_EVERY: Duration = SILENT_MAX.checked_div(3).expect("not divided by zero");

pub(super) struct Link {
    stream: TcpStream,
    reader: Reader,
    frames: Writer,
    /// Bytes on their way, and how many of them have been written.
    out: Vec<u8>,
    written: usize,
    /// When the other side was last heard to answer.
    heard: Instant,
    pings: Interval,
}

impl Link {
    /// To the first of the addresses that switches.
    pub(super) async fn open(addresses: &[String]) -> Result<Link, String> {
        let mut why = "it has no address".to_owned();
        for address in addresses {
            match timeout(OPEN_MAX, Link::at(address)).await {
                Ok(Ok(link)) => return Ok(link),
                Ok(Err(error)) => why = format!("{address}: {error}"),
                Err(_) => why = format!("{address}: no connection within {} ms", OPEN_MAX.as_millis()),
            }
        }
        Err(why)
    }

    async fn at(address: &str) -> Result<Link, String> {
        let mut stream = TcpStream::connect(address).await.map_err(|error| error.to_string())?;
        let _ = stream.set_nodelay(true);
        let rest = handshake::open(&mut stream, address, super::PATH).await.map_err(|error| error.to_string())?;
        let mut reader = Reader::default();
        reader.feed(&rest);
        let mut pings = interval_at(Instant::now() + PING_EVERY, PING_EVERY);
        pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (out, written, heard) = (Vec::new(), 0, Instant::now());
        Ok(Link { stream, reader, frames: Writer::default(), out, written, heard, pings })
    }

    /// Sends a message, whole.
    pub(super) async fn send(&mut self, message: &[u8]) -> Result<(), String> {
        self.frames.put(&mut self.out, Kind::Binary, message);
        let written = timeout(WRITE_MAX, async {
            while self.written < self.out.len() {
                self.write().await?;
            }
            Ok::<_, io::Error>(())
        });
        match written.await {
            Ok(done) => done.map_err(|error| error.to_string()),
            Err(_) => Err("nothing is taken there".to_owned()),
        }
    }

    /// Keeps the connection up; returns why it is lost. It may be dropped and
    /// called again at any time.
    pub(super) async fn tend(&mut self) -> String {
        loop {
            if let Err(why) = self.listen() {
                return why;
            }
            let unwritten = self.written < self.out.len();
            let silent = self.heard + SILENT_MAX;
            let done = tokio::select! {
                ready = self.stream.writable(), if unwritten => ready.and_then(|()| self.try_write()),
                ready = self.stream.readable() => ready.and_then(|()| self.try_read()),
                _ = self.pings.tick() => {
                    self.frames.put(&mut self.out, Kind::Ping, &[]);
                    Ok(())
                }
                () = sleep_until(silent) => return "it does not answer".to_owned(),
            };
            if let Err(error) = done {
                return error.to_string();
            }
        }
    }

    /// Says that it ends here, as far as that goes without waiting.
    pub(super) fn close(mut self) {
        if self.written == self.out.len() {
            self.out.clear();
            self.frames.put_close(&mut self.out, code::GOING_AWAY, "");
            let _ = self.stream.try_write(&self.out);
        }
    }

    async fn write(&mut self) -> io::Result<()> {
        self.stream.writable().await?;
        self.try_write()
    }

    fn try_write(&mut self) -> io::Result<()> {
        match self.stream.try_write(&self.out[self.written..]) {
            Ok(written) => self.written += written,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
        if self.written == self.out.len() {
            self.out.clear();
            // One long message must not stay for ever.
            self.out.shrink_to(64 << 10);
            self.written = 0;
        }
        Ok(())
    }

    fn try_read(&mut self) -> io::Result<()> {
        let mut came = [0; 4096];
        match self.stream.try_read(&mut came) {
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(read) => {
                self.reader.feed(&came[..read]);
                Ok(())
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn listen(&mut self) -> Result<(), String> {
        while let Some(said) = self.reader.said().map_err(|broken| broken.to_string())? {
            match said {
                Said::Message => {}
                Said::Ping(payload) => self.frames.put(&mut self.out, Kind::Pong, &payload),
                Said::Pong(_) => self.heard = Instant::now(),
                Said::Close { code, text } => return Err(format!("it closed the connection: {code:?} {text}")),
            }
        }
        Ok(())
    }
}

/// Tends a connection, if there is one.
pub(super) async fn tend(link: &mut Option<Link>) -> String {
    match link {
        Some(link) => link.tend().await,
        None => pending().await,
    }
}
