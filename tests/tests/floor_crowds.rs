//! The shipped binary under crowds (the campaigns `burst` and `leavers` at a
//! reduced size).

use std::time::Duration;
use tests::floor::trial::{burst, leavers};

/// Busy machines are slow: ten times the figures.
const SLACK: u32 = 10;

#[tokio::test]
async fn a_burst_at_zero_is_served_one_at_a_time_by_all_the_pods_there_may_be() {
    let size = burst::Size { requests: 40, pods: 4, work: Duration::from_millis(50), slack: SLACK };
    burst::run(size).await.unwrap().assert();
}

async fn leave(body_bytes: Option<usize>) {
    let size = leavers::Size {
        clients: 100,
        body_bytes,
        rounds: 3,
        patience: Duration::from_millis(600),
        open_after: Duration::from_secs(2),
        slack: SLACK,
    };
    leavers::run(size).await.unwrap().assert();
}

#[tokio::test]
async fn a_crowd_that_gives_up_leaves_nothing_behind_and_harms_nobody() {
    leave(None).await;
}

#[tokio::test]
async fn a_crowd_that_gives_up_with_bodies_leaves_nothing_behind_either() {
    leave(Some(100)).await;
}

#[tokio::test]
async fn a_crowd_that_gives_up_within_large_bodies_leaves_nothing_behind_either() {
    leave(Some(1_000_000)).await;
}
