//! Searching for the load at which a decision changes.

use super::ahead::Ahead;
use super::steps::{load, most, step_of, steps};
use super::{Beat, Change, Course, Edge, Forecast, When};
use crate::limit::LimitKind;
use crate::moment::Moment;
use crate::revision::{Aggregation, Metric};
use std::time::Duration;

/// No forecast looks further ahead.
const HORIZON_MAX: Duration = Duration::from_secs(4 * 3600);
/// Work of one forecast, in nanoseconds, more or less, of a release build.
const WORK_MAX: u64 = 1_000_000_000;
/// An evaluation, and each second that it weighs.
const EVALUATION: u64 = 300;
const SECOND: u64 = 2;
/// The shortest time that a load is held, in seconds.
const SHORTEST: u32 = 2;
/// Edges that are looked at where there are several.
const EDGES_MAX: u32 = 4;

/// Which changes are looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    More,
    Fewer,
    Either,
}

/// One forecast.
pub(super) struct Search<'a, F> {
    pub(super) course: &'a Course<'a>,
    pub(super) beat: Beat,
    pub(super) floor: F,
    pub(super) now: Moment,
    /// Seconds that a request takes.
    service: f64,
    /// What is left of it.
    work: u64,
}

/// How a load went.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Went {
    /// The first change in the direction asked for: seconds, and pods.
    changed: Option<(u32, u32)>,
    /// The limit that acted last.
    held: Option<LimitKind>,
}

impl Went {
    pub(super) fn change(self, when: When) -> Option<Change> {
        self.changed.map(|(seconds, pods)| Change { when, seconds, pods })
    }
}

