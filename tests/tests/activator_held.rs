//! Crowds at the activator: held at zero, woken, and leaving (the campaigns
//! `held`, `leaving` and `wake-signal` at a reduced size).

use std::time::Duration;
use tests::held::{self, Size, Speaks};
use tests::{leaving, wake_signal};

/// The limits of the full size, and a half more: what is made once weighs more
/// in a smaller crowd.
fn size(speaks: Speaks, top: usize, kib: u64) -> Size {
    Size { speaks, low: 300, top, bytes_max: kib * 1024 * 3 / 2, judge_pace: false }
}

#[tokio::test]
async fn a_request_that_is_held_costs_little_and_is_answered_http1() {
    held::run(size(Speaks::Http1, 1500, 20)).await.unwrap().assert();
}

#[tokio::test]
async fn a_request_that_is_held_costs_little_and_is_answered_http2() {
    held::run(size(Speaks::Http2, 10_000, 5)).await.unwrap().assert();
}

#[tokio::test]
async fn crowds_that_leave_cost_nothing_and_nothing_is_sent_for_them() {
    let size = leaving::Size { time: Duration::from_secs(8), warm: Duration::from_secs(2), slack: 4 };
    leaving::run(size).await.unwrap().assert();
}

#[test]
fn the_signal_that_asks_for_a_pod_leaves_at_once() {
    wake_signal::run(300, 10).unwrap().assert();
}
