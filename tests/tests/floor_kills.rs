//! The shipped binary and what it started, killed the hard way (the campaign
//! `kills` at a reduced size).

use std::time::Duration;
use tests::floor::trial::crashes::{self, Size};
use tests::floor::trial::kills;
use tests::floor::trial::orphans::{self, End};

/// Busy machines are slow: ten times the figures.
const SLACK: u32 = 10;

#[tokio::test]
async fn a_killed_app_loses_what_it_had_in_its_hands_and_nothing_that_was_held() {
    kills::app(2, 10, SLACK).await.unwrap().assert();
}

#[tokio::test]
async fn apps_killed_under_load_lose_what_they_had_in_their_hands_and_nothing_else() {
    for pods in [3, 1] {
        let size = Size { pods, rate: 200, time: Duration::from_secs(6), kills: 3, slack: SLACK };
        crashes::run(size).await.unwrap().assert();
    }
}

#[tokio::test]
async fn a_killed_zeroscale_leaves_no_process_and_no_port_behind() {
    kills::zeroscale(SLACK).await.unwrap().assert();
}

#[tokio::test]
async fn a_killed_guard_takes_its_processes_with_it_and_is_replaced() {
    kills::guard(SLACK).await.unwrap().assert();
}

#[tokio::test]
async fn requests_outlive_the_wish_for_their_pods() {
    kills::long_requests(Duration::from_secs(12), SLACK).await.unwrap().assert();
}

#[tokio::test]
async fn a_daemon_of_an_app_is_gone_when_its_pod_is() {
    orphans::run(End::ScaleDown, SLACK).await.unwrap().assert();
}

#[tokio::test]
async fn a_daemon_of_an_app_is_gone_when_zeroscale_has_ended() {
    orphans::run(End::Term, SLACK).await.unwrap().assert();
}

#[tokio::test]
async fn a_daemon_of_an_app_is_gone_after_a_kill_of_zeroscale() {
    orphans::run(End::Kill, SLACK).await.unwrap().assert();
}
