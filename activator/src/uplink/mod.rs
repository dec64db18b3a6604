//! The stat stream to an autoscaler in another process: the sending half of
//! `zeroscale.v1.Stats/Report`.
//!
//! One task, one connection at a time, one call on it. What waits while there
//! is none is bounded (`outbox`); what was sent is known to have arrived only
//! by its receipt.

mod outbox;

use metrics::{Counter, Gauge, counter, gauge};
use outbox::Outbox;
use plumbing::grpc::stream::{Event, Opening, Stream};
use plumbing::stats::StatSource;
use plumbing::{clock, duration};
use policy::stat::StatBatch;
use proto::report::{Batch, REPORT, Receipt};
use proto::stats::WireStatMessages;
use std::future::Future;
use std::pin::{Pin, pin};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout};

/// What we call ourselves.
const AGENT: &str = concat!("zeroscale-activator/", env!("CARGO_PKG_VERSION"));
/// How long the autoscaler may take to be connected to.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// How long a receipt may take.
const RECEIPT_TIMEOUT: Duration = Duration::from_secs(2);
/// How often a sign of life is asked for, which must come before the next.
const PING_EVERY: Duration = Duration::from_secs(3);
/// Receipts are a number each.
const RECEIPT_BYTES_MAX: usize = 64;
/// The pause after the first failure; it doubles with each.
const PAUSE_FIRST: Duration = Duration::from_millis(50);
/// The longest pause: a poke may wait for it,
const PAUSE_MAX: Duration = Duration::from_secs(2);
/// or, while there is no news that nobody has been told, this.
const PAUSE_QUIET_MAX: Duration = Duration::from_secs(10);
/// How long the last batch may take at the end.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// 1 while the autoscaler takes stats, else 0.
pub(crate) const CONNECTED: &str = "zeroscale_activator_stats_connected";
/// Connections that were lost, and tries that failed.
pub(crate) const FAILURES: &str = "zeroscale_activator_stats_failures_total";
/// Batches that were never sent, since a newer one had come.
pub(crate) const REPLACED: &str = "zeroscale_activator_stats_replaced_total";

/// Sends what comes from `source` to the autoscaler at `receiver`
/// (`host:port`), until `end` is ready; then once more what is left, and
/// returns. `connected` is told when the autoscaler takes stats and when it
/// does not.
pub async fn run(receiver: String, source: StatSource, connected: watch::Sender<bool>, end: impl Future<Output = ()>) {
    let gauges = Gauges { connected: gauge!(CONNECTED), failures: counter!(FAILURES), replaced: counter!(REPLACED) };
    gauges.connected.set(0.0);
    let mut uplink =
        Uplink { receiver, source, outbox: Outbox::default(), connected, gauges, failed: None, news: false };
    let mut end = pin!(end);
    let mut row = 0u32;
    loop {
        uplink.news = false;
        let error = match uplink.connection(end.as_mut()).await {
            Ended::Broken(error) => error,
            Ended::Over => return,
            Ended::Unheard => break,
        };
        if uplink.tell(false) {
            row = 0;
        }
        uplink.outbox.broken();
        uplink.lament(&error);
        let jitter = 0.5 + fastrand::f64() / 2.0;
        let pause = |longest| pause(row, longest).mul_f64(jitter);
        let (with_news, quiet) = (pause(PAUSE_MAX), pause(PAUSE_QUIET_MAX));
        row = row.saturating_add(1);
        tokio::select! {
            () = uplink.wait(with_news, quiet) => {}
            () = &mut end => break,
        }
    }
    uplink.collect();
    if uplink.outbox.is_empty() {
        return;
    }
    let _ = timeout(LAST_WORDS, uplink.connection(pin!(std::future::ready(())))).await;
}

struct Uplink {
    receiver: String,
    source: StatSource,
    outbox: Outbox,
    connected: watch::Sender<bool>,
    gauges: Gauges,
    /// Set while there is no connection: since when.
    failed: Option<Instant>,
    /// Something came since the last try began.
    news: bool,
}

struct Gauges {
    connected: Gauge,
    failures: Counter,
    replaced: Counter,
}

enum Ended {
    /// The end has come, and what was left was taken.
    Over,
    /// The end has come, and nobody listens.
    Unheard,
    Broken(String),
}

impl Uplink {
    /// One connection, from its first try to its end.
    async fn connection(&mut self, mut end: Pin<&mut impl Future<Output = ()>>) -> Ended {
        let receiver = self.receiver.clone();
        let mut opened = pin!(timeout(CONNECT_TIMEOUT, open(&receiver)));
        let mut closing = None;
        let opened = loop {
            tokio::select! {
                opened = &mut opened => break opened,
                batch = self.source.next(), if closing.is_none() => match batch {
                    Some(batch) => self.put(batch),
                    None => closing = Some(Instant::now() + LAST_WORDS),
                },
                () = &mut end, if closing.is_none() => closing = Some(Instant::now() + LAST_WORDS),
            }
        };
        let stream = match opened {
            Ok(Ok(stream)) => stream,
            _ if closing.is_some() => return Ended::Unheard,
            Ok(Err(error)) => return Ended::Broken(error),
            Err(_) => return Ended::Broken(format!("no connection within {}", duration::text(CONNECT_TIMEOUT))),
        };
        self.report(stream, end, closing).await
    }

