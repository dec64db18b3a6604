//! Which case runs when: long ones first, several at once.

use super::case::{Case, Op, TIMEOUT_MS};
use super::child::{Job, Report};
use super::netns::Apart;
use anyhow::Context;
use rustix::process::{Pid, Signal, kill_process_group};
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::mpsc;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// What a case may take beyond what its steps may.
const BEYOND: Duration = Duration::from_secs(60);

/// One case to run.
pub struct Task {
    /// What the child is to do.
    pub job: Job,
    /// How long it runs when all is well.
    pub expected: Duration,
    /// When it is given up.
    pub limit: Duration,
}

/// Runs all tasks, at most `at_once` at a time; reports in their order.
pub fn run(tasks: Vec<Task>, at_once: usize, apart: &Apart, replay: &Path) -> Vec<Report> {
    let mut order: Vec<usize> = (0..tasks.len()).collect();
    // The longest last, since they are taken from the end.
    order.sort_by_key(|number| tasks[*number].expected);
    let (queue, tasks) = (Mutex::new(order), &tasks);
    let reports: Mutex<Vec<Option<Report>>> = Mutex::new(tasks.iter().map(|_| None).collect());
    thread::scope(|scope| {
        for _ in 0..at_once.clamp(1, tasks.len().max(1)) {
            scope.spawn(|| {
                loop {
                    let next = queue.lock().unwrap_or_else(PoisonError::into_inner).pop();
                    let Some(number) = next else { return };
                    let report = one(&tasks[number], apart, replay)
                        .unwrap_or_else(|error| Report { why: Some(format!("{error:#}")), ..Report::default() });
                    reports.lock().unwrap_or_else(PoisonError::into_inner)[number] = Some(report);
                }
            });
        }
    });
    let reports = reports.into_inner().unwrap_or_else(PoisonError::into_inner);
    reports.into_iter().map(Option::unwrap_or_default).collect()
}

/// How long a case runs when all is well, and how long at most.
pub fn times(case: &Case) -> (Duration, Duration) {
    let (mut expected, mut limit) = (0, 0);
    for step in &case.steps {
        let named = match &step.op {
            Op::Sleep { ms } => *ms,
            Op::Recv { timeout_ms, .. }
            | Op::RecvHead { timeout_ms, .. }
            | Op::RecvRaw { timeout_ms, .. }
            | Op::WaitExit { timeout_ms } => timeout_ms.unwrap_or(TIMEOUT_MS),
            Op::H2(h2) => h2.timeout_ms.unwrap_or(TIMEOUT_MS),
            _ => TIMEOUT_MS,
        };
        limit += named;
        let since =
            ["elapsed_ms", "elapsed_ms_since_signal_or_start"].iter().find_map(|key| step.expect[key][0].as_u64());
        expected += match (&step.op, since) {
            (Op::Sleep { ms }, _) => *ms,
            (_, Some(low)) => low,
            (_, None) if step.expect["timeout"] == true => named,
            _ => 100,
        };
    }
    (Duration::from_millis(expected), Duration::from_millis(limit) + BEYOND)
}

fn one(task: &Task, apart: &Apart, replay: &Path) -> anyhow::Result<Report> {
    let mut command = apart.command(replay);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).process_group(0);
    let mut child = command.spawn().context("starting a case")?;
    let mut job = serde_json::to_vec(&task.job)?;
    job.push(b'\n');
    // Held until the report is there: the case ends with whoever asked for it.
    let mut stdin = child.stdin.take().context("no stdin")?;
    stdin.write_all(&job)?;
    let mut stdout = child.stdout.take().context("no stdout")?;
    let (done, finished) = mpsc::channel();
    let reader = thread::spawn(move || {
        let mut text = Vec::new();
        let read = stdout.read_to_end(&mut text).map(|_| text);
        let _ = done.send(());
        read
    });
    let in_time = finished.recv_timeout(task.limit).is_ok();
    end(&mut child);
    let text = reader.join().unwrap_or_else(|_| Ok(Vec::new()))?;
    if !in_time {
        anyhow::bail!("it did not come to an end within {:?}", task.limit);
    }
    serde_json::from_slice(&text).context("the case ended without a report")
}

/// Ends a child, and what it left behind: it is not waited for before that,
/// so its group cannot be another's by then.
fn end(child: &mut Child) {
    let _ = kill_process_group(Pid::from_child(child), Signal::KILL);
    let _ = child.wait();
}
