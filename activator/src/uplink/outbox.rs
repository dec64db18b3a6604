//! What waits to be sent, and what was sent and may be lost.
//!
//! Batches leave in the order in which they came. At most one ordinary batch
//! waits, the newest; at most one poke for each revision, and none of them is
//! ever given up.

use policy::revision::RevisionId;
use policy::stat::StatBatch;
use std::collections::{BTreeSet, VecDeque};
use tokio::time::Instant;

/// Batches that may be on their way without a receipt.
const SENT_MAX: usize = 16;

#[derive(Default)]
pub(super) struct Outbox {
    waiting: VecDeque<StatBatch>,
    /// Revisions with a poke that waits.
    poked: BTreeSet<RevisionId>,
    sent: VecDeque<Sent>,
    last: u64,
}

struct Sent {
    number: u64,
    at: Instant,
    /// `None` when it is not worth sending twice.
    poke: Option<StatBatch>,
}

impl Outbox {
    /// Takes a batch in. True when an older one is given up for it.
    pub(super) fn put(&mut self, mut batch: StatBatch) -> bool {
        if batch.poke {
            batch.stats.retain(|(revision, _)| self.poked.insert(revision.clone()));
            if !batch.stats.is_empty() {
                self.waiting.push_back(batch);
            }
            return false;
        }
        let before = self.waiting.len();
        self.waiting.retain(|waiting| waiting.poke);
        let replaced = self.waiting.len() < before;
        self.waiting.push_back(batch);
        replaced
    }

    /// The next to be sent now, with its number: pokes that wait in a row
    /// travel together.
    pub(super) fn take(&mut self) -> Option<(u64, StatBatch)> {
        if self.sent.len() >= SENT_MAX {
            return None;
        }
        let mut batch = self.waiting.pop_front()?;
        while batch.poke && self.waiting.front().is_some_and(|next| next.poke) {
            let Some(next) = self.waiting.pop_front() else { break };
            batch.stats.extend(next.stats);
        }
        if batch.poke {
            for (revision, _) in &batch.stats {
                self.poked.remove(revision);
            }
        }
        self.last += 1;
        let poke = batch.poke.then(|| batch.clone());
        self.sent.push_back(Sent { number: self.last, at: Instant::now(), poke });
        Some((self.last, batch))
    }

    /// A batch was taken, and all before it.
    pub(super) fn receipt(&mut self, number: u64) {
        while self.sent.front().is_some_and(|sent| sent.number <= number) {
            self.sent.pop_front();
        }
    }

    /// When the oldest batch left of which nothing is known.
    pub(super) fn oldest_sent(&self) -> Option<Instant> {
        self.sent.front().map(|sent| sent.at)
    }

    /// The connection is lost: pokes without a receipt wait again, first.
    pub(super) fn broken(&mut self) {
        while let Some(sent) = self.sent.pop_back() {
            let Some(mut poke) = sent.poke else { continue };
            poke.stats.retain(|(revision, _)| self.poked.insert(revision.clone()));
            if !poke.stats.is_empty() {
                self.waiting.push_front(poke);
            }
        }
    }

    /// True when nothing waits, and all that was sent was taken.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.sent.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use policy::moment::Moment;
    use policy::stat::Stat;

    fn batch(n: i64, poke: bool, revision: &str) -> StatBatch {
        let stat = Stat {
            pod_name: "a".into(),
            average_concurrency: n as f64,
            average_proxied_concurrency: 0.0,
            request_count: 0.0,
            proxied_request_count: 0.0,
        };
        StatBatch { at: Moment::from_unix_millis(n), stats: vec![(RevisionId::new("d", revision), stat)], poke }
    }

    /// The times of what is taken, and the number of entries of each.
    fn taken(outbox: &mut Outbox) -> Vec<(i64, usize)> {
        std::iter::from_fn(|| outbox.take()).map(|(_, batch)| (batch.at.unix_millis(), batch.stats.len())).collect()
    }

    #[test]
    fn the_newest_batch_and_one_poke_a_revision_wait_in_order() {
        let mut outbox = Outbox::default();
        for n in 1..1000 {
            assert_eq!(outbox.put(batch(n, false, "a")), n > 1);
        }
        for n in 1000..1100 {
            outbox.put(batch(n, true, if n % 2 == 0 { "even" } else { "odd" }));
        }
        assert_eq!(outbox.waiting.len(), 3);
        assert_eq!(taken(&mut outbox), [(999, 1), (1000, 2)]);
    }

    #[test]
    fn a_poke_without_a_receipt_is_sent_again_and_nothing_else_is() {
        let mut outbox = Outbox::default();
        outbox.put(batch(1, true, "a"));
        outbox.put(batch(2, false, "a"));
        outbox.put(batch(3, true, "b"));
        assert_eq!(taken(&mut outbox), [(1, 1), (2, 1), (3, 1)]);
        outbox.receipt(1);
        outbox.put(batch(4, false, "a"));
        outbox.broken();
        assert_eq!(taken(&mut outbox), [(3, 1), (4, 1)]);
        outbox.broken();
        outbox.put(batch(5, true, "b"));
        assert_eq!(taken(&mut outbox), [(3, 1)]);
        outbox.receipt(u64::MAX);
        assert!(outbox.is_empty());
    }

    #[test]
    fn only_so_many_are_on_their_way() {
        let mut outbox = Outbox::default();
        let mut sent = 0;
        for n in 0..100 {
            outbox.put(batch(n, n % 2 == 0, &format!("r{n}")));
            sent += taken(&mut outbox).len();
        }
        assert_eq!((sent, outbox.sent.len()), (SENT_MAX, SENT_MAX));
        // 42 pokes wait, and one batch.
        assert!(outbox.waiting.len() <= 43);
    }
}
