//! The shipped binary, from zero and back (the campaigns `zero-and-back` and
//! `cold-start` at a reduced size).

use std::ffi::OsString;
use std::process::Command;
use tests::floor::trial::cold_start::{self, Size};
use tests::floor::trial::zero_and_back;

/// Busy machines are slow: ten times the figures.
const SLACK: u32 = 10;

#[tokio::test]
async fn a_common_server_starts_at_the_first_request_ends_when_idle_and_wakes_again() {
    if Command::new("python3").arg("--version").output().is_err() {
        eprintln!("SKIPPED: there is no python3");
        return;
    }
    let command = ["python3", "-m", "http.server", "{port}"].map(OsString::from);
    zero_and_back::run(&command, 2, SLACK).await.unwrap().assert();
}

#[tokio::test]
async fn a_start_costs_little_beside_that_of_a_quick_app() {
    let size = Size { instances: 5, starts: 1, slack: SLACK };
    cold_start::run("0-2", size).await.unwrap().assert();
}

#[tokio::test]
async fn a_start_costs_little_beside_that_of_a_slow_app() {
    let size = Size { instances: 5, starts: 1, slack: SLACK };
    cold_start::run("300", size).await.unwrap().assert();
}
