//! One connection, from its handshake to its end.

use super::Link;
use plumbing::clock;
use plumbing::shutdown::Shutdown;
use plumbing::websocket::message::{Kind, Reader, Said, Writer, code};
use policy::compat::Compat;
use policy::stat::StatBatch;
use proto::stats::WireStatMessages;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at, sleep_until, timeout};

/// Without an answer to a ping for so long, nobody is there.
const SILENT_MAX: Duration = Duration::from_secs(10);
/// How often the other side is asked.
const PING_EVERY: Duration = SILENT_MAX.checked_div(3).expect("not divided by zero");
/// Put together for one write at most; a single batch may be longer.
const WRITE_BYTES: usize = 64 << 10;
/// A report that waited for longer says when it was made: the receiver would
/// take it for its own second otherwise, and add it to what is in there.
const LATE: Duration = Duration::from_secs(1);
/// How long the end may take, with what there is to send.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// How a connection ended.
pub(super) enum Ended {
    /// It was time.
    Done,
    /// Why it was not.
    Lost(String),
}

pub(super) struct Connection {
    read: OwnedReadHalf,
    write: OwnedWriteHalf,
    reader: Reader,
    frames: Writer,
    compat: Compat,
    /// Bytes on their way, and how many of them have been written.
    out: Vec<u8>,
    written: usize,
    /// When the other side was last heard to answer.
    heard: Instant,
    pings: Interval,
    /// The next ping's number.
    next_ping: u64,
    /// The last one that was answered, plus one.
    answered: u64,
    /// Pokes, each with the ping whose answer shows that it has arrived.
    unconfirmed: Vec<(u64, StatBatch)>,
}

enum Step {
    Continue,
    Over(Ended),
}

impl Connection {
    pub(super) fn new(stream: TcpStream, rest: Vec<u8>, compat: Compat) -> Connection {
        let (read, write) = stream.into_split();
        let mut reader = Reader::default();
        reader.feed(&rest);
        let mut pings = interval_at(Instant::now() + PING_EVERY, PING_EVERY);
        pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Connection {
            read,
            write,
            reader,
            frames: Writer::default(),
            compat,
            out: Vec::new(),
            written: 0,
            heard: Instant::now(),
            pings,
            next_ping: 0,
            answered: 0,
            unconfirmed: Vec::new(),
        }
    }

    /// Sends what comes until it is time to end, or the connection fails. What
    /// may not have arrived is in the backlog then.
    pub(super) async fn carry(mut self, link: &mut Link, shutdown: &Shutdown) -> Ended {
        let ended = loop {
            if let Err(why) = self.listen() {
                break Ended::Lost(why);
            }
            self.fill(link);
            match self.step(link, shutdown).await {
                Step::Continue => {}
                Step::Over(ended) => break ended,
            }
        };
        let unconfirmed = std::mem::take(&mut self.unconfirmed).into_iter().map(|(_, poke)| poke).collect();
        match ended {
            Ended::Done if self.compat == Compat::Better => self.say_goodbye(link).await,
            Ended::Done => {}
            Ended::Lost(_) => link.backlog.put_back(unconfirmed),
        }
        ended
    }

    /// Waits for the next thing to happen.
    async fn step(&mut self, link: &mut Link, shutdown: &Shutdown) -> Step {
        let mut came = [0; 4096];
        let pending = &self.out[self.written..];
        tokio::select! {
            // What can go goes before more is taken in, and all before the end.
            biased;
            written = self.write.write(pending), if !pending.is_empty() => match written {
                Ok(written) => self.wrote(written),
                Err(error) => return Step::Over(Ended::Lost(error.to_string())),
            },
            batch = link.stats.next() => match batch {
                Some(batch) => link.take(batch),
                None => return Step::Over(Ended::Done),
            },
            read = self.read.read(&mut came) => match read {
                Ok(0) => return Step::Over(Ended::Lost("the autoscaler closed the connection".to_owned())),
                Ok(bytes) => self.reader.feed(&came[..bytes]),
                Err(error) => return Step::Over(Ended::Lost(error.to_string())),
            },
            _ = self.pings.tick() => self.ping(),
            () = sleep_until(self.heard + SILENT_MAX) => {
                return Step::Over(Ended::Lost("the autoscaler does not answer".to_owned()));
            }
            () = shutdown.draining() => return Step::Over(Ended::Done),
        }
        Step::Continue
    }

