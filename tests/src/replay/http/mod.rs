//! `activator/http`: requests as raw bytes to the activator, over sockets.
//!
//! Each row gets an activator of its own in this process, on a free port
//! (`stage`), with pods that follow a script (`pod`). What came of it is
//! compared with the recording (`compare`) or, where the original is not to
//! be matched, looked at by named checks ([`better`]). Several rows run at
//! once.

pub mod better;
mod compare;
mod pod;
pub mod row;
mod stage;
pub mod table;

use super::row::Miss;
use super::{Options, Tally, mode_of};
use policy::compat::Compat;
use row::{Row, Seen};
use std::io::{self, Write};
use std::path::Path;
use tokio::runtime::Builder;
use tokio::task::JoinSet;

/// Rows that run at once where the command line does not say.
const AT_ONCE: usize = 8;

/// What came of a row: what was seen, or why nothing was.
type Outcome = Result<Seen, String>;

/// Drives all rows of a file that the options ask for.
///
/// # Errors
/// When the file cannot be read.
pub fn drive(path: &Path, options: &Options, out: &mut dyn Write) -> io::Result<Tally> {
    let text = std::fs::read_to_string(path)?;
    let mut tally = Tally::default();
    let mut rows = Vec::new();
    for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        match serde_json::from_str::<Row>(line) {
            Ok(row) if asked_for(&row, options) => {
                let mode = options.mode.unwrap_or(mode_of(&row.verdict));
                rows.push((row, mode));
            }
            Ok(_) => {}
            Err(error) => {
                tally.failed += 1;
                writeln!(out, "line {}: FAILED: malformed row: {error}", number + 1)?;
            }
        }
    }
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let outcomes = runtime.block_on(run(&rows, options.jobs.unwrap_or(AT_ONCE)));
    for ((row, mode), outcome) in rows.iter().zip(&outcomes) {
        print(row, *mode, outcome.as_ref(), &mut tally, out)?;
        if options.verbose || !options.cases.is_empty() {
            writeln!(out, "  {} ({}, {mode:?})\n  recorded {row:?}\n  got      {outcome:?}", row.label, row.verdict)?;
        }
    }
    let path = path.display();
    let checks = better::CHECKS.iter().filter(|check| rows.iter().any(|(row, _)| row.id == check.row)).count();
    writeln!(out, "{path}: {checks} named checks of the better outcome")?;
    let Tally { passed, failed, skipped } = tally;
    writeln!(out, "{path}: {passed} passed, {failed} failed, {skipped} not judged")?;
    Ok(tally)
}

fn asked_for(row: &Row, options: &Options) -> bool {
    let by_verdict = !options.only_match || row.verdict == "match";
    by_verdict && (options.cases.is_empty() || options.cases.contains(&row.id))
}

/// `None` where there is nothing to be judged.
async fn run(rows: &[(Row, Compat)], at_once: usize) -> Vec<Option<Outcome>> {
    let mut outcomes: Vec<Option<Outcome>> = rows.iter().map(|_| None).collect();
    let mut waiting = rows.iter().enumerate().filter(|(_, (row, _))| is_judged(row));
    let mut running = JoinSet::new();
    loop {
        while running.len() < at_once
            && let Some((place, (row, mode))) = waiting.next()
        {
            let (row, mode) = (row.clone(), *mode);
            running.spawn(async move { (place, stage::play(&row, mode).await) });
        }
        match running.join_next().await {
            Some(Ok((place, outcome))) => outcomes[place] = Some(outcome),
            Some(Err(error)) => eprintln!("replay: a row ended by itself: {error}"),
            None => return outcomes,
        }
    }
}

/// A row that cannot happen behind the real queue, or whose better outcome is
/// the original's, is not.
fn is_judged(row: &Row) -> bool {
    if row.verdict == "match" { row.id != table::CANNOT_HAPPEN } else { better::of(&row.id).next().is_some() }
}

/// Judges a row.
///
/// # Errors
/// Why it does not pass.
fn judge(row: &Row, mode: Compat, outcome: &Outcome) -> Result<(), Miss> {
    let seen = outcome.as_ref().map_err(|why| Miss::Differs(why.clone()))?;
    if row.verdict == "match" {
        return compare::in_full(row, seen);
    }
    if row.verdict == "flaw" && mode == Compat::Strict {
        return Err(Miss::NotJudged);
    }
    better::hold(&row.id, seen).map_err(Miss::Differs)
}

fn print(row: &Row, mode: Compat, outcome: Option<&Outcome>, tally: &mut Tally, out: &mut dyn Write) -> io::Result<()> {
    let id = &row.id;
    let named = table::reason(id).filter(|_| row.verdict == "match" && mode == Compat::Better);
    let verdict = outcome.map_or(Err(Miss::NotJudged), |outcome| judge(row, mode, outcome));
    match (verdict, named) {
        (Err(Miss::NotJudged), _) => {
            tally.skipped += 1;
            writeln!(out, "{id}: not judged")
        }
        (Err(Miss::Differs(why)), Some(reason)) => {
            tally.skipped += 1;
            writeln!(out, "{id}: differs in the default mode: {reason} ({why})")
        }
        (Err(Miss::Differs(why)), None) => {
            tally.failed += 1;
            writeln!(out, "{id}: FAILED: {why}")
        }
        (Ok(()), named) => {
            tally.passed += 1;
            match named {
                Some(_) => writeln!(out, "{id}: named as different in the default mode, but is as recorded"),
                None => Ok(()),
            }
        }
    }
}
