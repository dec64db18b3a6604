//! The end of an activator: listeners close, requests end within their own
//! limits, those that still wait are told at last, then tunnels.

use crate::Activator;
use plumbing::farewell::Leave;
use plumbing::shutdown::Shutdown;
use plumbing::worker::Worker;
use std::future::{Future, pending};
use std::pin::pin;
use std::time::Duration;
use tokio::time::sleep;

/// How long tunnels have to say goodbye.
const TUNNEL_LAST_WORDS: Duration = Duration::from_millis(500);
/// How often those are refused that come to wait when nobody is to.
const GIVE_UP_EVERY: Duration = Duration::from_millis(100);

/// Waits for what runs. The listeners must have been closed.
pub(crate) async fn finish(activator: &Activator, requests: &Shutdown) {
    let tunnels = &activator.shared.tunnels;
    let mut finished = pin!(async {
        // A request that runs still may become a tunnel: so one after the other.
        requests.finished().await;
        tunnels.finished().await;
    });
    let mut giving_up = pin!(give_up(activator));
    tokio::select! {
        () = &mut finished => return,
        () = &mut giving_up => {}
        () = sleep(activator.shared.config.tunnel_timeout) => {}
    }
    tunnels.drain();
    let last_words = async {
        sleep(TUNNEL_LAST_WORDS).await;
        tunnels.stop();
        pending::<()>().await;
    };
    tokio::select! {
        () = finished => {}
        () = giving_up => {}
        () = last_words => {}
    }
}

/// Refuses whoever still waits once the time for that is over.
async fn give_up(activator: &Activator) {
    let Some(patience) = activator.shared.config.drain_wait else { return pending().await };
    sleep(patience).await;
    loop {
        for revision in activator.shared.table.all() {
            revision.give_up();
        }
        sleep(GIVE_UP_EVERY).await;
    }
}

/// How an upgraded connection ends when it has to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// By itself, when [`leave`] is ready; it has a little time for that.
    Polite,
    /// At once.
    Cut,
}

/// Runs an upgraded connection.
pub(crate) fn track(tunnels: &Shutdown, worker: &Worker, tunnel: impl Future<Output = ()> + Send + 'static, end: End) {
    let over = tunnels.clone();
    worker.spawn(tunnels.track(async move {
        let over = async {
            match end {
                End::Polite => over.stopping().await,
                End::Cut => over.draining().await,
            }
        };
        tokio::select! { () = tunnel => {}, () = over => {} }
    }));
}

/// Ready when upgraded connections have to end.
pub(crate) fn leave(tunnels: &Shutdown) -> Leave {
    let tunnels = tunnels.clone();
    Box::pin(async move { tunnels.draining().await })
}
