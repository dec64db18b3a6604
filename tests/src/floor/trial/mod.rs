//! The experiments: each starts instances, does something to them, and judges
//! what it saw. Their sizes come from outside.

pub mod burst;
pub mod cold_start;
pub mod crashes;
pub mod kills;
pub mod leavers;
pub mod orphans;
pub mod start_failures;
pub mod zero_and_back;

use std::fmt;
use std::time::Duration;

/// Figures and verdicts, in order.
#[derive(Debug)]
pub struct Report {
    /// Limits of times are stretched by this: 1 where the figures themselves
    /// are the point, 10 where the machine may be busy with anything.
    slack: u32,
    /// One line a figure.
    pub rows: Vec<Row>,
}

/// One figure.
#[derive(Clone, Debug)]
pub struct Row {
    /// Of what.
    pub what: String,
    /// As it was.
    pub figure: String,
    /// As it should be; empty where it is only told.
    pub limit: String,
    /// `None` where it is only told.
    pub passed: Option<bool>,
}

impl Report {
    /// Without figures.
    pub fn new(slack: u32) -> Report {
        Report { slack, rows: Vec::new() }
    }

    /// A time that has a limit.
    pub fn time(&mut self, what: impl Into<String>, time: Duration, limit: Duration) {
        let limit = limit * self.slack;
        self.row(what, show(time), format!("<= {}", show(limit)), Some(time <= limit));
    }

    /// A number that is known beforehand.
    pub fn count(&mut self, what: impl Into<String>, count: usize, wanted: usize) {
        self.row(what, count.to_string(), wanted.to_string(), Some(count == wanted));
    }

    /// A number that has a limit; slack is for times.
    pub fn at_most(&mut self, what: impl Into<String>, count: u64, limit: u64) {
        self.row(what, count.to_string(), format!("<= {limit}"), Some(count <= limit));
    }

    /// A share that has a limit, in percent.
    pub fn percent(&mut self, what: impl Into<String>, percent: f64, limit: f64) {
        let limit = limit * f64::from(self.slack);
        self.row(what, format!("{percent:.2} %"), format!("<= {limit:.0} %"), Some(percent <= limit));
    }

    /// Something that must hold; `seen` says what was.
    pub fn holds(&mut self, what: impl Into<String>, holds: bool, seen: impl fmt::Display) {
        self.row(what, seen.to_string(), "holds".to_owned(), Some(holds));
    }

    /// A figure beside the others.
    pub fn tell(&mut self, what: impl Into<String>, figure: impl fmt::Display) {
        self.row(what, figure.to_string(), String::new(), None);
    }

    fn row(&mut self, what: impl Into<String>, figure: String, limit: String, passed: Option<bool>) {
        self.rows.push(Row { what: what.into(), figure, limit, passed });
    }

    /// For tests.
    ///
    /// # Panics
    /// Showing everything, when something did not pass.
    pub fn assert(&self) {
        assert!(self.rows.iter().all(|row| row.passed != Some(false)), "\n{self}");
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Row { what, figure, limit, passed } in &self.rows {
            let verdict = match passed {
                Some(true) => "ok",
                Some(false) => "FAILED",
                None => "",
            };
            let line = format!("{what:<62} {figure:>14}  {limit:<12} {verdict}");
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

/// A time, to two digits behind the point.
pub fn show(time: Duration) -> String {
    match time.as_secs_f64() {
        seconds if seconds >= 10.0 => format!("{seconds:.1} s"),
        seconds => format!("{:.2} ms", seconds * 1e3),
    }
}

/// The middle of the times, and the longest.
pub fn median_and_worst(mut times: Vec<Duration>) -> (Duration, Duration) {
    times.sort_unstable();
    let at = |index: usize| times.get(index).copied().unwrap_or_default();
    (at(times.len() / 2), times.last().copied().unwrap_or_default())
}
