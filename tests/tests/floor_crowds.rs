//! The shipped binary under crowds (the campaigns `burst` and `leavers` at a
//! reduced size).

use std::time::Duration;
use tests::floor::trial::{burst, leavers};

/// Busy machines are slow: ten times the figures.
const SLACK: u32 = 10;

#[tokio::test]
async fn a_burst_at_zero_is_served_one_at_a_time_by_all_the_pods_there_may_be() {
    let size = burst::Size { requests: 100, pods: 10, work: Duration::from_millis(50), slack: SLACK };
    burst::run(size).await.unwrap().assert();
}

#[tokio::test]
async fn crowds_that_give_up_leave_nothing_behind_whatever_they_had_to_send() {
    let size = |body_bytes| leavers::Size {
        clients: 100,
        body_bytes,
        rounds: 3,
        patience: Duration::from_millis(600),
        open_after: Duration::from_secs(2),
        slack: SLACK,
    };
    let crowds = [None, Some(100), Some(1_000_000)].map(|body_bytes| leavers::run(size(body_bytes)));
    let [none, small, large] = crowds;
    let (none, small, large) = tokio::try_join!(none, small, large).unwrap();
    [none, small, large].iter().for_each(|report| report.assert());
}
