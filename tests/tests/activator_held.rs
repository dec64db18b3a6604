//! Crowds at the activator: held at zero, and woken (the campaigns `held` and
//! `wake-signal` at a reduced size; `leaving` is a campaign alone).

use tests::held::{self, Size, Speaks};
use tests::wake_signal;

/// The limits of the full size.
fn size(speaks: Speaks, top: usize, kib: u64) -> Size {
    Size { speaks, low: 300, top, bytes_max: kib * 1024, judge_pace: false }
}

#[tokio::test]
async fn a_request_that_is_held_costs_little_and_is_answered_http1() {
    held::run(size(Speaks::Http1, 1500, 6)).await.unwrap().assert();
}

#[tokio::test]
async fn a_request_that_is_held_costs_little_and_is_answered_http2() {
    held::run(size(Speaks::Http2, 10_000, 4)).await.unwrap().assert();
}

#[test]
fn the_signal_that_asks_for_a_pod_leaves_at_once() {
    wake_signal::run(300, 10).unwrap().assert();
}
