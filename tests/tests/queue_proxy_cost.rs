//! What the sidecar costs, of the binary that tests are run with: `campaign
//! cost` judges the one that is shipped.

use std::time::Duration;
use tests::cost::{self, Limits, SHIPPED};

/// A build for tests is several times as large, and maps that into memory; and
/// the machine may be busy with anything (rules, section 4).
const HERE: Limits = Limits { resident: 16 << 20, start: Duration::from_millis(100), ..SHIPPED };

#[tokio::test]
async fn memory_follows_the_connections() {
    cost::memory(HERE, 500).await.unwrap().assert();
}

#[tokio::test]
async fn an_idle_sidecar_wakes_once_a_second() {
    cost::wake_ups(HERE, Duration::from_secs(8)).await.unwrap().assert();
}

#[tokio::test]
async fn it_is_there_at_once() {
    cost::start(HERE, 9).await.unwrap().assert();
}
