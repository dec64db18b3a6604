//! The tables of `docs/performance.md`.

use super::table::number;
use crate::book::{Book, Series};
use crate::goals::Judged;
use crate::peers::Peer;
use crate::summary::Summary;
use std::fmt::Write;

/// Goals; the same at an equal rate; medians of all peers.
pub(crate) fn text(book: &Book, judged: &[Judged], equal: &[Judged]) -> String {
    let mut text = String::new();
    goals(&mut text, "Goals", judged);
    if !equal.is_empty() {
        goals(&mut text, "At an equal rate", equal);
    }
    figures(&mut text, book);
    text
}

fn goals(text: &mut String, title: &str, judged: &[Judged]) {
    let _ = writeln!(text, "## {title}\n");
    let _ = writeln!(text, "| row | what | ours ÷ theirs | min | quartiles | max | median | goal | |");
    let _ = writeln!(text, "| --- | --- | --- | --- | --- | --- | --- | --- | --- |");
    for judged in judged {
        let against = judged.against.map_or(String::new(), |peer| format!(" ÷ {}", peer.name()));
        let verdict = match judged.met {
            Some(true) => "met",
            Some(false) => "missed",
            None => "not measured",
        };
        let figures = match judged.figures {
            Some(Summary { min, lower, median, upper, max, .. }) => {
                let [min, lower, median, upper, max] = [min, lower, median, upper, max].map(number);
                format!("{min} | {lower}–{upper} | {max} | **{median}**")
            }
            None => "| | |".to_owned(),
        };
        let (row, measure, ours, goal) = (judged.row, judged.measure, judged.ours.name(), number(judged.goal));
        let _ = writeln!(text, "| {row} | {measure} | {ours}{against} | {figures} | ≤ {goal} | {verdict} |");
    }
    text.push('\n');
}

fn figures(text: &mut String, book: &Book) {
    let mut peers: Vec<Peer> = book.series.iter().map(|series| series.peer).collect();
    peers.sort_unstable();
    peers.dedup();
    let _ = writeln!(text, "## Medians\n");
    let names: Vec<&str> = peers.iter().map(|peer| peer.name()).collect();
    let _ = writeln!(text, "| row | what | {} |", names.join(" | "));
    let _ = writeln!(text, "| --- | --- |{}", " --- |".repeat(peers.len()));
    let mut told: Vec<(&str, &str)> = Vec::new();
    for Series { row, measure, unit, .. } in &book.series {
        if told.contains(&(row, measure)) {
            continue;
        }
        told.push((row, measure));
        let median = |peer: &Peer| book.summary(row, measure, *peer).map_or(String::new(), |all| number(all.median));
        let cells: Vec<String> = peers.iter().map(median).collect();
        let unit = if unit.is_empty() { String::new() } else { format!(", {unit}") };
        let _ = writeln!(text, "| {row} | {measure}{unit} | {} |", cells.join(" | "));
    }
}
