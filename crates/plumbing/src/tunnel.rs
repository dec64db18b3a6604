//! Upgraded connections: bytes both ways, and what was taken for the request
//! is kept until both sides have closed.

use crate::body::Guard;
use crate::reason::Reason;
use crate::wheel::Wheel;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use std::time::Duration;

/// Joins the two sides until both have ended, `life` is over, or the task is
/// dropped. A side that has ended for writing only is passed on as such.
pub async fn join(client: OnUpgrade, pod: OnUpgrade, life: Option<Duration>, wheel: Wheel, guard: Guard) {
    let _guard = guard;
    let (Ok(client), Ok(pod)) = (client.await, pod.await) else { return };
    let (mut client, mut pod) = (TokioIo::new(client), TokioIo::new(pod));
    let over = async {
        match life {
            Some(life) => wheel.sleep(life).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        copied = tokio::io::copy_bidirectional(&mut client, &mut pod) => {
            if let Err(error) = copied {
                tracing::debug!(%error, "an upgraded connection broke off");
            }
        }
        () = over => tracing::info!(reason = %Reason::UpgradeTimeout, "an upgraded connection was closed"),
    }
}
