//! The last decisions of a revision, bounded; equal ones in a row are one.
//!
//! | job | module |
//! | --- | --- |
//! | all revisions together | [`room`] |
//! | over a restart | [`kept`] |

pub(crate) mod kept;
pub(crate) mod room;

use policy::limit::{LimitKind, Step};
use policy::moment::Moment;
use policy::scale::{Decision, Undecided};
use policy::world::Path;
use policy::zero::ZeroVerdict;
use std::collections::VecDeque;
use std::time::Duration;

/// Bytes of one revision's history.
pub(crate) const BYTES_MAX: usize = 64 << 10;
/// What is older than this goes.
pub(crate) const AGE_MAX: Duration = Duration::from_secs(7 * 24 * 3600);

/// One decision with every input and every limit that acted; or several in a
/// row of the same outcome for the same reasons.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Record {
    /// When it was first made.
    pub(crate) at: Moment,
    /// When it was last made.
    pub(crate) last: Moment,
    /// How many times in a row.
    pub(crate) times: u32,
    /// Pods ordered; `None` before the first order.
    pub(crate) ordered: Option<u32>,
    /// The path ordered.
    pub(crate) path: Path,
    /// Pods wanted after bounds; -1 = unknown.
    pub(crate) want: i32,
    /// What was decided on; the newest numbers.
    pub(crate) made: Result<Made, Undecided>,
    /// The limits that acted, in order; of the decision, then of the bounds.
    pub(crate) steps: Box<[Step]>,
}

/// Inputs and outcome of a decision.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Made {
    pub(crate) desired: i32,
    pub(crate) excess_burst_capacity: i32,
    pub(crate) ready: u32,
    pub(crate) starting: u32,
    pub(crate) target: f64,
    pub(crate) stable: f64,
    pub(crate) panic: f64,
    pub(crate) ratio: f64,
    /// Lowest and highest averages while the same was decided.
    pub(crate) stable_range: (f32, f32),
    pub(crate) panic_range: (f32, f32),
    pub(crate) in_panic: bool,
    pub(crate) by_panic_window: bool,
}

impl Made {
    fn of(decision: &Decision) -> Made {
        let why = &decision.why;
        let (stable, panic) = (why.stable as f32, why.panic as f32);
        Made {
            desired: decision.desired,
            excess_burst_capacity: decision.excess_burst_capacity,
            ready: why.ready,
            starting: why.starting,
            target: why.target,
            stable: why.stable,
            panic: why.panic,
            ratio: why.ratio,
            stable_range: (stable, stable),
            panic_range: (panic, panic),
            in_panic: decision.panic,
            by_panic_window: why.by_panic_window,
        }
    }

    /// Everything but the averages and what is reckoned from them alone.
    fn reasons(&self) -> (i32, u32, u32, u64, bool, bool) {
        (self.desired, self.ready, self.starting, self.target.to_bits(), self.in_panic, self.by_panic_window)
    }

    fn spread(&mut self, before: &Made) {
        let wider = |a: (f32, f32), b: (f32, f32)| (a.0.min(b.0), a.1.max(b.1));
        self.stable_range = wider(self.stable_range, before.stable_range);
        self.panic_range = wider(self.panic_range, before.panic_range);
    }

    fn is_finite(&self) -> bool {
        let ranges = [self.stable_range.0, self.stable_range.1, self.panic_range.0, self.panic_range.1];
        let numbers = [self.target, self.stable, self.panic, self.ratio];
        numbers.iter().all(|number| number.is_finite()) && ranges.iter().all(|number| number.is_finite())
    }

    /// Pods that the load of a window asks for, before any limit.
    pub(crate) fn wish(&self, load: f64) -> f64 {
        (load / self.target).ceil()
    }
}

/// A decision as it comes from an evaluation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fresh<'a> {
    pub(crate) at: Moment,
    pub(crate) decision: &'a Result<Decision, Undecided>,
    pub(crate) verdict: &'a ZeroVerdict,
    pub(crate) ordered: Option<u32>,
}

impl Fresh<'_> {
    fn steps(&self) -> impl Iterator<Item = &Step> {
        let decided = self.decision.as_ref().ok().map(|made| &made.why.steps);
        decided.into_iter().chain([&self.verdict.steps]).flat_map(|steps| steps.iter())
    }

    fn made(&self) -> Result<Made, Undecided> {
        self.decision.as_ref().map(Made::of).map_err(|why| *why)
    }

    fn record(&self) -> Record {
        Record {
            at: self.at,
            last: self.at,
            times: 1,
            ordered: self.ordered,
            path: self.verdict.path,
            want: self.verdict.want,
            made: self.made(),
            steps: self.steps().copied().collect(),
        }
    }
}

