//! The end of a sidecar, in a fixed order: the main port and its requests, the
//! tunnels, what the app does in the background, the port of its lease, the
//! admin port, and last the port that the autoscaler scrapes.

use crate::sidecar::Sidecar;
use plumbing::shutdown::Shutdown;
use plumbing::tunnel;
use std::pin::pin;
use std::time::Duration;
use tokio::time::sleep;

/// How long the answers to the stop hook may take to get out before their
/// port is closed.
const HOOK_ANSWERS: Duration = Duration::from_millis(10);
/// How long a caller of a side port may hold its end.
const SIDE_PORT_MAX: Duration = Duration::from_millis(200);

/// Ready when it is time to close: `asked` has drained, and the quiet time
/// after that is over.
pub(crate) async fn quiet(sidecar: &Sidecar, asked: &Shutdown) {
    let terminated = async {
        asked.draining().await;
        sidecar.drain.terminate();
    };
    tokio::join!(terminated, sidecar.drain.drive());
}

/// Waits for what runs: requests as long as their own limits let them, tunnels
/// up to their limit from now on, the app's own work as long as it has said.
/// The main port must have been closed.
pub(crate) async fn finish(sidecar: &Sidecar) {
    finish_connections(sidecar).await;
    sidecar.drain.released().await;
}

async fn finish_connections(sidecar: &Sidecar) {
    // A request that runs still may become a tunnel: so one after the other.
    let mut finished = pin!(async {
        sidecar.closing.finished().await;
        sidecar.tunnels.finished().await;
    });
    tokio::select! {
        () = &mut finished => return,
        () = sleep(sidecar.config.tunnel_timeout) => sidecar.tunnels.drain(),
    }
    tokio::select! {
        () = &mut finished => return,
        () = sleep(tunnel::LAST_WORDS) => sidecar.tunnels.stop(),
    }
    finished.await;
}

/// Closes side ports one after another; who hangs on one is cut off.
pub(crate) async fn close(ports: &[Shutdown]) {
    if ports.is_empty() {
        return;
    }
    sleep(HOOK_ANSWERS).await;
    for port in ports {
        port.drain();
        let _ = tokio::time::timeout(SIDE_PORT_MAX, port.finished()).await;
        port.stop();
    }
}
