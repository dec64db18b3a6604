//! `replay __case`: one case in the namespace that it was started in.
//!
//! The job comes as a line of JSON on stdin, the report leaves as JSON on stdout. A
//! process of its own can have a namespace of its own without `unsafe`, and
//! whatever goes wrong in it stays there.

use super::case::Case;
use super::compare::{self, Slack};
use super::judge;
use super::observed::Observed;
use super::stage::Stage;
use super::steps;
use crate::floor::jitter::Jitter;
use crate::replay::row::{Miss, Verdict};
use anyhow::{Context, bail};
use policy::compat::Compat;
use rustix::process::{Signal, kill_current_process_group};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::io::{self, BufRead, Write};
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// The hidden word on the command line.
pub const WORD: &str = "__case";

/// What a child is to do.
#[derive(Debug, Deserialize, Serialize)]
pub struct Job {
    /// The row, as it stands in the file: the order of routes counts.
    pub row: String,
    /// The sidecar.
    pub binary: PathBuf,
    /// In strict mode.
    pub strict: bool,
    /// The namespace is its own, and loopback is still down.
    pub namespace: bool,
}

/// What came of a case.
#[derive(Debug, Default, Deserialize, Serialize)]
pub struct Report {
    /// Why it does not pass.
    pub why: Option<String>,
    /// The first step that is not as recorded, of a row to be matched.
    pub step: Option<usize>,
    /// There is no check for it.
    pub not_judged: bool,
    /// The outcome of each step that was taken.
    pub got: Vec<Value>,
    /// What was allowed for lateness of this machine.
    pub slack_ms: u64,
    /// The end of what the sidecar wrote.
    pub last_words: String,
}

/// How long a step whose outcome lags may take until it is as recorded.
const LAGS_AT_MOST: Duration = Duration::from_millis(400);

/// How often it is looked at again.
const LOOK: Duration = Duration::from_millis(20);

/// Machines whose timers are later than this cannot judge windows of time.
const MOST_SLACK: Duration = Duration::from_secs(2);

/// Runs the job on stdin.
pub fn main() -> ExitCode {
    let report = work().unwrap_or_else(|error| Report { why: Some(format!("{error:#}")), ..Report::default() });
    let written = serde_json::to_vec(&report).map_err(io::Error::other);
    match written.and_then(|text| io::stdout().lock().write_all(&text)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn work() -> anyhow::Result<Report> {
    let mut text = String::new();
    io::stdin().lock().read_line(&mut text)?;
    thread::spawn(end_with_the_parent);
    let job: Job = serde_json::from_str(&text).context("the job makes no sense")?;
    let case: Case = serde_json::from_str(&job.row).context("malformed row")?;
    if job.namespace {
        loopback_up()?;
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let jitter = Jitter::measure();
    let mode = if job.strict { Compat::Strict } else { Compat::Better };
    Ok(runtime.block_on(run(&case, mode, &job, jitter)))
}

/// The parent holds the other end of stdin for as long as it wants the
/// report: when it is interrupted or killed, nothing of the case may stay.
fn end_with_the_parent() {
    let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
    let _ = kill_current_process_group(Signal::KILL);
    // The first process of a namespace outlives signals, but not this; and
    // the namespace does not outlive it.
    std::process::exit(1);
}

fn loopback_up() -> anyhow::Result<()> {
    let mut ip = Command::new("ip");
    // The report alone goes to stdout.
    ip.args(["link", "set", "lo", "up"]).stdin(Stdio::null()).stdout(Stdio::null());
    let set = ip.status().context("running `ip` (iproute2)")?;
    if !set.success() {
        bail!("`ip link set lo up` failed");
    }
    Ok(())
}

async fn run(case: &Case, mode: Compat, job: &Job, jitter: Jitter) -> Report {
    let mut report = Report::default();
    let mut fault = None;
    match Stage::set(case, mode, &job.binary).await {
        Err(error) => fault = Some(format!("{error:#}")),
        Ok(mut stage) => {
            for (number, step) in case.steps.iter().enumerate() {
                match taken(&mut stage, case, step).await {
                    Ok(got) => report.got.push(got),
                    Err(error) => {
                        fault = Some(format!("step {number} ({}): {error:#}", step.op.name()));
                        break;
                    }
                }
                let so_far = |got: &Value| compare::step(step, got, Slack(MOST_SLACK)).is_err();
                if judge::decides(case) && report.got.last().is_some_and(so_far) {
                    break;
                }
            }
            report.last_words = stage.last_words();
        }
    }
    let slack = (jitter.finish().worst * 3).min(MOST_SLACK);
    let steps = || case.steps.iter().zip(&report.got);
    report.step = steps().position(|(step, got)| compare::step(step, got, Slack(slack)).is_err());
    report.slack_ms = u64::try_from(slack.as_millis()).unwrap_or_default();
    let seen = Observed { case, got: &report.got, mode, slack: Slack(slack) };
    match judge::judge(&seen) {
        // A difference seen before says more than where it led to.
        Err(Miss::Differs(why)) => report.why = Some(fault.map_or(why.clone(), |fault| format!("{why}; then {fault}"))),
        Err(Miss::NotJudged) => report.not_judged = true,
        Ok(()) => report.why = fault,
    }
    report
}

/// Takes a step; looks again for a while when its outcome may lag.
async fn taken(stage: &mut Stage, case: &Case, step: &super::case::Step) -> anyhow::Result<Value> {
    let until = Instant::now() + LAGS_AT_MOST;
    loop {
        let got = steps::take(stage, step).await?;
        let agrees: Verdict = compare::step(step, &got, Slack::default());
        if agrees.is_ok() || !steps::lags(&step.op) || Instant::now() >= until || !waits(case) {
            return Ok(got);
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// A flaw is not waited for.
fn waits(case: &Case) -> bool {
    case.verdict != super::case::Kind::Flaw
}
