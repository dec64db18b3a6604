//! Stats and pokes to the reference's autoscaler, over one websocket
//! (`connection`). One of ours is reported to over a stream: [`crate::uplink`].
//!
//! One task sends, so batches never change their order. While there is no
//! connection they wait (`backlog`). A poke is kept until an answered ping
//! shows that it has arrived, and sent again over the next connection
//! otherwise: it may arrive twice, and is never lost.
//!
//! Strict mode does as the reference: what cannot be sent at once is lost.

mod backlog;
mod backoff;
mod connection;

use crate::metrics::LinkMetrics;
use backlog::Backlog;
use backoff::{Backoff, Pause};
use connection::{Connection, Ended};
use plumbing::shutdown::Shutdown;
use plumbing::stats::StatSource;
use plumbing::websocket::handshake;
use policy::compat::Compat;
use policy::stat::StatBatch;
use std::future::Future;
use std::pin::pin;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout};

/// How long a connection and its handshake may take.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(3);
/// Where the autoscaler takes stats.
const PATH: &str = "/";

/// Whether the autoscaler is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Not since the start.
    NeverYet,
    /// Now.
    Up,
    /// It was, and is not now.
    Lost,
}

/// Whom to connect to, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// `host:port` of the autoscaler.
    pub autoscaler: String,
    /// Strict: what cannot be sent at once is lost.
    pub compat: Compat,
}

/// Sends all that comes from `stats`, until `shutdown` drains and what was
/// there has been sent, or cannot be.
pub async fn run(settings: Settings, stats: StatSource, reach: watch::Sender<Reach>, shutdown: Shutdown) {
    let metrics = LinkMetrics::new();
    let mut link = Link { backlog: Backlog::default(), stats, settings, metrics, news: false };
    let mut backoff = Backoff::new(link.settings.compat);
    loop {
        link.news = false;
        let mut pause = Pause::default();
        match link.meanwhile(&shutdown, open(&link.settings.clone())).await {
            None => return,
            Some(Err(error)) => {
                tracing::warn!(autoscaler = link.settings.autoscaler, error, "the autoscaler cannot be reached");
                pause = backoff.failed();
            }
            Some(Ok(connection)) => {
                tracing::info!(autoscaler = link.settings.autoscaler, "connected to the autoscaler");
                reach.send_replace(Reach::Up);
                let since = Instant::now();
                let ended = connection.carry(&mut link, &shutdown).await;
                reach.send_replace(Reach::Lost);
                match ended {
                    Ended::Done => return,
                    Ended::Lost(why) => {
                        link.metrics.lost();
                        tracing::warn!(autoscaler = link.settings.autoscaler, why, "the autoscaler is lost");
                        pause = backoff.lost_after(since.elapsed()).max(pause);
                    }
                }
            }
        }
        if link.rest(&shutdown, pause).await.is_none() {
            return;
        }
    }
}

/// What outlasts a connection.
struct Link {
    backlog: Backlog,
    stats: StatSource,
    settings: Settings,
    metrics: LinkMetrics,
    /// Something came since the last attempt began.
    news: bool,
}

impl Link {
    /// Takes in what comes while something else is under way; `None` when it
    /// is time to end.
    async fn meanwhile<F: Future>(&mut self, shutdown: &Shutdown, work: F) -> Option<F::Output> {
        let mut work = pin!(work);
        loop {
            tokio::select! {
                done = &mut work => return Some(done),
                () = shutdown.draining() => return None,
                batch = self.stats.next() => self.keep(batch?),
            }
        }
    }

    /// Lets a pause pass, which news make shorter; `None` when it is time to end.
    async fn rest(&mut self, shutdown: &Shutdown, pause: Pause) -> Option<()> {
        let began = Instant::now();
        loop {
            let span = if self.news { pause.with_news } else { pause.quiet };
            tokio::select! {
                () = sleep_until(began + span) => return Some(()),
                () = shutdown.draining() => return None,
                batch = self.stats.next() => self.keep(batch?),
            }
        }
    }

    /// Takes in what cannot be sent now.
    fn keep(&mut self, batch: StatBatch) {
        self.take(batch);
        self.news = true;
        if self.settings.compat == Compat::Strict {
            self.backlog.clear();
        }
        self.metrics.dropped(self.backlog.take_dropped());
    }

    fn take(&mut self, batch: StatBatch) {
        self.backlog.push(batch);
    }
}

async fn open(settings: &Settings) -> Result<Connection, String> {
    let autoscaler = settings.autoscaler.as_str();
    let opened = timeout(HANDSHAKE_TIMEOUT, async {
        let mut stream = TcpStream::connect(autoscaler).await.map_err(|error| error.to_string())?;
        let _ = stream.set_nodelay(true);
        let rest = handshake::open(&mut stream, autoscaler, PATH).await.map_err(|error| error.to_string())?;
        Ok(Connection::new(stream, rest, settings.compat))
    });
    opened.await.unwrap_or_else(|_| Err(format!("no connection within {} s", HANDSHAKE_TIMEOUT.as_secs())))
}