impl<'a, F: FnMut(Moment) -> Option<i32> + Clone> Search<'a, F> {
    pub(super) fn new(course: &'a Course<'a>, beat: Beat, floor: F, service: f64, now: Moment) -> Search<'a, F> {
        Search { course, beat, floor, now, service, work: WORK_MAX }
    }

    /// True when it was given up.
    pub(super) fn is_spent(&self) -> bool {
        self.work == 0
    }

    pub(super) fn first_request(&self) -> Option<Change> {
        if !self.course.status.poke(1.0, self.course.compat) {
            return None;
        }
        let mut ahead = Ahead::of(self);
        ahead.course.collection.add(self.now, 1.0, 1.0);
        ahead.judge(self.now);
        (ahead.course.ordered > 0).then_some(Change {
            when: When::FirstRequest,
            seconds: 0,
            pods: ahead.course.ordered,
        })
    }

    pub(super) fn more(&mut self, found: &mut Forecast) {
        let windows = &self.course.spec.windows;
        let whole = |span: Duration| u32::try_from(span.as_secs()).unwrap_or(u32::MAX);
        for seconds in [SHORTEST, whole(windows.panic), whole(windows.stable)] {
            let seconds = seconds.max(SHORTEST);
            let Some(change) = self.edge(seconds, Way::More) else { continue };
            let is_known = |other: &Change| match (other.when, change.when) {
                (When::Above(known), When::Above(new)) => {
                    other.seconds == change.seconds || known.does <= new.does * 1.01
                }
                (known, new) => known == new,
            };
            if !found.more.iter().any(is_known) {
                found.more.push(change);
            }
        }
        if found.more.is_empty() {
            let settled = whole(windows.stable);
            found.more_held = self.run(most(), settled, Way::More).held;
        }
    }

    pub(super) fn fewer(&mut self, found: &mut Forecast) {
        let idle = self.run(0.0, seconds(HORIZON_MAX), Way::Fewer);
        let Some(first) = idle.change(When::Nothing) else {
            found.fewer_held = idle.held;
            return;
        };
        let within = self.settled(Duration::from_secs(u64::from(first.seconds)));
        match self.edge(within, Way::Fewer) {
            Some(change @ Change { when: When::Any, .. }) => found.fewer.push(change),
            edge => {
                found.fewer.extend(edge);
                found.fewer.push(first);
            }
        }
        if first.pods > 0 {
            found.fewer.extend(self.zero());
        }
    }

    /// When the last pod goes, if no request comes.
    fn zero(&mut self) -> Option<Change> {
        let mut ahead = Ahead::of(self);
        while ahead.course.ordered > 0 && ahead.fed < seconds(HORIZON_MAX) && self.spend() {
            ahead.next(0.0, 0.0);
        }
        let change = Change { when: When::Nothing, seconds: ahead.fed, pods: 0 };
        (ahead.course.ordered == 0).then_some(change)
    }

    /// Time after which nothing of what was seen so far acts any more.
    pub(super) fn settled(&self, at_least: Duration) -> u32 {
        let spec = &self.course.spec.scale;
        seconds((at_least + spec.stable_window * 2 + spec.scale_down_delay).min(HORIZON_MAX))
    }

    /// The load at which a change comes within that many seconds.
    fn edge(&mut self, within: u32, way: Way) -> Option<Change> {
        let up = way == Way::More;
        let (always, never) = if up { (steps(), None) } else { (0, Some(steps())) };
        self.changes(always, within, way)?;
        if let Some(change) = self.changes(never.unwrap_or(0), within, way) {
            return Some(Change { when: When::Any, seconds: change.0, pods: change.1 });
        }
        let (mut does, mut does_not) = (always, never.unwrap_or(0));
        for _ in 0..EDGES_MAX {
            while does.abs_diff(does_not) > 1 {
                let middle = does.midpoint(does_not);
                match self.changes(middle, within, way) {
                    Some(_) => does = middle,
                    None => does_not = middle,
                }
            }
            // Where decisions are not monotonous there may be an edge further on.
            let off = if up { step_of(load(does) * 0.99) } else { step_of(load(does) * 1.01) };
            if self.changes(off, within, way).is_some() && does > 0 {
                (does, does_not) = (off, if up { 0 } else { steps() });
                continue;
            }
            let (seconds, pods) = self.changes(does, within, way)?;
            let edge = Edge { does: load(does), does_not: load(does_not) };
            let when = match (up, does) {
                (true, _) => When::Above(edge),
                (false, 0) => When::Nothing,
                (false, _) => When::Below(edge),
            };
            return (!self.is_spent()).then_some(Change { when, seconds, pods });
        }
        None
    }

    fn changes(&mut self, step: u32, within: u32, way: Way) -> Option<(u32, u32)> {
        self.run(load(step), within, way).changed
    }

    /// Holds a load until the number changes, or for that many seconds. A
    /// change the other way ends it too.
    pub(super) fn run(&mut self, load: f64, within: u32, way: Way) -> Went {
        let (concurrency, rps) = match self.course.spec.scale.metric {
            Metric::Concurrency => (load, load / self.service),
            Metric::Rps => (load * self.service, load),
        };
        let mut ahead = Ahead::of(self);
        let before = ahead.course.ordered;
        let mut held = None;
        while self.spend() {
            held = ahead.next(concurrency, rps);
            let now = ahead.course.ordered;
            if now != before {
                let asked = match way {
                    Way::More => now > before,
                    Way::Fewer => now < before,
                    Way::Either => true,
                };
                return Went { changed: asked.then_some((ahead.fed, now)), held: held.filter(|_| asked) };
            }
            // The first one at which so many have come.
            if ahead.fed >= within {
                break;
            }
        }
        Went { changed: None, held }
    }

    /// False when enough has been done.
    fn spend(&mut self) -> bool {
        let windows = &self.course.spec.windows;
        let weighs = match windows.aggregation {
            Aggregation::Linear => EVALUATION,
            Aggregation::WeightedExponential => EVALUATION + SECOND * (windows.stable + windows.panic).as_secs(),
        };
        self.work = self.work.saturating_sub(weighs);
        self.work > 0
    }
}

fn seconds(span: Duration) -> u32 {
    u32::try_from(span.as_secs()).unwrap_or(u32::MAX)
}
