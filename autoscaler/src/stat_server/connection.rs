//! One websocket, from the switch to its end.

use super::{Place, Shared, Sinks};
use crate::ingest::refused;
use crate::rate::Rate;
use bytes::Bytes;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use plumbing::clock;
use plumbing::websocket::message::{Kind, code};
use plumbing::websocket::served::{self, Heard, Reader};
use policy::compat::Compat;
use policy::moment::Moment;
use policy::revision::RevisionId;
use policy::stat::{Stat, StatBatch};
use proto::stats::WireStatMessages;
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, sleep_until, timeout};

/// Room for one read.
const READ_BYTES: usize = 16 << 10;
/// How long an answer to a ping, or a close, may take to be taken.
const WRITE_MAX: Duration = Duration::from_secs(5);
/// How long a client may take to answer our close.
const GOODBYE_MAX: Duration = Duration::from_secs(5);
/// How often to look whether the decisions take stats again.
const FULL_PAUSE: Duration = Duration::from_millis(10);
/// The reference's words at its end.
const RESTARTING: &str = "Restarting";

pub(super) struct Connection {
    socket: TcpStream,
    reader: Reader,
    /// What is counted of its bytes among those of all.
    counted: usize,
    rate: Rate,
    heard: Instant,
    /// Another replica of ours sends.
    forwarded: bool,
    place: Arc<Place>,
}

/// Why it goes no further.
enum Over {
    /// The other side has gone, or has been told all.
    Gone,
    /// It has to be told.
    Close(u16, &'static str),
}

impl Connection {
    pub(super) async fn carry(switched: OnUpgrade, forwarded: bool, place: Arc<Place>) {
        let Ok(upgraded) = switched.await else { return };
        let Ok(parts) = upgraded.downcast::<TokioIo<TcpStream>>() else { return };
        let limits = place.0.settings.limits;
        let mut connection = Connection {
            socket: parts.io.into_inner(),
            reader: Reader::new(limits.message_bytes),
            counted: 0,
            rate: Rate::new(limits.rate),
            heard: Instant::now(),
            forwarded,
            place,
        };
        connection.reader.buffer().extend_from_slice(&parts.read_buf);
        let shutdown = connection.shared().shutdown.clone();
        tokio::select! {
            () = connection.run() => {}
            () = shutdown.stopping() => {}
        }
    }

    fn shared(&self) -> &Shared {
        &self.place.0
    }

    async fn run(&mut self) {
        let over = loop {
            if let Err(over) = self.listen().await.and_then(|()| self.count()) {
                break over;
            }
            let silent = self.heard + self.shared().settings.limits.silence;
            let shutdown = self.shared().shutdown.clone();
            tokio::select! {
                readable = self.socket.readable() => match readable.and_then(|()| self.read()) {
                    Ok(true) => {}
                    Ok(false) | Err(_) => break Over::Gone,
                },
                () = shutdown.draining() => break Over::Close(code::RESTART, RESTARTING),
                () = sleep_until(silent) => {
                    refused("silence");
                    break Over::Close(code::GOING_AWAY, "nothing was heard for too long");
                }
            }
        };
        if let Over::Close(code, text) = over {
            self.say_goodbye(code, text).await;
        }
    }

