//! A revision some time ahead, under a load that stays.

use super::Course;
use super::search::Search;
use crate::judge::{Judged, Mind, Sight, judge};
use crate::limit::{LimitKind, Steps};
use crate::moment::Moment;
use crate::world::Path;
use std::time::Duration;

/// A revision that is some time ahead.
pub(super) struct Ahead<'a, F> {
    pub(super) course: Course<'a>,
    floor: F,
    next: Moment,
    every: Duration,
    /// The last second that was reported.
    second: i64,
    /// Seconds reported so far.
    pub(super) fed: u32,
}

impl<'a, F: FnMut(Moment) -> Option<i32> + Clone> Ahead<'a, F> {
    pub(super) fn of(search: &Search<'a, F>) -> Ahead<'a, F> {
        Ahead {
            course: search.course.clone(),
            floor: search.floor.clone(),
            next: search.beat.next,
            every: search.beat.every.max(Duration::from_millis(1)),
            second: search.now.unix_seconds(),
            fed: 0,
        }
    }

    /// The next evaluation, with the reports until then.
    pub(super) fn next(&mut self, concurrency: f64, rps: f64) -> Option<LimitKind> {
        let at = self.next;
        while self.second < at.unix_seconds() {
            self.second += 1;
            self.fed += 1;
            let begins = Moment::from_unix_millis(self.second.saturating_mul(1000));
            self.course.collection.add(begins, concurrency, rps);
            if self.course.status.poke(concurrency, self.course.compat) {
                let ordered = self.course.ordered;
                let held = self.judge(begins);
                if self.course.ordered != ordered {
                    return held;
                }
            }
        }
        self.next = at + self.every;
        self.judge(at)
    }

    pub(super) fn judge(&mut self, at: Moment) -> Option<LimitKind> {
        let course = &mut self.course;
        let sight = Sight {
            ready: course.ready,
            starting: course.starting,
            pods: course.pods,
            floor: (self.floor)(at),
            in_path_for: course.in_path_since.map(|since| at.since(since)),
        };
        let mind = Mind {
            collection: &mut course.collection,
            overload: &mut course.overload,
            slots: &mut course.slots,
            memory: &mut course.memory,
            status: &mut course.status,
            zero: &mut course.zero,
        };
        let Judged { decision, verdict } = judge(course.spec, &sight, mind, course.compat, at);
        if let Some(pods) = verdict.order {
            course.ordered = pods;
            course.follow(pods);
        }
        course.in_path_since = match verdict.path {
            Path::Activator => Some(course.in_path_since.unwrap_or(at)),
            Path::Direct => None,
        };
        let last = |steps: Steps| steps.iter().last().map(|step| step.limit);
        last(verdict.steps).or_else(|| decision.ok().and_then(|made| last(made.why.steps)))
    }
}

impl Course<'_> {
    /// What is not wanted goes, those that start first.
    fn follow(&mut self, wanted: u32) {
        let excess = self.ready.saturating_add(self.starting).saturating_sub(wanted);
        let of_starting = excess.min(self.starting);
        self.starting -= of_starting;
        self.ready -= excess - of_starting;
        self.pods = self.pods && (self.ready > 0 || self.starting > 0 || wanted > 0);
    }
}
