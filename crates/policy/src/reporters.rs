//! Activators that have fallen silent while they had requests.
//!
//! An activator tells of a revision each second for as long as it has requests
//! for it, and then once that it has none. One that stops without that last
//! word hangs, or cannot be heard: its requests are still there, as far as is
//! known. So what it said last is taken to go on, for a while.
//!
//! Pods are not among them: of them it is known whether they exist.

use crate::moment::Moment;
use crate::stat::Stat;
use std::sync::Arc;
use std::time::Duration;

/// What somebody said last counts for so long: as long as the reference's
/// default window, in which it would count as well.
pub const AGE_MAX: Duration = Duration::from_secs(60);
/// So many are remembered of one revision; no cluster has more activators.
const REPORTERS_MAX: usize = 256;
const SECOND: Duration = Duration::from_secs(1);

/// Those who said last that they have requests of one revision.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reporters {
    list: Vec<Reporter>,
}

#[derive(Clone, Debug, PartialEq)]
struct Reporter {
    last: Stat,
    /// The second of its last report.
    heard: Moment,
    /// The last second that was filled in for it.
    filled: Moment,
    /// Requests in progress that it has announced since its last report. The
    /// next one leaves them out, and may be zero though they are there.
    announced: f64,
}

impl Reporters {
    /// Somebody has reported for the second of `at`, out of turn where it is
    /// `urgent`. False when that second was filled in already.
    pub fn note(&mut self, at: Moment, stat: &Stat, urgent: bool) -> bool {
        let second = at.truncated_to_second();
        let known = self.list.iter().position(|reporter| reporter.last.pod_name == stat.pod_name);
        let Some(place) = known else {
            if stat.average_concurrency > 0.0 && self.list.len() < REPORTERS_MAX {
                let announced = if urgent { stat.average_concurrency } else { 0.0 };
                self.list.push(Reporter { last: stat.clone(), heard: second, filled: Moment::MIN, announced });
            }
            return true;
        };
        let reporter = &mut self.list[place];
        let is_new = second > reporter.filled;
        if second < reporter.heard {
            return is_new;
        }
        reporter.heard = second;
        if urgent {
            reporter.announced += stat.average_concurrency;
            reporter.last.average_concurrency += stat.average_concurrency;
            return is_new;
        }
        let announced = std::mem::take(&mut reporter.announced);
        reporter.last = Stat { average_concurrency: stat.average_concurrency + announced, ..stat.clone() };
        if reporter.last.average_concurrency <= 0.0 {
            self.list.swap_remove(place);
            if self.list.is_empty() {
                self.list = Vec::new();
            }
        }
        is_new
    }

    /// Seconds for which somebody should have reported and has not, by `now`,
    /// each with what is taken for it. The second that runs is not among them.
    pub fn fill(&mut self, now: Moment, mut take: impl FnMut(Moment, &Stat)) {
        let end = now.truncated_to_second();
        for reporter in &mut self.list {
            let mut second = reporter.heard.max(reporter.filled) + SECOND;
            // After a pause of the machine most of it is too old for any use.
            while second < end && second.since(reporter.heard) <= AGE_MAX {
                take(second, &reporter.last);
                reporter.filled = second;
                second = second + SECOND;
            }
        }
        self.list.retain(|reporter| end.since(reporter.heard) <= AGE_MAX + SECOND);
    }

    /// Forgets one who turns out to be a pod.
    pub fn retain(&mut self, is_one: impl Fn(&Arc<str>) -> bool) {
        self.list.retain(|reporter| is_one(&reporter.last.pod_name));
    }

    /// Bytes held beside its own size.
    pub fn heap_bytes(&self) -> usize {
        self.list.capacity() * size_of::<Reporter>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn millis(millis: i64) -> Moment {
        Moment::from_unix_millis(millis)
    }

    fn stat(concurrency: f64) -> Stat {
        Stat {
            pod_name: "activator".into(),
            average_concurrency: concurrency,
            average_proxied_concurrency: 0.0,
            request_count: concurrency,
            proxied_request_count: 0.0,
        }
    }

    fn filled(reporters: &mut Reporters, now: i64) -> Vec<(i64, f64)> {
        let mut filled = Vec::new();
        reporters.fill(millis(now), |at, stat| filled.push((at.unix_seconds(), stat.average_concurrency)));
        filled
    }

    #[test]
    fn who_falls_silent_is_taken_to_go_on_for_a_bounded_time() {
        let mut reporters = Reporters::default();
        assert!(reporters.note(millis(10_020), &stat(3.0), false));
        assert_eq!(filled(&mut reporters, 11_900), []);
        assert_eq!(filled(&mut reporters, 13_100), [(11, 3.0), (12, 3.0)]);
        assert_eq!(filled(&mut reporters, 13_900), []);
        let rest = filled(&mut reporters, 200_000);
        assert_eq!((rest.first(), rest.last(), rest.len()), (Some(&(13, 3.0)), Some(&(70, 3.0)), 58));
        assert_eq!(reporters, Reporters::default());
    }

    #[test]
    fn the_last_word_of_who_is_idle_is_zero_and_nothing_is_filled_in_then() {
        let mut reporters = Reporters::default();
        reporters.note(millis(10_000), &stat(3.0), false);
        reporters.note(millis(11_000), &stat(0.0), false);
        assert_eq!((filled(&mut reporters, 20_000), reporters.heap_bytes()), (vec![], 0));
    }

    #[test]
    fn what_was_filled_in_is_not_counted_again_when_it_comes_after_all() {
        let mut reporters = Reporters::default();
        reporters.note(millis(10_000), &stat(3.0), false);
        filled(&mut reporters, 14_000);
        assert!(!reporters.note(millis(13_000), &stat(9.0), false));
        assert!(reporters.note(millis(14_000), &stat(2.0), false));
        assert_eq!(filled(&mut reporters, 16_100), [(15, 2.0)]);
    }

    #[test]
    fn announced_requests_count_although_the_next_report_leaves_them_out() {
        let mut reporters = Reporters::default();
        reporters.note(millis(10_500), &stat(1.0), true);
        reporters.note(millis(10_900), &stat(2.0), true);
        assert_eq!(filled(&mut reporters.clone(), 12_100), [(11, 3.0)]);
        reporters.note(millis(11_000), &stat(0.0), false);
        assert_eq!(filled(&mut reporters.clone(), 13_100), [(12, 3.0)]);
        reporters.note(millis(12_000), &stat(3.0), false);
        assert_eq!(filled(&mut reporters, 14_100), [(13, 3.0)]);
    }

    #[test]
    fn an_announced_request_that_is_over_soon_leaves_nothing_behind() {
        let mut reporters = Reporters::default();
        reporters.note(millis(10_900), &stat(1.0), true);
        reporters.note(millis(11_000), &stat(0.0), false);
        reporters.note(millis(12_000), &stat(0.0), false);
        assert_eq!((filled(&mut reporters, 20_000), reporters.list.len()), (vec![], 0));
    }

    #[test]
    fn who_is_remembered_is_bounded() {
        let mut reporters = Reporters::default();
        for n in 0..10_000 {
            reporters.note(millis(10_000), &Stat { pod_name: format!("{n}").into(), ..stat(1.0) }, false);
        }
        assert_eq!(reporters.list.len(), REPORTERS_MAX);
    }
}
