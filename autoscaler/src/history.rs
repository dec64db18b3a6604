//! The last decisions of a revision, bounded; equal ones in a row are one.

use policy::moment::Moment;
use policy::scale::{Decision, Undecided};
use policy::zero::ZeroVerdict;
use std::collections::VecDeque;

/// Different decisions kept for one revision.
pub(crate) const RECORDS_MAX: usize = 32;

/// One decision with every input and every limit that acted.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Record {
    /// When it was first made.
    pub(crate) at: Moment,
    /// When it was last made.
    pub(crate) last: Moment,
    /// How many times in a row.
    pub(crate) times: u32,
    pub(crate) decision: Result<Decision, Undecided>,
    pub(crate) verdict: ZeroVerdict,
    pub(crate) ordered: Option<u32>,
}

impl Record {
    /// The same outcome for the same reasons, whatever the averages were.
    fn continues(&self, other: &Record) -> bool {
        let outcome = |record: &Record| {
            let decided = record.decision.as_ref().map(|made| (made.desired, made.panic, made.why.ready));
            (decided.map_err(|why| *why), record.verdict.want, record.verdict.path, record.ordered)
        };
        outcome(self) == outcome(other)
    }
}

#[derive(Debug, Default)]
pub(crate) struct History {
    records: VecDeque<Record>,
}

impl History {
    /// Adds a decision. True when it differs from the one before.
    pub(crate) fn add(&mut self, mut record: Record) -> bool {
        if let Some(last) = self.records.back_mut().filter(|last| last.continues(&record)) {
            // The newest averages, under the first one's time.
            (record.at, record.times) = (last.at, last.times.saturating_add(1));
            *last = record;
            return false;
        }
        if self.records.len() == RECORDS_MAX {
            self.records.pop_front();
        }
        self.records.push_back(record);
        true
    }

    /// Looks at the newest record, so that it is there by the time it is needed.
    pub(crate) fn touch(&self) -> u64 {
        self.records.back().map_or(0, |record| u64::from(record.times))
    }

    /// Bytes that it holds, beside its own size.
    pub(crate) fn bytes(&self) -> usize {
        self.records.capacity() * size_of::<Record>()
    }

    /// Newest first.
    pub(crate) fn newest_first(&self) -> impl Iterator<Item = &Record> {
        self.records.iter().rev()
    }
}
