//! Tables of text.

use crate::book::Book;
use crate::goals::Judged;
use crate::summary::Summary;
use std::fmt::Write;

/// Ratios (or figures) beside their goals.
pub(crate) fn goals(judged: &[Judged]) -> String {
    let mut lines = vec![
        ["row", "measure", "ours / theirs", "min", "quarter", "median", "quarter", "max", "goal", ""]
            .map(str::to_owned)
            .to_vec(),
    ];
    for judged in judged {
        let who = match judged.against {
            Some(peer) => format!("{} / {}", judged.ours.name(), peer.name()),
            None => judged.ours.name().to_owned(),
        };
        let mut line = vec![judged.row.to_owned(), judged.measure.to_owned(), who];
        match judged.figures {
            Some(Summary { min, lower, median, upper, max, .. }) => {
                line.extend([min, lower, median, upper, max].map(number));
            }
            None => line.extend(["-"; 5].map(str::to_owned)),
        }
        line.push(format!("<= {}", number(judged.goal)));
        let verdict = match judged.met {
            Some(true) => "met",
            Some(false) => "MISSED",
            None => "not measured",
        };
        line.push(verdict.to_owned());
        lines.push(line);
    }
    aligned(&lines, 3)
}

/// All figures, by row and peer.
pub(crate) fn figures(book: &Book) -> String {
    let mut lines = vec![
        ["row", "measure", "peer", "min", "quarter", "median", "quarter", "max", "rounds", "unit"]
            .map(str::to_owned)
            .to_vec(),
    ];
    for series in &book.series {
        let Some(Summary { min, lower, median, upper, max, count }) = Summary::of(&series.values()) else { continue };
        let mut line = vec![series.row.to_owned(), series.measure.to_owned(), series.peer.name().to_owned()];
        line.extend([min, lower, median, upper, max].map(number));
        line.extend([count.to_string(), series.unit.to_owned()]);
        lines.push(line);
    }
    aligned(&lines, 3)
}

/// Three digits that mean something.
pub(crate) fn number(value: f64) -> String {
    let size = value.abs();
    match () {
        () if size == 0.0 || size >= 100.0 => format!("{value:.0}"),
        () if size >= 10.0 => format!("{value:.1}"),
        () if size >= 0.1 => format!("{value:.2}"),
        () => format!("{value:.3}"),
    }
}

/// Columns from `right` on are aligned to the right.
fn aligned(lines: &[Vec<String>], right: usize) -> String {
    let columns = lines.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| lines.iter().filter_map(|line| line.get(column)).map(String::len).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for line in lines {
        for (column, cell) in line.iter().enumerate() {
            let width = widths[column];
            let last = column + 1 == columns;
            let _ = match () {
                () if last => write!(text, "{cell}"),
                () if column >= right => write!(text, "{cell:>width$}  "),
                () => write!(text, "{cell:width$}  "),
            };
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_digits() {
        assert_eq!([1234.5, 12.34, 1.234, 0.1234, 0.01234].map(number), ["1234", "12.3", "1.23", "0.12", "0.012"]);
    }
}
