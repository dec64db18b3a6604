//! Recorded vectors, judged against the functions that the product calls.
//!
//! A file is known by its parent folder and its name ([`known`]); each kind of
//! row has a small file of its own here. A judge builds inputs from a row,
//! calls the product and compares; it holds no behaviour.
//!
//! Rows are judged in strict mode, but for those whose verdict is `flaw`: they
//! record what the reference gets wrong. Where a file has no verdicts, the
//! default mode only names the rows that differ. A row without a judge is
//! named and counted apart, so passed, failed and not judged add up to the
//! rows of a file.
//!
//! Rows that describe what happens on sockets are driven against the shipped
//! binaries instead, a file at a time ([`cases`]), or against the activator
//! in this process ([`http`]).

mod breaker;
mod capacity;
pub mod cases;
mod collection;
mod conditions;
mod config;
mod decider_init;
mod delay_window;
pub mod files;
mod forwarder;
mod hash;
pub mod http;
pub mod known;
mod lb;
mod metric_status;
mod options;
mod pipeline;
mod probe;
mod reconcile;
mod reporter;
pub mod row;
mod scale;
mod scale_to_zero;
mod scraping;
mod serverless_service;
mod sks;
pub mod spec;
mod stat_server;
mod stat_wire;
mod weighted_coeff;
mod windows;

pub use options::{Options, USAGE};

use files::{Found, Listing};
use policy::compat::Compat;
use row::Miss;
use serde_json::Value;
use std::io::{self, Write};
use std::path::Path;

/// How many rows passed, failed, and were not judged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Rows whose outcome is as recorded.
    pub passed: usize,
    /// Rows whose outcome is not as recorded.
    pub failed: usize,
    /// Rows without a judge, and in the default mode rows that differ where
    /// the file does not say which of the two is right.
    pub skipped: usize,
}

/// What a whole run came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// All files together.
    pub tally: Tally,
    /// Files in folders for which there is no judge.
    pub unknown: usize,
}

impl Outcome {
    /// The exit code of `replay`: 1 for a failure, 2 for an unknown file.
    pub fn exit_code(self, options: &Options) -> u8 {
        match self {
            Outcome { tally, .. } if tally.failed > 0 => 1,
            Outcome { unknown, .. } if unknown > 0 && !options.skip_unknown => 2,
            _ => 0,
        }
    }
}

/// Judges everything in `listing` and writes what came of it.
pub fn run(listing: &Listing, options: &Options, out: &mut impl Write) -> io::Result<Outcome> {
    let mut outcome = Outcome::default();
    for found in &listing.files {
        match found {
            Found::Known { path, judge } => {
                let tally = judge_file(path, *judge, options, out)?;
                outcome.tally.add(tally);
            }
            Found::Driven { path, driver } => {
                let tally = driver(path, options, out)?;
                outcome.tally.add(tally);
            }
            Found::Unknown { path } => {
                outcome.unknown += 1;
                writeln!(out, "{}: unknown", path.display())?;
            }
        }
    }
    let Tally { passed, failed, skipped } = outcome.tally;
    write!(out, "{passed} passed, {failed} failed")?;
    if skipped > 0 {
        write!(out, ", {skipped} skipped")?;
    }
    writeln!(out)?;
    Ok(outcome)
}

/// Judges one file, row by row.
pub fn judge_file(path: &Path, judge: known::Judge, options: &Options, out: &mut impl Write) -> io::Result<Tally> {
    let text = std::fs::read_to_string(path)?;
    let rows: Vec<(usize, Result<Value, serde_json::Error>)> = text
        .lines()
        .enumerate()
        .filter(|(_, line)| !line.trim().is_empty())
        .map(|(number, line)| (number + 1, serde_json::from_str(line)))
        .collect();
    let with_verdicts = rows.iter().any(|(_, row)| row.as_ref().is_ok_and(has_verdict));

    let mut tally = Tally::default();
    for (number, row) in &rows {
        let row = match row {
            Ok(row) => row,
            Err(error) => {
                tally.failed += 1;
                writeln!(out, "line {number}: FAILED: not JSON: {error}")?;
                continue;
            }
        };
        let verdict = row["verdict"].as_str().unwrap_or("match");
        if options.only_match && verdict != "match" {
            continue;
        }
        let mode = options.mode.unwrap_or(mode_of(verdict));
        let result = if verdict == "match" { judge(row, mode) } else { Err(Miss::NotJudged) };
        let name = name(row, *number);
        match result {
            Ok(()) => tally.passed += 1,
            Err(Miss::NotJudged) => {
                tally.skipped += 1;
                writeln!(out, "{name}: not judged")?;
            }
            Err(Miss::Differs(why)) if mode == Compat::Better && !with_verdicts => {
                tally.skipped += 1;
                writeln!(out, "{name}: differs in the default mode: {why}")?;
            }
            Err(Miss::Differs(why)) => {
                tally.failed += 1;
                writeln!(out, "{name}: FAILED: {why}")?;
            }
        }
    }
    let Tally { passed, failed, skipped } = tally;
    writeln!(out, "{}: {passed} passed, {failed} failed, {skipped} not judged", path.display())?;
    Ok(tally)
}

impl Tally {
    fn add(&mut self, other: Tally) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }
}

fn has_verdict(row: &Value) -> bool {
    row.get("verdict").is_some()
}

/// Which mode a row is recorded for, unless the command line says otherwise.
fn mode_of(verdict: &str) -> Compat {
    match verdict {
        "flaw" => Compat::Better,
        _ => Compat::Strict,
    }
}

/// What a row is called in the output.
fn name(row: &Value, number: usize) -> String {
    match (row["id"].as_str(), row["kind"].as_str()) {
        (Some(id), _) => id.to_owned(),
        (None, Some(kind)) => format!("{kind} in line {number}"),
        (None, None) => format!("line {number}"),
    }
}
