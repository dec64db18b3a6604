//! What one revision's decisions have to remember over a restart, as plain
//! values: bounded in size by the windows' length, and used only while it is
//! young.
//!
//! Without it a new autoscaler knows nothing: it holds what is there for a
//! stable window, as if in panic, and its averages are those of the first few
//! seconds. With it, the time away is as if it had not been: the seconds that
//! were seen move up to the present, since a gap would count as no load.

use crate::active::Activity;
use crate::collect::Collection;
use crate::decider::Status;
use crate::moment::Moment;
use crate::scale::SavedMemory;
use crate::world::Path;
use std::time::Duration;

/// Older than this, nothing of it is used.
pub const AGE_MAX: Duration = Duration::from_secs(600);

/// The seconds whose average stands for those that nobody saw.
const LAST: usize = 5;
/// After more silence than this nobody was reporting: there is nothing to go on.
const SILENT_MAX: u32 = 2;

/// One revision's memory.
#[derive(Clone, Debug, PartialEq)]
pub struct Saved {
    /// When it was taken.
    pub at: Moment,
    /// The seconds in the windows.
    pub load: SavedLoad,
    /// Panic, the delay window, and what holds a number.
    pub memory: SavedMemory,
    /// The last decision.
    pub status: Status,
    /// Starting, active or idle.
    pub activity: Activity,
    /// Pods ordered last.
    pub ordered: Option<u32>,
    /// The path ordered last.
    pub path: Path,
}

impl Saved {
    /// How much of it may be used `now` with that stable window.
    pub fn use_of(&self, stable_window: Duration, now: Moment) -> Use {
        match now.since(self.at) {
            age if age > AGE_MAX || self.at > now + Duration::from_secs(1) => Use::Nothing,
            age if age > stable_window => Use::Activity,
            _ => Use::All,
        }
    }
}

/// How much of a saved memory may be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// It is too old, or from the future.
    Nothing,
    /// The load has been unknown for more than a stable window: only whether
    /// the revision was started, active or idle.
    Activity,
    /// All of it.
    All,
}

/// The seconds of a revision's windows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SavedLoad {
    /// Requests in progress and arrivals of each, the newest last.
    pub seconds: Vec<(f64, f64)>,
    /// So many seconds lay between the newest and the time of saving.
    pub silent: u32,
}

impl SavedLoad {
    /// The seconds of the last `window` before `now`.
    pub fn of(load: &mut Collection, window: Duration, now: Moment) -> SavedLoad {
        let end = now.unix_seconds();
        let span = i64::try_from(window.as_secs()).unwrap_or(i64::MAX).clamp(1, 3600);
        let mut seconds: Vec<(f64, f64)> = Vec::new();
        let mut newest = None;
        for index in end - span + 1..=end {
            if let Some(second) = load.second(index) {
                seconds.push(second);
                newest = Some(index);
            }
        }
        SavedLoad { seconds, silent: newest.map_or(0, |newest| u32::try_from(end - newest).unwrap_or(0)) }
    }

    /// Puts them, saved `at`, into empty windows. The seconds since then get
    /// the average of the last few; the present one is left to new reports.
    pub fn put_into(&self, load: &mut Collection, at: Moment, now: Moment) {
        let newest = at.unix_seconds() - i64::from(self.silent);
        let count = i64::try_from(self.seconds.len()).unwrap_or(i64::MAX);
        let mut add = |index: i64, (concurrency, rps): (f64, f64)| {
            if concurrency.is_finite() && rps.is_finite() {
                load.add(Moment::from_unix_millis(index.saturating_mul(1000)), concurrency, rps);
            }
        };
        self.seconds.iter().zip(newest - count + 1..).for_each(|(&second, index)| add(index, second));
        let last = &self.seconds[self.seconds.len().saturating_sub(LAST)..];
        if self.silent > SILENT_MAX || last.is_empty() {
            return;
        }
        let mean = |of: fn(&(f64, f64)) -> f64| last.iter().map(of).sum::<f64>() / last.len() as f64;
        let filler = (mean(|second| second.0), mean(|second| second.1));
        (newest + 1..now.unix_seconds()).take(3600).for_each(|index| add(index, filler));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collect::{Load, Silence};
    use crate::compat::Compat;
    use crate::revision::{Aggregation, Metric, WindowSpec};
    use crate::stat::Stat;

    fn second(seconds: i64) -> Moment {
        Moment::from_unix_millis(seconds * 1000)
    }

    fn empty() -> Collection {
        let (stable, panic) = (Duration::from_secs(60), Duration::from_secs(6));
        let windows = WindowSpec { stable, panic, aggregation: Aggregation::Linear };
        Collection::new(&windows, Silence::Unknown, Compat::Better)
    }

    #[test]
    fn the_time_between_counts_as_the_last_that_was_seen() {
        let mut load = empty();
        for at in 0..90 {
            let stat = Stat {
                pod_name: "p".into(),
                average_concurrency: if at < 60 { 2.0 } else { 8.0 },
                average_proxied_concurrency: 0.0,
                request_count: 2.0,
                proxied_request_count: 0.0,
            };
            load.record(second(at), &stat).unwrap();
        }
        let saved = SavedLoad::of(&mut load, Duration::from_secs(60), second(89));
        assert_eq!((saved.seconds.len(), saved.silent), (60, 0));
        let mut other = empty();
        saved.put_into(&mut other, second(89), second(110));
        let (stable, panic) = ((10.0 * 2.0 + 50.0 * 8.0) / 60.0, 8.0);
        match other.load(Metric::Concurrency, second(109)) {
            Load::Average { stable: s, panic: p } => assert!((s - stable).abs() < 1e-5 && p == panic, "{s} {p}"),
            none => panic!("{none:?}"),
        }
    }

    #[test]
    fn nothing_is_saved_of_empty_windows() {
        let saved = SavedLoad::of(&mut empty(), Duration::from_secs(60), second(5));
        let mut other = empty();
        saved.put_into(&mut other, second(5), second(10));
        assert_eq!(other.load(Metric::Rps, second(10)), Load::NoData);
    }
}
