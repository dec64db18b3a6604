//! From zero and back: no process before the first request, none when idle,
//! and a second request wakes the service again.

use super::Report;
use crate::floor::Instance;
use crate::floor::client::Ask;
use std::ffi::OsString;
use std::time::{Duration, Instant};

/// From the last request to the last process.
const TO_ZERO: Duration = Duration::from_secs(15);

/// Serves `command` through `rounds` sleeps.
///
/// # Errors
/// When something cannot be tried at all.
pub async fn run(command: &[OsString], rounds: usize, slack: u32) -> anyhow::Result<Report> {
    let mut report = Report::new(slack);
    let instance = Instance::start("--window 6s", command).await?;
    report.count("processes of the app before the first request", instance.apps().len(), 0);
    for round in 1..=rounds {
        let answer = Ask::get(round).send(instance.address).await?;
        report.holds(format!("request {round} at zero"), answer.is_good(), answer.status);
        report.count(format!("processes of the app after request {round}"), instance.apps().len(), 1);
        let began = Instant::now();
        instance.until_zero().await?;
        report.time(format!("idle to zero, time {round}"), began.elapsed(), TO_ZERO);
    }
    Ok(report)
}