    fn wrote(&mut self, bytes: usize) {
        self.written += bytes;
        if self.written == self.out.len() {
            self.out.clear();
            self.written = 0;
        }
    }

    /// Looks at what was said.
    fn listen(&mut self) -> Result<(), String> {
        while let Some(said) = self.reader.said().map_err(|broken| self.object(&broken.to_string()))? {
            match said {
                Said::Message => {}
                Said::Ping(payload) => self.frames.put(&mut self.out, Kind::Pong, &payload),
                Said::Pong(payload) => {
                    self.heard = Instant::now();
                    if let Ok(number) = payload.try_into().map(u64::from_be_bytes) {
                        self.confirm(number);
                    }
                }
                Said::Close { code, text } => {
                    self.farewell(code.unwrap_or(code::NORMAL));
                    let code = code.map_or_else(|| "without a code".to_owned(), |code| format!("code {code}"));
                    return Err(format!("the autoscaler closed the connection, {code}: {text}"));
                }
            }
        }
        Ok(())
    }

    fn object(&mut self, why: &str) -> String {
        self.farewell(code::PROTOCOL_ERROR);
        format!("the autoscaler broke the protocol: {why}")
    }

    /// Answers a close, as far as that goes without waiting.
    fn farewell(&mut self, code: u16) {
        if self.written == 0 {
            self.out.clear();
            self.frames.put_close(&mut self.out, code, "");
            let _ = self.write.try_write(&self.out);
        }
    }

    fn confirm(&mut self, number: u64) {
        self.answered = self.answered.max(number.saturating_add(1).min(self.next_ping));
        self.unconfirmed.retain(|(ping, _)| *ping > number);
    }

    fn ping(&mut self) {
        match self.compat {
            Compat::Strict => self.frames.put(&mut self.out, Kind::Ping, &[]),
            Compat::Better => self.frames.put(&mut self.out, Kind::Ping, &self.next_ping.to_be_bytes()),
        }
        self.next_ping += 1;
    }

    /// Puts the next frames together, when those before are gone.
    fn fill(&mut self, link: &mut Link) {
        if !self.out.is_empty() {
            return;
        }
        while self.out.len() < WRITE_BYTES {
            let Some(batch) = link.backlog.pop() else { break };
            let message = proto::encode(&message(&batch));
            self.frames.put(&mut self.out, Kind::Binary, &message);
            if batch.poke && self.compat == Compat::Better {
                self.unconfirmed.push((self.next_ping, batch));
            }
        }
        // One question at a time asks for all pokes so far.
        let asked = self.answered < self.next_ping;
        let open = self.unconfirmed.last().is_some_and(|(ping, _)| *ping >= self.next_ping);
        if open && !asked {
            self.ping();
        }
    }

    /// Sends what there is, and a close frame; waits for the answer.
    async fn say_goodbye(&mut self, link: &mut Link) {
        let last = async {
            while let Some(batch) = link.stats.try_next() {
                link.take(batch);
            }
            loop {
                self.fill(link);
                if self.out.is_empty() {
                    break;
                }
                let pending = self.out.split_off(self.written);
                self.write.write_all(&pending).await?;
                self.out.clear();
                self.written = 0;
            }
            self.frames.put_close(&mut self.out, code::GOING_AWAY, "");
            self.write.write_all(&self.out).await?;
            let mut came = [0; 4096];
            while self.read.read(&mut came).await? > 0 {}
            Ok::<_, std::io::Error>(())
        };
        let _ = timeout(LAST_WORDS, last).await;
    }
}

/// A batch as it goes out.
pub(super) fn message(batch: &StatBatch) -> WireStatMessages {
    let mut messages = WireStatMessages::from(batch);
    // A poke is about now, however long it waited.
    if !batch.poke && clock::now().since(batch.at) > LATE {
        let stats = messages.messages.iter_mut().filter_map(|message| message.stat.as_mut());
        stats.for_each(|stat| stat.timestamp = batch.at.unix_seconds());
    }
    messages
}
