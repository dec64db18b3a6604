//! What is printed of the cases.

use super::Row;
use super::better;
use super::case::Kind;
use super::child::Report;
use super::latin;
use super::table;
use crate::replay::{Options, Tally};
use policy::compat::Compat;
use serde_json::Value;
use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::Path;

/// Counts a row, and says what there is to say about it.
pub(super) fn row(
    row: &Row,
    report: &Report,
    options: &Options,
    tally: &mut Tally,
    out: &mut dyn Write,
) -> io::Result<()> {
    let name = &row.case.name;
    let matched_by_default = row.case.verdict == Kind::Match && row.mode == Compat::Better;
    let named = table::difference(name).filter(|_| matched_by_default);
    match (&report.why, named) {
        (_, _) if report.not_judged => {
            tally.skipped += 1;
            writeln!(out, "{name}: not judged")?;
        }
        (Some(why), Some(named)) if report.step == Some(named.step) => {
            tally.skipped += 1;
            writeln!(out, "{name}: differs in the default mode: {} ({why})", named.reason)?;
        }
        (Some(why), _) => {
            tally.failed += 1;
            writeln!(out, "{name}: FAILED: {why}")?;
        }
        (None, Some(_)) => {
            tally.passed += 1;
            writeln!(out, "{name}: named as different in the default mode, but is as recorded")?;
        }
        (None, None) => tally.passed += 1,
    }
    if options.verbose || !options.cases.is_empty() {
        if report.why.is_none() {
            writeln!(out, "{name}: passed")?;
        }
        details(row, report, out)?;
    }
    Ok(())
}

/// The last lines about a file.
pub(super) fn summary(path: &Path, rows: &[Row], tally: Tally, out: &mut dyn Write) -> io::Result<()> {
    let path = path.display();
    let names: BTreeSet<&str> = rows.iter().map(|row| row.case.name.as_str()).collect();
    let checks: Vec<_> = better::all().filter(|check| names.contains(check.case)).collect();
    let judged: BTreeSet<&str> = checks.iter().map(|check| check.case).collect();
    writeln!(out, "{path}: {} named checks of the better outcome, for {} rows", checks.len(), judged.len())?;
    let Tally { passed, failed, skipped } = tally;
    writeln!(out, "{path}: {passed} passed, {failed} failed, {skipped} not judged")
}

/// Step by step: what was recorded, and what came.
fn details(row: &Row, report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let case = &row.case;
    writeln!(out, "  {} ({:?}, {:?}; {} ms for this machine)", case.about, case.verdict, row.mode, report.slack_ms)?;
    for (number, step) in case.steps.iter().enumerate() {
        let conn = step.op.conn().unwrap_or_default();
        writeln!(out, "  step {number}: {} {conn}", step.op.name())?;
        let Some(got) = report.got.get(number) else {
            writeln!(out, "    not taken")?;
            continue;
        };
        if !step.expect.is_null() {
            writeln!(out, "    recorded {}", short(&step.expect))?;
            writeln!(out, "    got      {}", short(got))?;
        }
    }
    if !report.last_words.is_empty() {
        writeln!(out, "  the sidecar's last words: {}", report.last_words)?;
    }
    Ok(())
}

fn short(value: &Value) -> String {
    latin::shortened(&value.to_string())
}
