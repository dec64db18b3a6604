//! The end of an activator: listeners close, requests end within their own
//! limits, those that still wait are told at last, then tunnels.

use crate::Activator;
use plumbing::shutdown::Shutdown;
use plumbing::tunnel;
use std::future::pending;
use std::pin::pin;
use std::time::Duration;
use tokio::time::sleep;

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
        sleep(tunnel::LAST_WORDS).await;
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
