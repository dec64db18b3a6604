//! Crowds that wait for the app's only slot and leave: each leaves the queue
//! as it was, and nothing of theirs reaches the app.

use super::dual::{self, Call, Reply};
use super::h1::Conn;
use super::{PATIENCE, h2c};
use crate::floor::trial::Report;
use crate::program::Program;
use anyhow::Context;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until, timeout};

/// Places to wait.
const QUEUE: usize = 10;
/// How long each client waits.
const STAYS: Duration = Duration::from_millis(100);
/// How long the request at the app takes, at least.
const HOLDS: Duration = Duration::from_secs(5);
/// How soon the places of those who left must be free again, however busy the
/// machine; one that is lost never is.
const NOTICED_MAX: Duration = Duration::from_secs(3);

/// How the crowd speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Speaks {
    /// A connection each, which is closed.
    Http1,
    /// One connection for all; streams are reset.
    Http2,
}

#[derive(Default)]
struct Seen {
    inside: AtomicUsize,
    most: AtomicUsize,
    of_waves: AtomicUsize,
}

/// Sends so many waves.
///
/// # Errors
/// When something cannot be tried at all.
pub async fn run(speaks: Speaks, waves: usize) -> anyhow::Result<Report> {
    let mut report = Report::new(1);
    let seen = Arc::new(Seen::default());
    let (gate, opened) = watch::channel(false);
    let app = app(seen.clone(), opened).await;
    let depth = QUEUE.to_string();
    let program = Program::start(app, &[("CONTAINER_CONCURRENCY", "1"), ("ZEROSCALE_QUEUE_DEPTH", &depth)]);
    let crowd = Crowd::new(speaks, program.main).await?;
    let until = Instant::now() + HOLDS;
    let slow = tokio::spawn(crowd.clone().ask("/hold"));
    anyhow::ensure!(comes_true(|| seen.inside.load(Ordering::SeqCst) == 1).await, "the app is not asked");
    for wave in 1..=waves {
        let stuck = crowd.wave().await;
        if stuck > 0 || wave == waves {
            report.count(format!("{speaks:?}: clients of wave {wave} that found no place"), stuck, 0);
        }
        if stuck > 0 {
            return Ok(report);
        }
    }
    sleep_until(until).await;
    // The queue is as deep as ever: so many wait, and one more is refused.
    let mut waiting = JoinSet::new();
    let mut full = false;
    let began = Instant::now();
    while !full && began.elapsed() < NOTICED_MAX {
        while waiting.len() < QUEUE {
            waiting.spawn(crowd.clone().ask("/last"));
        }
        sleep(Duration::from_millis(50)).await;
        // Those that came too early are sent anew.
        let mut refused = 0;
        while let Some(early) = waiting.try_join_next() {
            refused += usize::from(early??.0 == 503);
        }
        full = refused == 0 && crowd.clone().ask("/one-more").await? == (503, "queue_full".to_owned());
    }
    report.holds(format!("{speaks:?}: {QUEUE} wait, and one more is refused"), full, full);
    gate.send_replace(true);
    report.count(format!("{speaks:?}: the request at the app is answered"), slow.await??.0.into(), 200);
    let (mut served, wait) = (0, waiting.len());
    while let Some(answer) = waiting.join_next().await {
        served += usize::from(answer??.0 == 200);
    }
    report.count(format!("{speaks:?}: those that wait are served"), served, wait);
    report.count(format!("{speaks:?}: and the next"), crowd.ask("/next").await?.0.into(), 200);
    report.count(format!("{speaks:?}: most at the app at once"), seen.most.load(Ordering::SeqCst), 1);
    let of_waves = seen.of_waves.load(Ordering::SeqCst);
    report.count(format!("{speaks:?}: requests of those who left that it saw"), of_waves, 0);
    Ok(report)
}

async fn comes_true(holds: impl Fn() -> bool) -> bool {
    let began = Instant::now();
    while !holds() && began.elapsed() < PATIENCE {
        sleep(Duration::from_millis(1)).await;
    }
    holds()
}

