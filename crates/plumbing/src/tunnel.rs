//! Upgraded connections: bytes both ways, and what was taken for the request
//! is kept until both sides have closed.

use crate::body::Guard;
use crate::farewell::Farewell;
use crate::h1::{OnUpgrade, Upgraded};
use crate::reason::Reason;
use crate::shutdown::Shutdown;
use crate::wheel::Wheel;
use crate::worker::Worker;
use parking_lot::Mutex;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;

/// How long an upgraded connection may last; `None` = without limit.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// From its beginning.
    pub life: Option<Duration>,
    /// From the last byte either way.
    pub idle: Option<Duration>,
}

/// How long tunnels have to say goodbye.
pub const LAST_WORDS: Duration = Duration::from_millis(500);

/// Joins the two sides in a task of `tunnels`, whose first stage ends them; a
/// websocket says goodbye then, and is cut by the second stage at the latest.
pub fn open(
    (client, pod): (OnUpgrade, Upgraded),
    is_websocket: bool,
    limits: Limits,
    worker: &Worker,
    tunnels: &Shutdown,
    guard: Guard,
) {
    let (wheel, over) = (worker.wheel().clone(), tunnels.clone());
    if is_websocket {
        let leave = over.clone();
        let pod = Farewell::new(pod, Box::pin(async move { leave.draining().await }));
        worker.spawn(tunnels.track(async move {
            tokio::select! { () = join(client, pod, limits, wheel, guard) => {}, () = over.stopping() => {} }
        }));
    } else {
        worker.spawn(tunnels.track(async move {
            tokio::select! { () = join(client, pod, limits, wheel, guard) => {}, () = over.draining() => {} }
        }));
    }
}

/// Joins the two sides until both have ended, a limit has passed, or the task
/// is dropped. A side that has ended for writing only is passed on as such.
pub async fn join<P>(client: OnUpgrade, mut pod: P, limits: Limits, wheel: Wheel, guard: Guard)
where
    P: AsyncRead + AsyncWrite + Unpin,
{
    let _guard = guard;
    let Ok(client) = client.await else { return };
    let last_byte = Arc::new(Mutex::new(Instant::now()));
    // Whatever one side gets was read from the other: watching one is enough.
    let mut client = Watched { side: client, last_byte: last_byte.clone() };
    let over = over(limits.life, &wheel);
    let silent = silent(limits.idle, &wheel, &last_byte);
    let reason = tokio::select! {
        copied = tokio::io::copy_bidirectional(&mut client, &mut pod) => {
            if let Err(error) = copied {
                tracing::debug!(%error, "an upgraded connection broke off");
            }
            return;
        }
        () = over => Reason::UpgradeTimeout,
        () = silent => Reason::IdleTimeout,
    };
    tracing::info!(%reason, "an upgraded connection was closed");
}

async fn over(life: Option<Duration>, wheel: &Wheel) {
    match life {
        Some(life) => wheel.sleep(life).await,
        None => std::future::pending().await,
    }
}

async fn silent(idle: Option<Duration>, wheel: &Wheel, last_byte: &Mutex<Instant>) {
    let Some(idle) = idle else { return std::future::pending().await };
    loop {
        let due = *last_byte.lock() + idle;
        if due <= Instant::now() {
            return;
        }
        wheel.sleep_until(due).await;
    }
}

/// The client's side; notes when bytes went either way.
struct Watched {
    side: Upgraded,
    last_byte: Arc<Mutex<Instant>>,
}

impl Watched {
    fn moved(&self) {
        *self.last_byte.lock() = Instant::now();
    }
}

impl AsyncRead for Watched {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let read = Pin::new(&mut self.side).poll_read(cx, buf);
        if buf.filled().len() > before {
            self.moved();
        }
        read
    }
}

impl AsyncWrite for Watched {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.side).poll_write(cx, buf);
        if matches!(written, Poll::Ready(Ok(bytes)) if bytes > 0) {
            self.moved();
        }
        written
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.side).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.side).poll_shutdown(cx)
    }
}