impl Record {
    /// The same outcome for the same reasons: only averages may differ, and the
    /// numbers that limits were given by them.
    fn continues_with(&self, fresh: &Fresh<'_>) -> bool {
        let reasons = |made: &Result<Made, Undecided>| made.as_ref().map(Made::reasons).map_err(|why| *why);
        let kind = |step: &Step| -> LimitKind { step.limit };
        (self.ordered, self.path, self.want) == (fresh.ordered, fresh.verdict.path, fresh.verdict.want)
            && reasons(&self.made) == reasons(&fresh.made())
            && self.steps.iter().map(kind).eq(fresh.steps().map(kind))
    }

    /// Takes in the next one of the same.
    fn go_on(&mut self, fresh: &Fresh<'_>) {
        self.last = fresh.at;
        self.times = self.times.saturating_add(1);
        let mut made = fresh.made();
        if let (Ok(made), Ok(before)) = (&mut made, &self.made) {
            made.spread(before);
        }
        self.made = made;
        // As many of them as before, of the same kinds.
        self.steps.iter_mut().zip(fresh.steps()).for_each(|(place, step)| *place = *step);
    }

    /// Bytes held beside its own size.
    fn heap_bytes(&self) -> usize {
        size_of_val(&*self.steps)
    }
}

/// See the module.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct History {
    /// The oldest first.
    records: VecDeque<Record>,
    /// Bytes that its records hold beside their own size.
    heap: usize,
}

impl History {
    /// Adds a decision. True when it differs from the one before.
    pub(crate) fn add(&mut self, fresh: &Fresh<'_>) -> bool {
        if let Some(last) = self.records.back_mut().filter(|last| last.continues_with(fresh)) {
            last.go_on(fresh);
            return false;
        }
        while self.records.front().is_some_and(|oldest| fresh.at.since(oldest.last) > AGE_MAX) {
            self.drop_oldest();
        }
        self.push(fresh.record());
        true
    }

    /// Adds a record that was kept; later than all that are there.
    pub(crate) fn push(&mut self, record: Record) {
        self.heap += record.heap_bytes();
        if self.records.len() == self.records.capacity() {
            // An idle revision has one or two; a vector that doubles would hold
            // as many places again as a busy one has records.
            let more = (self.records.len() / 4).max(1);
            let room = BYTES_MAX.saturating_sub(self.bytes()) / size_of::<Record>();
            self.records.reserve_exact(more.min(room));
        }
        while self.records.len() > 1 && (self.records.len() == self.records.capacity() || self.bytes() > BYTES_MAX) {
            self.drop_oldest();
        }
        self.records.push_back(record);
    }

    fn drop_oldest(&mut self) {
        if let Some(oldest) = self.records.pop_front() {
            self.heap -= oldest.heap_bytes();
        }
    }

    /// Drops its oldest records until it holds no more than that, or one.
    pub(crate) fn shrink_to(&mut self, bytes: usize) {
        let is_less = |history: &History| history.records.len() * size_of::<Record>() + history.heap <= bytes;
        while self.records.len() > 1 && !is_less(self) {
            self.drop_oldest();
        }
        self.records.shrink_to_fit();
    }

    /// Looks at the newest record, so that it is there by the time it is needed.
    pub(crate) fn touch(&self) -> u64 {
        self.records.back().map_or(0, |record| u64::from(record.times))
    }

    /// Bytes that it holds, beside its own size.
    pub(crate) fn bytes(&self) -> usize {
        self.records.capacity() * size_of::<Record>() + self.heap
    }

    /// Newest first.
    pub(crate) fn newest_first(&self) -> impl DoubleEndedIterator<Item = &Record> {
        self.records.iter().rev()
    }

    /// When it begins; `None` while it is empty.
    pub(crate) fn since(&self) -> Option<Moment> {
        self.records.front().map(|oldest| oldest.at)
    }

    /// Which one stood at a time, and the ones before and after it; `None` when
    /// the time lies before all of them.
    pub(crate) fn at(&self, time: Moment) -> Option<(Option<&Record>, &Record, Option<&Record>)> {
        // Times are told in milliseconds; what is told must be found by it.
        let after = self.records.partition_point(|record| record.at.unix_millis() <= time.unix_millis());
        let stood = after.checked_sub(1)?;
        let before = stood.checked_sub(1).and_then(|before| self.records.get(before));
        Some((before, self.records.get(stood)?, self.records.get(after)))
    }
}

#[cfg(test)]
mod tests;