    /// `closing`: the end has come; until when the last batches may be taken.
    async fn report(
        &mut self,
        mut stream: Stream<TcpStream>,
        mut end: Pin<&mut impl Future<Output = ()>>,
        mut closing: Option<Instant>,
    ) -> Ended {
        let mut pings = tokio::time::interval(PING_EVERY);
        loop {
            while let Some((number, batch)) = self.outbox.take() {
                if let Err(error) = stream.send(&message(number, &batch)) {
                    return Ended::Broken(error.to_string());
                }
            }
            if closing.is_some_and(|until| self.outbox.is_empty() || Instant::now() >= until) {
                return Ended::Over;
            }
            let receipt_due = self.outbox.oldest_sent().map(|sent| sent + RECEIPT_TIMEOUT);
            let late = [receipt_due, closing].into_iter().flatten().min();
            tokio::select! {
                event = stream.next() => match event {
                    Ok(Event::Message(bytes)) => match proto::decode::<Receipt>(&bytes, RECEIPT_BYTES_MAX) {
                        Ok(receipt) => self.outbox.receipt(receipt.number),
                        Err(error) => return Ended::Broken(error.to_string()),
                    },
                    Ok(Event::Accepted) => {
                        self.tell(true);
                    }
                    Ok(Event::Pong) => {}
                    Err(error) => return Ended::Broken(error.to_string()),
                },
                batch = self.source.next(), if closing.is_none() => match batch {
                    Some(batch) => self.put(batch),
                    None => closing = Some(Instant::now() + LAST_WORDS),
                },
                () = &mut end, if closing.is_none() => {
                    self.collect();
                    closing = Some(Instant::now() + LAST_WORDS);
                }
                _ = pings.tick() => if !stream.ping() {
                    return Ended::Broken(format!("no sign of life within {}", duration::text(PING_EVERY)));
                },
                () = sleep_until(late.unwrap_or_else(Instant::now)), if late.is_some() => {
                    if receipt_due.is_some_and(|due| Instant::now() >= due) {
                        return Ended::Broken(format!("no receipt within {}", duration::text(RECEIPT_TIMEOUT)));
                    }
                }
            }
        }
    }

    /// Lets a pause pass, the shorter one once there is news; takes in what
    /// comes meanwhile.
    async fn wait(&mut self, with_news: Duration, quiet: Duration) {
        let began = Instant::now();
        loop {
            let over = sleep_until(began + if self.news { with_news } else { quiet });
            tokio::select! {
                () = over => return,
                batch = self.source.next() => match batch {
                    Some(batch) => self.put(batch),
                    // The next connection finds that out.
                    None => return sleep_until(began + with_news).await,
                }
            }
        }
    }

    /// Takes in what is there already.
    fn collect(&mut self) {
        while let Some(batch) = self.source.try_next() {
            self.put(batch);
        }
    }

    fn put(&mut self, batch: StatBatch) {
        self.news = true;
        if self.outbox.put(batch) {
            self.gauges.replaced.increment(1);
        }
    }

    /// Tells whether stats are taken. True when that was otherwise before.
    fn tell(&mut self, connected: bool) -> bool {
        let changed = self.connected.send_if_modified(|before| std::mem::replace(before, connected) != connected);
        if changed {
            self.gauges.connected.set(if connected { 1.0 } else { 0.0 });
        }
        if changed && connected {
            let without_ms = self.failed.take().map(|since| since.elapsed().as_millis() as u64);
            tracing::info!(receiver = self.receiver, without_ms, "the autoscaler takes stats");
        }
        changed
    }

    fn lament(&mut self, error: &str) {
        self.gauges.failures.increment(1);
        let receiver = &self.receiver;
        if self.failed.is_none() {
            tracing::warn!(receiver, error, "the autoscaler takes no stats");
        } else {
            tracing::debug!(receiver, error, "the autoscaler takes no stats still");
        }
        self.failed.get_or_insert_with(Instant::now);
    }
}

async fn open(receiver: &str) -> Result<Stream<TcpStream>, String> {
    let stream = TcpStream::connect(receiver).await.map_err(|error| error.to_string())?;
    let _ = stream.set_nodelay(true);
    let opening = Opening { authority: receiver, path: REPORT, user_agent: AGENT, message_max: RECEIPT_BYTES_MAX };
    Stream::open(stream, opening).await.map_err(|error| error.to_string())
}

fn message(number: u64, batch: &StatBatch) -> Vec<u8> {
    let age = clock::now().since(batch.at);
    proto::encode(&Batch {
        number,
        stats: Some(WireStatMessages::from(batch)),
        poke: batch.poke,
        age_millis: u64::try_from(age.as_millis()).unwrap_or(u64::MAX),
    })
}

/// The pause after so many failures in a row before this one.
fn pause(row: u32, longest: Duration) -> Duration {
    PAUSE_FIRST.saturating_mul(2_u32.saturating_pow(row)).min(longest)
}
