//! Stopping a pod: nobody sends to it any more, its requests end, its sidecar
//! closes, then TERM and KILL.

use super::config::Seat;
use super::launch::Launched;
use super::pod::PodTask;
use policy::revision::Timeouts;
use policy::world::Holding;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::timeout;
use tracing::warn;

/// What the reconciler wants of a pod. Only ever goes on in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Wish {
    /// Run.
    Run,
    /// End, once nobody holds it any more; terminating since this version of
    /// the snapshot.
    End(u64),
    /// End, whoever holds it: everything stops.
    EndNow,
}

/// Waits until the pod is not wanted any more.
pub(super) async fn wished(wish: &mut watch::Receiver<Wish>) {
    // An error means that the reconciler is gone: nothing is wanted.
    let _ = wish.wait_for(|wish| *wish != Wish::Run).await;
}

/// Stops what was started of a pod. Without a seat the pod was never ready and
/// holds no requests.
pub(super) async fn stop(pod: &mut PodTask, launched: &mut Launched, seat: Option<Seat>) {
    if let Some(mut seat) = seat {
        tokio::select! {
            // Without its process there is nothing to wait for.
            _ = launched.process.ended() => {}
            () = let_go(pod) => {}
        }
        seat.shutdown.cancel();
        if timeout(pod.shared.seat_timeout, &mut seat.ended).await.is_err() {
            warn!(pod = %pod.name, "the sidecar did not close in time");
        }
    }
    launched.process.stop(pod.service.stop_timeout).await;
    // For the order of the log: the app's last lines before the pod's end.
    launched.finish_output().await;
}

/// Waits until nobody holds the pod, or has held it for too long, or
/// everything stops.
async fn let_go(pod: &mut PodTask) {
    let mut holding = pod.shared.links.holding.clone();
    let mut wish = pod.wish.clone();
    let Wish::End(version) = *wish.borrow() else {
        return;
    };
    let name = Arc::clone(&pod.name);
    let has_let_go = |holding: &Arc<Holding>| holding.has_let_go(&name, version);
    let limit = longest_request(&pod.service.spec.timeouts);
    tokio::select! {
        // An error means that nobody sends requests any more.
        _ = holding.wait_for(has_let_go) => {}
        () = after(limit) => {
            warn!(pod = %pod.name, "requests outlived their limits; the pod is stopped");
        }
        _ = wish.wait_for(|wish| *wish == Wish::EndNow) => {}
    }
}

/// How long a request or a tunnel may take; `None` = tunnels have no limit.
fn longest_request(timeouts: &Timeouts) -> Option<Duration> {
    timeouts.upgrade.map(|upgrade| upgrade.max(timeouts.total))
}

async fn after(limit: Option<Duration>) {
    match limit {
        Some(limit) => tokio::time::sleep(limit).await,
        None => std::future::pending().await,
    }
}