    /// False at the end. Nothing is allocated before something has come.
    fn read(&mut self) -> io::Result<bool> {
        self.reader.buffer().reserve(READ_BYTES);
        match self.socket.try_read_buf(self.reader.buffer()) {
            Ok(0) => Ok(false),
            Ok(_) => {
                self.heard = Instant::now();
                Ok(true)
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(true),
            Err(error) => Err(error),
        }
    }

    /// Counts what waits to be whole.
    fn count(&mut self) -> Result<(), Over> {
        let held = self.reader.held();
        let all = &self.shared().bytes;
        let before = all.fetch_add(held, Ordering::Relaxed);
        all.fetch_sub(self.counted, Ordering::Relaxed);
        let (more, most) = (held > self.counted, self.shared().settings.limits.bytes);
        let full = before + held - self.counted > most;
        self.counted = held;
        if more && full {
            refused("bytes");
            return Err(Over::Close(code::TRY_LATER, "too much is on its way"));
        }
        Ok(())
    }

    fn release(&mut self) {
        let counted = std::mem::take(&mut self.counted);
        self.shared().bytes.fetch_sub(counted, Ordering::Relaxed);
    }

    /// Takes in all that is there.
    async fn listen(&mut self) -> Result<(), Over> {
        loop {
            match self.reader.heard() {
                Ok(None) => return Ok(()),
                Ok(Some(Heard::Binary(message))) => self.take(&message).await?,
                Ok(Some(Heard::Text(_))) => {
                    refused("text");
                    tracing::debug!("a message that is not binary was ignored");
                }
                Ok(Some(Heard::Ping(payload))) => self.answer(Kind::Pong, &payload).await?,
                Ok(Some(Heard::Pong(_))) => {}
                Ok(Some(Heard::Close(code))) => {
                    let code = code.unwrap_or(code::NORMAL).to_be_bytes();
                    self.answer(Kind::Close, &code).await?;
                    return Err(Over::Gone);
                }
                Err(broken) => {
                    refused(if broken.code() == code::TOO_LONG { "message-bytes" } else { "protocol" });
                    tracing::warn!(%broken, "a sender's connection is closed");
                    return Err(Over::Close(broken.code(), ""));
                }
            }
        }
    }

    /// Gives a message to the decisions. Where they stand still, or too many
    /// come, the sender is held back, as nothing is read meanwhile.
    async fn take(&mut self, message: &Bytes) -> Result<(), Over> {
        let shared = self.place.0.clone();
        while !self.rate.take() {
            refused("rate");
            self.pause(self.rate.wait().max(Duration::from_millis(1))).await?;
        }
        let limits = shared.settings.limits;
        let messages: WireStatMessages = match proto::decode(message, limits.message_bytes) {
            Ok(messages) => messages,
            Err(error) => {
                refused("malformed");
                tracing::debug!(%error, "a message that is none of ours was ignored");
                return Ok(());
            }
        };
        shared.messages.increment(1);
        let Sinks { direct, forwarded } = &shared.sinks;
        let sink = if self.forwarded { forwarded } else { direct };
        for (at, stats) in by_time(messages, clock::now(), shared.settings.compat) {
            while !sink.has_room() {
                self.pause(FULL_PAUSE).await?;
            }
            sink.send(StatBatch { at, stats, poke: false });
        }
        Ok(())
    }

    async fn pause(&self, span: Duration) -> Result<(), Over> {
        tokio::select! {
            () = sleep(span) => Ok(()),
            () = self.place.0.shutdown.draining() => Err(Over::Close(code::RESTART, RESTARTING)),
        }
    }

    async fn answer(&mut self, kind: Kind, payload: &[u8]) -> Result<(), Over> {
        let mut out = Vec::new();
        served::put(&mut out, kind, payload);
        self.write(&out).await
    }

    async fn write(&mut self, bytes: &[u8]) -> Result<(), Over> {
        match timeout(WRITE_MAX, self.socket.write_all(bytes)).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) | Err(_) => Err(Over::Gone),
        }
    }

    /// Says why it ends, and waits until the client has closed.
    async fn say_goodbye(&mut self, code: u16, text: &str) {
        // What has come of a message is of no use any more.
        self.reader = Reader::new(0);
        self.release();
        let mut out = Vec::new();
        served::put_close(&mut out, code, text);
        if self.write(&out).await.is_err() {
            return;
        }
        let closed = async {
            loop {
                // What it says until it has seen our close is not read.
                self.reader.buffer().clear();
                let read = self.socket.readable().await.and_then(|()| self.read());
                if !matches!(read, Ok(true)) || self.has_closed() {
                    return;
                }
            }
        };
        let _ = timeout(GOODBYE_MAX, closed).await;
    }

    /// A close frame alone, as one that answers ours comes.
    fn has_closed(&mut self) -> bool {
        self.reader.buffer().first().is_some_and(|first| *first == 0x88)
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.release();
    }
}

/// Stats by when they were taken. One that does not say is of now, and so is
/// one from the future: its sender's clock goes wrong, and a record of
/// tomorrow would make a window deaf until then.
fn by_time(
    messages: WireStatMessages,
    now: Moment,
    compat: Compat,
) -> impl Iterator<Item = (Moment, Vec<(RevisionId, Stat)>)> {
    let mut batches: BTreeMap<Moment, Vec<_>> = BTreeMap::new();
    for message in messages.messages {
        let Some(stat) = &message.stat else { continue };
        let at = match compat {
            Compat::Strict => stat.at(now),
            Compat::Better => stat.at(now).min(now.truncated_to_second()),
        };
        batches.entry(at).or_default().push((message.revision(), stat.observed()));
    }
    batches.into_iter()
}
