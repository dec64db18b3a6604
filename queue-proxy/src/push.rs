//! Stats pushed to a receiver (`ZEROSCALE_STATS_ADDR`), beside the scrape.
//!
//! One task, one connection, one call at a time, and the newest report is all
//! that waits: a receiver that is slow or gone misses reports and costs
//! nothing else. Whoever ends the sidecar drops the task.

use crate::readiness::{Target, connect};
use plumbing::duration;
use plumbing::grpc::{Call, Link};
use policy::revision::RevisionId;
use proto::push::PUSH;
use proto::stats::{Stat, WireStatMessage, WireStatMessages};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

/// What we call ourselves.
const AGENT: &str = concat!("zeroscale-queue-proxy/", env!("CARGO_PKG_VERSION"));
/// How long the receiver may take to be connected to.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long it may take to answer: longer, and what it has is stale.
const CALL_TIMEOUT: Duration = Duration::from_secs(2);
/// The answer is empty.
const ANSWER_BYTES_MAX: usize = 1024;
/// The pause after the first failure; it doubles with each.
const PAUSE_FIRST: Duration = Duration::from_millis(500);
/// The longest pause.
const PAUSE_MAX: Duration = Duration::from_secs(16);

/// Whose stats, and to whom.
pub(crate) struct Push {
    pub(crate) receiver: Target,
    pub(crate) revision: RevisionId,
    /// Each report as it is made.
    pub(crate) reports: watch::Receiver<Stat>,
}

impl Push {
    /// Pushes each report, for ever.
    pub(crate) async fn run(mut self) {
        let receiver = self.receiver.authority();
        let mut failures = None;
        loop {
            let (error, taken) = self.connection(&receiver, failures).await;
            // One that took stats and went away is likely to be back soon.
            let row = failures.filter(|_| !taken).unwrap_or(0);
            if row == 0 {
                tracing::warn!(receiver, error, "stats cannot be pushed");
            } else {
                tracing::debug!(receiver, error, "stats cannot be pushed still");
            }
            failures = Some(row.saturating_add(1));
            // Sidecars that lost the same receiver must not come back as one.
            sleep(pause(row).mul_f64(0.5 + fastrand::f64() / 2.0)).await;
        }
    }

    /// Pushes over one connection until it fails: why, and whether anything
    /// was taken.
    async fn connection(&mut self, receiver: &str, failures: Option<u32>) -> (String, bool) {
        let opened = timeout(CONNECT_TIMEOUT, async {
            let stream = connect(&self.receiver).await?;
            Link::open(stream).await.map_err(|error| error.to_string())
        });
        let mut link = match opened.await {
            Ok(Ok(link)) => link,
            Ok(Err(error)) => return (error, false),
            Err(_) => return (format!("no connection within {}", duration::text(CONNECT_TIMEOUT)), false),
        };
        let mut taken = false;
        loop {
            tokio::select! {
                closed = link.closed() => return (closed.to_string(), taken),
                // The sender lives as long as the sidecar.
                _ = self.reports.changed() => {}
            }
            let message = self.message();
            let call = Call {
                authority: receiver,
                path: PUSH,
                user_agent: AGENT,
                fields: &[],
                message: &message,
                timeout: CALL_TIMEOUT,
                answer_max: ANSWER_BYTES_MAX,
            };
            match timeout(CALL_TIMEOUT, link.call(&call)).await {
                Ok(Ok(_)) if taken => {}
                Ok(Ok(_)) => {
                    taken = true;
                    let again = failures.is_some();
                    tracing::info!(receiver, again, "stats are pushed");
                }
                Ok(Err(error)) => return (error.to_string(), taken),
                Err(_) => return (format!("no answer within {}", duration::text(CALL_TIMEOUT)), taken),
            }
        }
    }

    /// The newest report.
    fn message(&mut self) -> Vec<u8> {
        let message = WireStatMessage {
            namespace: self.revision.namespace.as_bytes().to_vec(),
            name: self.revision.name.as_bytes().to_vec(),
            stat: Some(self.reports.borrow_and_update().clone()),
        };
        proto::encode(&WireStatMessages { messages: vec![message] })
    }
}

/// The pause after so many failures in a row before this one.
fn pause(row: u32) -> Duration {
    PAUSE_FIRST.saturating_mul(2_u32.saturating_pow(row)).min(PAUSE_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pauses_grow_to_a_cap() {
        let pauses: Vec<_> = (0..7).map(|row| pause(row).as_millis()).collect();
        assert_eq!(pauses, [500, 1_000, 2_000, 4_000, 8_000, 16_000, 16_000]);
        assert_eq!(pause(u32::MAX), PAUSE_MAX);
    }
}
