//! The shipped binary with commands that cannot work (the campaign
//! `start-failures`).

use std::time::Duration;
use tests::floor::trial::start_failures::{crashes, missing_command, never_opens};

/// Busy machines are slow: ten times the figures.
const SLACK: u32 = 10;

#[tokio::test]
async fn a_missing_command_is_told_at_once_and_used_once_it_is_there() {
    missing_command(SLACK).await.unwrap().assert();
}

#[tokio::test]
async fn three_crashes_are_told_with_the_apps_last_words_and_end_when_it_is_mended() {
    crashes(SLACK).await.unwrap().assert();
}

#[tokio::test]
async fn a_port_that_never_opens_is_told_at_the_start_timeout_and_ends_when_it_does() {
    never_opens(Duration::from_secs(1), SLACK).await.unwrap().assert();
}