#[derive(Clone)]
struct Crowd {
    sidecar: SocketAddr,
    /// Over HTTP/2.
    client: Option<h2c::Client>,
}

impl Crowd {
    async fn new(speaks: Speaks, sidecar: SocketAddr) -> anyhow::Result<Crowd> {
        let client = match speaks {
            Speaks::Http1 => None,
            Speaks::Http2 => Some(h2c::Client::open(sidecar).await?),
        };
        Ok(Crowd { sidecar, client })
    }

    /// A whole exchange: status, and reason.
    async fn ask(self, path: &'static str) -> anyhow::Result<(u16, String)> {
        match self.client {
            None => {
                let request = format!("GET {path} HTTP/1.1\r\nhost: shop.example\r\n\r\n");
                let mut conn = Conn::open(self.sidecar).await?;
                conn.send(request.as_bytes()).await?;
                let answer = timeout(PATIENCE, conn.answer()).await.context("no answer")??;
                Ok((answer.status, answer.field("x-zeroscale-reason").to_owned()))
            }
            Some(client) => {
                let answer = client.ask(h2c::request("GET", path)).await?;
                Ok((answer.status, answer.field("x-zeroscale-reason").to_owned()))
            }
        }
    }

    /// As many as may wait come, wait, and leave. Those that found no place.
    async fn wave(&self) -> usize {
        let mut all = JoinSet::new();
        for number in 0..QUEUE {
            let crowd = self.clone();
            all.spawn(async move {
                let began = Instant::now();
                // Who comes before the last wave's leaving was noticed is refused,
                // and tries again.
                while !crowd.stay(number).await.unwrap_or(false) {
                    if began.elapsed() > NOTICED_MAX {
                        return false;
                    }
                    sleep(Duration::from_millis(5)).await;
                }
                true
            });
        }
        all.join_all().await.into_iter().filter(|waited| !waited).count()
    }

    /// Waits and leaves; true when no answer came in between.
    async fn stay(&self, number: usize) -> anyhow::Result<bool> {
        let Some(client) = &self.client else {
            let mut conn = Conn::open(self.sidecar).await?;
            conn.send(Crowd::leaver(number).as_bytes()).await?;
            return Ok(timeout(STAYS, conn.head()).await.is_err());
        };
        let with_body = number % 2 == 1;
        let method = if with_body { "POST" } else { "GET" };
        let (answer, mut stream) = client.begin(h2c::request(method, "/wave"), !with_body).await?;
        if with_body {
            stream.send_data("half of it".into(), number.is_multiple_of(3))?;
        }
        let waited = timeout(STAYS, answer).await.is_err();
        stream.send_reset(h2::Reason::CANCEL);
        Ok(waited)
    }

    /// Without a body, with one that has come, and with one that has not.
    fn leaver(number: usize) -> &'static str {
        match number % 3 {
            0 => "GET /wave HTTP/1.1\r\nhost: shop.example\r\n\r\n",
            1 => "POST /wave HTTP/1.1\r\nhost: shop.example\r\ncontent-length: 5\r\n\r\nhello",
            _ => "POST /wave HTTP/1.1\r\nhost: shop.example\r\ncontent-length: 50000\r\n\r\nhello",
        }
    }
}

/// `/hold` and `/last` wait for the gate.
async fn app(seen: Arc<Seen>, opened: watch::Receiver<bool>) -> SocketAddr {
    dual::app(move |call: Call| {
        let (seen, mut opened) = (seen.clone(), opened.clone());
        async move {
            let now = seen.inside.fetch_add(1, Ordering::SeqCst) + 1;
            seen.most.fetch_max(now, Ordering::SeqCst);
            seen.of_waves.fetch_add(usize::from(call.path == "/wave"), Ordering::SeqCst);
            if call.path == "/hold" {
                let _ = opened.wait_for(|open| *open).await;
            }
            seen.inside.fetch_sub(1, Ordering::SeqCst);
            Reply::ok("ok")
        }
    })
    .await
}
