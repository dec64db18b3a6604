//! Starts that cannot work: told early and truly, and over by themselves once
//! the cause is mended.

use super::{Report, show};
use crate::floor::client::{Answer, Ask};
use crate::floor::{Instance, TestApp, binaries};
use crate::testapp::monotonic_ns;
use anyhow::Context;
use std::time::{Duration, Instant};

/// From a request to a refusal whose cause is known at once.
const AT_ONCE: Duration = Duration::from_millis(100);
/// From the third crash to the refusal.
const AFTER_CRASHES: Duration = Duration::from_secs(1);
/// Longest wait between two tries, and a little.
const MENDED: Duration = Duration::from_secs(12);

/// A command that is not there, and then is.
///
/// # Errors
/// When something cannot be tried at all.
pub async fn missing_command(slack: u32) -> anyhow::Result<Report> {
    let mut report = Report::new(slack);
    let folder = tempfile::tempdir()?;
    let program = folder.path().join("app");
    let app = TestApp::at(program.clone(), "")?;
    let instance = Instance::start("--window 6s", &app.command).await?;
    let (answer, took) = asked(&instance).await?;
    refused(&mut report, "missing command", &answer, "start_failed", "No such file");
    report.time("missing command: refused after", took, AT_ONCE);
    fails_fast(&mut report, &instance).await?;
    std::os::unix::fs::symlink(binaries::testapp()?, program)?;
    recovers(&mut report, &instance).await?;
    Ok(report)
}

/// A command that exits with 1, until a file is there.
///
/// # Errors
/// When something cannot be tried at all.
pub async fn crashes(slack: u32) -> anyhow::Result<Report> {
    let mut report = Report::new(slack);
    let folder = tempfile::tempdir()?;
    let mended = folder.path().join("mended");
    let app = TestApp::new(&format!("--exit 1 --exit-unless {}", mended.display()))?;
    let instance = Instance::start("--window 6s", &app.command).await?;
    let (answer, took) = asked(&instance).await?;
    let refused_at = monotonic_ns();
    refused(&mut report, "exits with 1", &answer, "start_failed", "exits with 1 as told");
    let seen = app.sightings();
    let third = seen.of("exit").nth(2).context("there were no three crashes")?;
    let after = Duration::from_nanos(refused_at.saturating_sub(third.at));
    report.tell("exits with 1: refused after", show(took));
    report.time("exits with 1: refused after the third crash", after, AFTER_CRASHES);
    fails_fast(&mut report, &instance).await?;
    std::fs::write(mended, "")?;
    recovers(&mut report, &instance).await?;
    Ok(report)
}

/// A command that does not open its port, until a file is there.
///
/// # Errors
/// When something cannot be tried at all.
pub async fn never_opens(start_timeout: Duration, slack: u32) -> anyhow::Result<Report> {
    let mut report = Report::new(slack);
    let folder = tempfile::tempdir()?;
    let mended = folder.path().join("mended");
    let app = TestApp::new(&format!("--open-when {}", mended.display()))?;
    let flags = format!("--window 6s --start-timeout {}ms", start_timeout.as_millis());
    let instance = Instance::start(&flags, &app.command).await?;
    let (answer, took) = asked(&instance).await?;
    refused(&mut report, "never opens its port", &answer, "start_timeout", "did not open port");
    report.holds("never opens its port: not refused before the start timeout", took >= start_timeout, show(took));
    report.time("never opens its port: refused after", took.saturating_sub(start_timeout), AT_ONCE);
    fails_fast(&mut report, &instance).await?;
    std::fs::write(mended, "")?;
    recovers(&mut report, &instance).await?;
    Ok(report)
}

async fn asked(instance: &Instance) -> anyhow::Result<(Answer, Duration)> {
    let began = Instant::now();
    Ok((Ask::get("asked").send(instance.address).await?, began.elapsed()))
}

fn refused(report: &mut Report, what: &str, answer: &Answer, reason: &str, words: &str) {
    report.count(format!("{what}: status"), answer.status.into(), 503);
    let said = answer.reason().unwrap_or("nothing");
    report.holds(format!("{what}: x-zeroscale-reason is {reason}"), said == reason, said);
    let body = answer.text.split_once("\r\n\r\n").map_or("", |parts| parts.1).trim().to_owned();
    report.holds(format!("{what}: its text says `{words}`"), body.contains(words), format!("`{body}`"));
}

/// While the trouble lasts nobody is held for nothing.
async fn fails_fast(report: &mut Report, instance: &Instance) -> anyhow::Result<()> {
    let (answer, took) = asked(instance).await?;
    report.count("the next request: status", answer.status.into(), 503);
    report.time("the next request: refused after", took, AT_ONCE);
    Ok(())
}

/// Nothing is restarted by hand.
async fn recovers(report: &mut Report, instance: &Instance) -> anyhow::Result<()> {
    let began = Instant::now();
    let mut answer = Answer::default();
    while !answer.is_good() && began.elapsed() < MENDED {
        answer = Ask::get("again").send(instance.address).await?;
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    report.holds("served again once the cause is mended", answer.is_good(), answer.status);
    report.time("served again after", began.elapsed(), MENDED);
    let trouble = instance.status().await?.revisions.into_iter().find_map(|revision| revision.trouble);
    report.holds("status tells of no trouble any more", trouble.is_none(), trouble.unwrap_or_default());
    Ok(())
}
