//! Loads from files.

use super::{Load, START, Second};
use std::io;
use std::path::Path;

/// Seconds that a file may have: a month.
const SECONDS_MAX: usize = 31 * 86_400;
/// The highest numbers that make sense.
const OFFERED_MAX: f64 = 1e7;
const START_MAX: f64 = 3600.0;

/// Reads a CSV file: a line a second, the offered concurrency, and optionally
/// the seconds that a pod takes to start from there on. A first line that
/// begins with no number is a heading; empty lines and what follows a `#` are
/// passed over.
///
/// # Errors
/// When it cannot be read, or a line makes no sense; the line is named.
pub fn read(path: &Path) -> io::Result<Load> {
    let name = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    parse(&name, &std::fs::read_to_string(path)?)
        .map_err(|why| io::Error::new(io::ErrorKind::InvalidData, format!("{}: {why}", path.display())))
}

fn parse(name: &str, text: &str) -> Result<Load, String> {
    let mut seconds = Vec::new();
    let mut start = START;
    let mut heading = true;
    for (number, line) in text.trim_start_matches('\u{feff}').lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default().trim();
        if line.is_empty() {
            continue;
        }
        let mut fields = line.split([',', ';']).map(|field| field.trim().trim_matches('"'));
        let first = fields.next().unwrap_or_default();
        if std::mem::take(&mut heading) && first.parse::<f64>().is_err() {
            continue;
        }
        let fault = |what: &str| format!("line {}: {what}", number + 1);
        let offered = number_of(first, OFFERED_MAX).ok_or_else(|| fault("the offered concurrency makes no sense"))?;
        match fields.next() {
            None | Some("") => {}
            Some(field) => start = number_of(field, START_MAX).ok_or_else(|| fault("the start time makes no sense"))?,
        }
        if seconds.len() == SECONDS_MAX {
            return Err(fault("this is longer than a month"));
        }
        seconds.push(Second { offered, start });
    }
    if seconds.is_empty() {
        return Err("there is no second in it".to_owned());
    }
    Ok(Load { name: name.to_owned(), seconds, restarts: Vec::new() })
}

fn number_of(field: &str, most: f64) -> Option<f64> {
    field.parse().ok().filter(|number: &f64| (0.0..=most).contains(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(text: &str) -> Result<Vec<(f64, f64)>, String> {
        Ok(parse("x", text)?.seconds.iter().map(|second| (second.offered, second.start)).collect())
    }

    #[test]
    fn a_heading_is_passed_over_and_a_start_time_holds_from_there_on() {
        let text = "concurrency,start\r\n1\r\n2.5, 20\r\n\r\n3\r\n4,0\r\n";
        assert_eq!(numbers(text).unwrap(), [(1.0, START), (2.5, 20.0), (3.0, 20.0), (4.0, 0.0)]);
        assert_eq!(numbers("7\n").unwrap(), [(7.0, START)]);
    }

    #[test]
    fn nonsense_is_told_with_its_line() {
        for (text, line) in [("1\nx\n", "line 2"), ("1\n-1\n", "line 2"), ("1,nan\n", "line 1"), ("a\nb\n", "line 2")] {
            assert!(numbers(text).unwrap_err().starts_with(line), "{text:?}");
        }
        assert!(numbers("head\n").is_err() && numbers("").is_err());
    }
}
