//! How late messages arrive that a server sends one by one.

use crate::testapp::monotonic_ns;
use std::io::Write;
use std::time::Duration;

/// Between a message and its sight there may be so much.
const MEDIAN_MAX: Duration = Duration::from_millis(20);
/// For the unlucky one on a machine that does other things; what holds
/// messages back for good still shows.
const WORST_MAX: Duration = Duration::from_secs(2);

/// From sent to seen, for each message.
#[derive(Debug, Default)]
pub struct Lags {
    all: Vec<Duration>,
}

impl Lags {
    /// A message that was sent at that time, on the clock of all processes,
    /// is here.
    pub fn seen(&mut self, sent_ns: u64) {
        self.add(monotonic_ns().saturating_sub(sent_ns));
    }

    /// One more, in nanoseconds.
    pub fn add(&mut self, lag_ns: u64) {
        self.all.push(Duration::from_nanos(lag_ns));
    }

    /// Writes the figures down and judges them.
    ///
    /// # Panics
    /// When there are not `expected` of them, or they are too late.
    pub fn judge(mut self, what: &str, expected: usize) {
        self.all.sort();
        assert_eq!(self.all.len(), expected, "{what}");
        let (median, worst) = (self.all[expected / 2], self.all[expected - 1]);
        tell(&format!("{what}: {expected} messages, median {median:.1?}, worst {worst:.1?} after they were sent"));
        assert!(median <= MEDIAN_MAX && worst <= WORST_MAX, "{what}: {:?}", self.all);
    }
}

/// Writes past what the test harness catches: figures, and what is skipped.
pub fn tell(line: &str) {
    // Without standard error there is nobody to tell.
    let _ = writeln!(std::io::stderr(), "{line}");
}
