//! Streams of encoded batches, a batch a second on each.

use super::{Settings, id, pod_name};
use anyhow::{Context, Result, bail};
use plumbing::grpc::stream::{Event, Opening, Stream};
use policy::stat::Stat;
use proto::encode;
use proto::report::{Batch, REPORT};
use proto::stats::{WireStatMessage, WireStatMessages};
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval_at};

const EVERY: Duration = Duration::from_secs(1);
/// Each pod has so many requests in progress.
const LOAD: f64 = 50.0;
/// How long the last receipts may take.
const PATIENCE: Duration = Duration::from_secs(20);

pub(super) struct Senders {
    stop: Arc<Notify>,
    thread: JoinHandle<Result<Sent>>,
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sent {
    /// Batches with a receipt.
    pub(super) taken: usize,
    /// The longest time from a batch to its receipt.
    pub(super) slowest: Duration,
}

/// What a stream sends, without its number.
#[derive(Clone)]
pub(super) struct Batches {
    pub(super) each: Vec<u8>,
    /// The last one: there is nothing left.
    last: Vec<u8>,
}

/// What each stream sends: pods of one revision come by several of them.
pub(super) fn batches(settings: &Settings) -> Vec<Batches> {
    let each = encoded(settings, LOAD);
    each.into_iter().zip(encoded(settings, 0.0)).map(|(each, last)| Batches { each, last }).collect()
}

fn encoded(settings: &Settings, load: f64) -> Vec<Vec<u8>> {
    let mut batches = vec![WireStatMessages::default(); settings.streams];
    let all = (0..settings.pods).flat_map(|pod| (0..settings.revisions).map(move |revision| (revision, pod)));
    for (place, (revision, pod)) in all.enumerate() {
        let stat = Stat {
            pod_name: pod_name(revision, pod).into(),
            average_concurrency: load,
            average_proxied_concurrency: 0.0,
            request_count: 2.0 * load,
            proxied_request_count: 0.0,
        };
        let id = id(revision);
        batches[place % settings.streams].messages.push(WireStatMessage {
            namespace: id.namespace.as_bytes().to_vec(),
            name: id.name.as_bytes().to_vec(),
            stat: Some(proto::stats::Stat::of(&stat, EVERY)),
        });
    }
    let bare = |stats| encode(&Batch { number: 0, stats: Some(stats), poke: false, age_millis: 0 });
    batches.into_iter().map(bare).collect()
}

impl Senders {
    pub(super) fn start(address: SocketAddr, batches: Vec<Batches>) -> Senders {
        let stop = Arc::new(Notify::new());
        let stopped = stop.clone();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(all(address, batches, stopped))
        });
        Senders { stop, thread }
    }

    pub(super) fn stop(self) -> Result<Sent> {
        self.stop.notify_one();
        self.thread.join().map_err(|_| anyhow::anyhow!("the senders' thread panicked"))?
    }
}

async fn all(address: SocketAddr, batches: Vec<Batches>, stop: Arc<Notify>) -> Result<Sent> {
    let over = tokio_util::sync::CancellationToken::new();
    let count = batches.len().max(1) as u32;
    let mut senders = JoinSet::new();
    for (place, batch) in (0..).zip(batches) {
        // Spread over the second, as those of activators are not: but they
        // are no more than a few.
        let first = Instant::now() + EVERY * place / count;
        senders.spawn(one(address, batch, first, over.clone()));
    }
    let mut sent = Sent::default();
    let mut note = |one: Result<Sent>| -> Result<()> {
        let Sent { taken, slowest } = one?;
        sent = Sent { taken: sent.taken + taken, slowest: sent.slowest.max(slowest) };
        Ok(())
    };
    tokio::select! {
        () = stop.notified() => over.cancel(),
        Some(early) = senders.join_next() => {
            note(early?)?;
            bail!("a sender has ended by itself");
        }
    }
    while let Some(one) = senders.join_next().await {
        note(one?)?;
    }
    Ok(sent)
}

async fn one(
    address: SocketAddr,
    batch: Batches,
    first: Instant,
    over: tokio_util::sync::CancellationToken,
) -> Result<Sent> {
    let connection = TcpStream::connect(address).await?;
    connection.set_nodelay(true)?;
    let opening = Opening { authority: "autoscaler", path: REPORT, user_agent: "tests", message_max: 1024 };
    let mut stream = Stream::open(connection, opening).await.map_err(ended)?;
    let mut ticks = interval_at(first.into(), EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut sent = Sent::default();
    let mut open = std::collections::VecDeque::new();
    let (mut number, mut idle) = (0, false);
    loop {
        tokio::select! {
            _ = ticks.tick(), if !idle => {
                number += 1;
                idle = over.is_cancelled();
                // The number's field, before the others.
                let mut message = encode(&Batch { number, ..Batch::default() });
                message.extend_from_slice(if idle { &batch.last } else { &batch.each });
                stream.send(&message).map_err(ended)?;
                open.push_back(Instant::now());
            }
            event = tokio::time::timeout(PATIENCE, stream.next()) => {
                if let Event::Message(_) = event.context("no receipt")?.map_err(ended)? {
                    let since = open.pop_front().context("a receipt for nothing")?;
                    sent = Sent { taken: sent.taken + 1, slowest: sent.slowest.max(since.elapsed()) };
                }
            }
            () = over.cancelled(), if idle && open.is_empty() => return Ok(sent),
        }
    }
}

fn ended(error: plumbing::grpc::CallError) -> anyhow::Error {
    anyhow::anyhow!("a stream has ended: {error:?}")
}
