//! The same link by gRPC calls, between parts of ours: an answered call is one
//! that has arrived, so no ping is needed for that.

use super::connection::{self, Ended};
use super::{HANDSHAKE_TIMEOUT, Link};
use plumbing::grpc::{self, Call};
use plumbing::shutdown::Shutdown;
use policy::stat::StatBatch;
use proto::push::PUSH;
use proto::stats::WireStatMessages;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::timeout;

/// What we call ourselves.
const AGENT: &str = concat!("zeroscale-activator/", env!("CARGO_PKG_VERSION"));
/// How long a call may take: a receiver that takes longer is as good as gone.
const CALL_TIMEOUT: Duration = Duration::from_secs(3);
/// The answer is empty.
const ANSWER_BYTES_MAX: usize = 1024;
/// Entries of one call, but for a single batch that has more.
const ENTRIES_MAX: usize = 1024;
/// How long the end may take.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// A connection for calls one after another.
pub(super) struct Pushing {
    calls: grpc::Link<TcpStream>,
    receiver: String,
}

impl Pushing {
    pub(super) async fn open(stream: TcpStream, receiver: &str) -> Result<Pushing, String> {
        let opened = timeout(HANDSHAKE_TIMEOUT, grpc::Link::open(stream)).await;
        let calls = opened.map_err(|_| "no HTTP/2 in time".to_owned())?.map_err(|error| error.to_string())?;
        Ok(Pushing { calls, receiver: receiver.to_owned() })
    }

    /// Sends what comes until it is time to end, or the connection fails. What
    /// has not arrived is in the backlog then.
    pub(super) async fn carry(mut self, link: &mut Link, shutdown: &Shutdown) -> Ended {
        loop {
            while let Some(batch) = link.stats.try_next() {
                link.take(batch);
            }
            let batches = next(link);
            if batches.is_empty() {
                tokio::select! {
                    closed = self.calls.closed() => return Ended::Lost(closed.to_string()),
                    batch = link.stats.next() => match batch {
                        Some(batch) => link.take(batch),
                        None => return Ended::Done,
                    },
                    () = shutdown.draining() => return Ended::Done,
                }
                continue;
            }
            let message = message(&batches);
            let call = timeout(CALL_TIMEOUT, self.call(&message));
            // At the end what has begun is finished, for a little while.
            let called = match link.meanwhile(shutdown, call).await {
                Some(called) => called,
                None => return self.finish(link, message).await,
            };
            let why = match called {
                Ok(Ok(())) => continue,
                Ok(Err(why)) => why,
                Err(_) => "no answer in time".to_owned(),
            };
            link.backlog.put_back(batches.into_iter().filter(|batch| batch.poke).collect());
            return Ended::Lost(why);
        }
    }

    async fn finish(mut self, link: &mut Link, begun: Vec<u8>) -> Ended {
        let last = async {
            let mut message = begun;
            loop {
                self.call(&message).await?;
                while let Some(batch) = link.stats.try_next() {
                    link.take(batch);
                }
                let batches = next(link);
                if batches.is_empty() {
                    return Ok::<_, String>(());
                }
                message = self::message(&batches);
            }
        };
        let _ = timeout(LAST_WORDS, last).await;
        Ended::Done
    }

    async fn call(&mut self, message: &[u8]) -> Result<(), String> {
        let call = Call {
            authority: &self.receiver,
            path: PUSH,
            user_agent: AGENT,
            fields: &[],
            message,
            timeout: CALL_TIMEOUT,
            answer_max: ANSWER_BYTES_MAX,
        };
        self.calls.call(&call).await.map(drop).map_err(|error| error.to_string())
    }
}

/// The oldest batches, as many as go into one call.
fn next(link: &mut Link) -> Vec<StatBatch> {
    let (mut batches, mut entries) = (Vec::new(), 0);
    while entries < ENTRIES_MAX
        && let Some(batch) = link.backlog.pop()
    {
        entries += batch.stats.len();
        batches.push(batch);
    }
    batches
}

fn message(batches: &[StatBatch]) -> Vec<u8> {
    let messages = batches.iter().flat_map(|batch| connection::message(batch).messages).collect();
    proto::encode(&WireStatMessages { messages })
}
