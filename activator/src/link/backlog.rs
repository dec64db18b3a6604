//! What waits to be sent, in the order in which it was made. Bounded: when it
//! is full the oldest report goes, since it says least; a poke never does.

use policy::revision::RevisionId;
use policy::stat::StatBatch;
use std::collections::{HashMap, VecDeque};

/// Reports that are kept: two minutes of one a second, beyond which a window
/// of the autoscaler has mostly moved on.
const REPORTS_MAX: usize = 120;
/// Entries of all reports together: what bounds the memory when there are
/// thousands of revisions.
const ENTRIES_MAX: usize = 65_536;

/// Batches that wait.
#[derive(Default)]
pub(super) struct Backlog {
    queue: VecDeque<StatBatch>,
    reports: usize,
    entries: usize,
    /// Revisions of which a poke waits, and the requests of later ones: another
    /// poke would say nothing new. They may be thousands, so that the one that
    /// waits is not looked for.
    poked: HashMap<RevisionId, f64>,
    dropped: u64,
}

impl Backlog {
    /// Takes a batch in.
    pub(super) fn push(&mut self, batch: StatBatch) {
        if batch.poke {
            if !self.merge(&batch) {
                self.note(&batch);
                self.queue.push_back(batch);
            }
            return;
        }
        self.reports += 1;
        self.entries += batch.stats.len();
        self.queue.push_back(batch);
        while self.reports > 1 && (self.reports > REPORTS_MAX || self.entries > ENTRIES_MAX) {
            let oldest = self.queue.iter().position(|batch| !batch.poke);
            let Some(mut oldest) = oldest.and_then(|at| self.queue.remove(at)) else { return };
            self.forget(&mut oldest);
            self.dropped += 1;
        }
    }

    /// Puts pokes back that may not have arrived, before all else.
    pub(super) fn put_back(&mut self, pokes: Vec<StatBatch>) {
        for poke in pokes.into_iter().rev() {
            self.note(&poke);
            self.queue.push_front(poke);
        }
    }

    /// The oldest.
    pub(super) fn pop(&mut self) -> Option<StatBatch> {
        let mut batch = self.queue.pop_front()?;
        self.forget(&mut batch);
        Some(batch)
    }

    /// Forgets everything, as the reference does with what it cannot send.
    pub(super) fn clear(&mut self) {
        let dropped = self.dropped + self.queue.len() as u64;
        *self = Backlog { dropped, ..Backlog::default() };
    }

    /// Reports that were dropped since this was asked last.
    pub(super) fn take_dropped(&mut self) -> u64 {
        std::mem::take(&mut self.dropped)
    }

    /// A poke waits from now on.
    fn note(&mut self, poke: &StatBatch) {
        for (revision, _) in &poke.stats {
            self.poked.entry(revision.clone()).or_insert(0.0);
        }
    }

    /// It waits no longer, and says all that it stands for.
    fn forget(&mut self, batch: &mut StatBatch) {
        if batch.poke {
            for (revision, stat) in &mut batch.stats {
                stat.request_count += self.poked.remove(revision).unwrap_or(0.0);
            }
        } else {
            self.reports -= 1;
            self.entries -= batch.stats.len();
        }
    }

    /// Counts a poke among the one of the same revision that waits already.
    fn merge(&mut self, poke: &StatBatch) -> bool {
        let [(revision, stat)] = &poke.stats[..] else { return false };
        let Some(later) = self.poked.get_mut(revision) else { return false };
        *later += stat.request_count;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use policy::moment::Moment;
    use policy::stat::Stat;

    fn batch(poke: bool, revision: usize, entries: usize) -> StatBatch {
        let stat = Stat {
            pod_name: "activator".into(),
            average_concurrency: 1.0,
            average_proxied_concurrency: 0.0,
            request_count: 1.0,
            proxied_request_count: 0.0,
        };
        let of = |n: usize| RevisionId::new("ns", format!("rev-{n}"));
        let stats = (0..entries).map(|n| (of(revision + n), stat.clone())).collect();
        StatBatch { at: Moment::from_unix_millis(revision as i64), stats, poke }
    }

    fn drained(backlog: &mut Backlog) -> Vec<StatBatch> {
        std::iter::from_fn(|| backlog.pop()).collect()
    }

    #[test]
    fn the_oldest_reports_go_and_no_poke_does_and_the_order_stays() {
        let mut backlog = Backlog::default();
        for n in 0..3 * REPORTS_MAX {
            backlog.push(batch(n % 3 == 0, n, 1));
        }
        let kept = drained(&mut backlog);
        let reports: Vec<_> = kept.iter().filter(|batch| !batch.poke).map(|batch| batch.at).collect();
        assert_eq!(kept.len() - reports.len(), REPORTS_MAX, "all pokes");
        assert_eq!(reports.len(), REPORTS_MAX);
        assert_eq!(backlog.take_dropped(), REPORTS_MAX as u64);
        assert!(kept.iter().map(|batch| batch.at).is_sorted());
        assert_eq!(*reports.last().unwrap(), Moment::from_unix_millis(3 * REPORTS_MAX as i64 - 1));
        assert!(backlog.queue.is_empty() && backlog.poked.is_empty() && (backlog.reports, backlog.entries) == (0, 0));
    }

    #[test]
    fn entries_are_bounded_too_but_the_newest_report_is_always_there() {
        let mut backlog = Backlog::default();
        for _ in 0..5 {
            backlog.push(batch(false, 0, ENTRIES_MAX / 2));
        }
        assert_eq!(drained(&mut backlog).len(), 2);
        backlog.push(batch(false, 0, 2 * ENTRIES_MAX));
        assert_eq!(drained(&mut backlog).len(), 1);
    }

    #[test]
    fn pokes_of_a_revision_that_wait_are_one() {
        let mut backlog = Backlog::default();
        for _ in 0..1000 {
            backlog.push(batch(true, 1, 1));
            backlog.push(batch(true, 2, 1));
        }
        let kept = drained(&mut backlog);
        assert_eq!(kept.len(), 2);
        assert_eq!((kept[0].stats[0].1.request_count, kept[0].stats[0].1.average_concurrency), (1000.0, 1.0));
        // Once it is on its way, the next one is new.
        backlog.push(batch(true, 1, 1));
        assert_eq!(drained(&mut backlog).len(), 1);
    }

    #[test]
    fn what_may_not_have_arrived_comes_before_what_waits() {
        let mut backlog = Backlog::default();
        backlog.push(batch(false, 5, 1));
        backlog.put_back(vec![batch(true, 1, 1), batch(true, 2, 1)]);
        backlog.push(batch(true, 1, 1));
        let times: Vec<_> = drained(&mut backlog).iter().map(|batch| batch.at.unix_millis()).collect();
        assert_eq!(times, [1, 2, 5]);
    }
}
