//! `queue-proxy/cases`: black-box cases, driven against the shipped sidecar
//! over sockets.
//!
//! Each case runs in a process and a network namespace of its own
//! ([`child`], [`netns`]): a scripted app ([`app`]) and the sidecar start,
//! the steps are taken ([`steps`]), and what came of them is compared with
//! the recording ([`compare`]) or, where the original is not to be matched,
//! looked at by named checks ([`better`]). Several run at once
//! ([`schedule`]).

pub mod app;
pub mod better;
pub mod binary;
pub mod case;
pub mod child;
pub mod client;
pub mod compare;
pub mod env;
pub mod exposition;
pub mod judge;
pub mod latin;
pub mod netns;
pub mod observed;
pub mod pattern;
mod print;
pub mod schedule;
pub mod sidecar;
pub mod stage;
pub mod stat;
pub mod steps;
pub mod table;
pub mod tls;
pub mod wire;

#[cfg(test)]
mod tests;

use super::{Options, Tally};
use case::{Case, Kind};
use child::Job;
use policy::compat::Compat;
use schedule::Task;
use std::io::{self, Write};
use std::path::Path;

/// One row of the file.
pub(in crate::replay) struct Row {
    case: Case,
    mode: Compat,
}

/// Drives all cases of a file that the options ask for.
///
/// # Errors
/// When the file cannot be read, or there is no sidecar to drive.
pub fn drive(path: &Path, options: &Options, out: &mut dyn Write) -> io::Result<Tally> {
    let text = std::fs::read_to_string(path)?;
    let mut tally = Tally::default();
    let (mut rows, mut texts) = (Vec::new(), Vec::new());
    for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        match serde_json::from_str::<Case>(line) {
            Ok(case) if asked_for(&case, options) => {
                let mode = options.mode.unwrap_or(judge::mode_of(case.verdict));
                rows.push(Row { case, mode });
                texts.push(line.to_owned());
            }
            Ok(_) => {}
            Err(error) => {
                tally.failed += 1;
                writeln!(out, "line {}: FAILED: malformed row: {error}", number + 1)?;
            }
        }
    }
    let unknown = options.cases.iter().filter(|name| !rows.iter().any(|row| row.case.name == **name));
    for name in unknown {
        tally.failed += 1;
        writeln!(out, "{name}: FAILED: there is no such case")?;
    }
    if !rows.is_empty() {
        let reports = run(&rows, texts, options).map_err(|error| io::Error::other(format!("{error:#}")))?;
        for (row, report) in rows.iter().zip(&reports) {
            print::row(row, report, options, &mut tally, out)?;
        }
    }
    print::summary(path, &rows, tally, out)?;
    Ok(tally)
}

fn asked_for(case: &Case, options: &Options) -> bool {
    let by_verdict = !options.only_match || case.verdict == Kind::Match;
    let by_name = options.cases.is_empty() || options.cases.contains(&case.name);
    by_verdict && by_name
}

fn run(rows: &[Row], texts: Vec<String>, options: &Options) -> anyhow::Result<Vec<child::Report>> {
    let replay = std::env::current_exe()?;
    let binary = binary::find(&replay)?;
    let apart = netns::Apart::find()?;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let at_once = apart.at_once(options.jobs.unwrap_or(cores * 4));
    eprintln!("replay: {} cases against {}, {at_once} at once", rows.len(), binary.display());
    let task = |(row, text): (&Row, String)| {
        let (expected, limit) = schedule::times(&row.case);
        let strict = row.mode == Compat::Strict;
        Task { job: Job { row: text, binary: binary.clone(), strict, namespace: apart.namespaces() }, expected, limit }
    };
    let tasks = rows.iter().zip(texts).map(task).collect();
    Ok(schedule::run(tasks, at_once, &apart, &replay))
}
