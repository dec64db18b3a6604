//! Stats for another replica: when each is tried again, and when it is given
//! up (autoscaler reference, section 11).

use crate::moment::Moment;
use std::collections::VecDeque;
use std::time::Duration;

/// Between two attempts.
pub const PAUSE: Duration = Duration::from_millis(500);
/// Attempts at most: the first, and 30 more. The reference names this bound
/// and goes on beyond it; here it holds.
pub const ATTEMPTS_MAX: u32 = 31;
/// Older than this, a stat is not sent on any more: it may go in circles
/// between replicas that disagree on who owns it.
pub const AGE_MAX: Duration = Duration::from_secs(20);

/// Something that is to be sent.
#[derive(Clone, Debug, PartialEq)]
pub struct Parcel<T> {
    /// What.
    pub load: T,
    /// Attempts that failed.
    failed: u32,
    due: Moment,
}

/// What waits to be sent to one owner, in the order in which it is due.
#[derive(Clone, Debug, PartialEq)]
pub struct Outbox<T> {
    waiting: VecDeque<Parcel<T>>,
    most: usize,
}

/// Something was given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GivenUp {
    /// There is no room: one that had failed went, else the oldest.
    Full,
    /// It was tried often enough.
    Attempts,
}

impl GivenUp {
    /// The word for it in metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            GivenUp::Full => "full",
            GivenUp::Attempts => "attempts",
        }
    }
}

impl<T> Outbox<T> {
    /// Of so many parcels at most.
    pub fn new(most: usize) -> Outbox<T> {
        Outbox { waiting: VecDeque::new(), most: most.max(1) }
    }

    /// Takes something in, due at once. What is new comes before what has
    /// failed already, so one that cannot be delivered holds nothing up.
    ///
    /// # Errors
    /// When something had to be given up for it.
    pub fn put(&mut self, load: T, now: Moment) -> Result<(), GivenUp> {
        self.insert(Parcel { load, failed: 0, due: now })
    }

    /// The same, due after a pause.
    ///
    /// # Errors
    /// As [`Outbox::put`].
    pub fn put_later(&mut self, load: T, now: Moment) -> Result<(), GivenUp> {
        self.insert(Parcel { load, failed: 0, due: now + PAUSE })
    }

    /// The next one that is due.
    pub fn next(&mut self, now: Moment) -> Option<Parcel<T>> {
        if self.waiting.front()?.due > now {
            return None;
        }
        self.waiting.pop_front()
    }

    /// An attempt failed: the parcel waits for the next one.
    ///
    /// # Errors
    /// When it was the last.
    pub fn failed(&mut self, mut parcel: Parcel<T>, now: Moment) -> Result<(), GivenUp> {
        parcel.failed += 1;
        if parcel.failed >= ATTEMPTS_MAX {
            return Err(GivenUp::Attempts);
        }
        parcel.due = now + PAUSE;
        self.insert(parcel)
    }

    /// When the next one is due.
    pub fn due(&self) -> Option<Moment> {
        self.waiting.front().map(|parcel| parcel.due)
    }

    /// How many wait.
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// True when none waits.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    fn insert(&mut self, parcel: Parcel<T>) -> Result<(), GivenUp> {
        let full = self.waiting.len() >= self.most;
        if full {
            // What has failed says less than what is new; else the oldest goes.
            match self.waiting.back() {
                Some(last) if last.failed > 0 => self.waiting.pop_back(),
                _ => self.waiting.pop_front(),
            };
        }
        let place = self.waiting.partition_point(|other| other.due <= parcel.due);
        self.waiting.insert(place, parcel);
        if full { Err(GivenUp::Full) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: i64) -> Moment {
        Moment::from_unix_millis(ms)
    }

    #[test]
    fn a_stat_is_tried_each_half_second_and_given_up_in_the_end() {
        let mut outbox = Outbox::new(10);
        outbox.put("stat", ms(0)).unwrap();
        let mut attempts = Vec::new();
        for now in (0..60_000).step_by(50).map(ms) {
            while let Some(parcel) = outbox.next(now) {
                attempts.push(now.unix_millis());
                let outcome = outbox.failed(parcel, now);
                assert_eq!(outcome.is_err(), attempts.len() == 31, "{attempts:?}");
            }
        }
        let expected: Vec<i64> = (0..31).map(|n| n * 500).collect();
        assert_eq!(attempts, expected);
        assert!(outbox.is_empty() && outbox.due().is_none());
    }

    #[test]
    fn what_fails_does_not_hold_up_what_comes_and_goes_first_when_there_is_no_room() {
        let mut outbox = Outbox::new(2);
        outbox.put(1, ms(0)).unwrap();
        let first = outbox.next(ms(0)).unwrap();
        outbox.failed(first, ms(0)).unwrap();
        outbox.put(2, ms(100)).unwrap();
        assert_eq!(outbox.put(3, ms(200)), Err(GivenUp::Full));
        let left: Vec<i32> = std::iter::from_fn(|| outbox.next(ms(9999))).map(|parcel| parcel.load).collect();
        assert_eq!(left, [2, 3]);
    }

    #[test]
    fn the_bound_holds_whatever_the_number() {
        let mut outbox = Outbox::new(100);
        let given_up = (0..1000).filter(|n| outbox.put(*n, ms(*n)).is_err()).count();
        assert_eq!((given_up, outbox.len()), (900, 100));
        assert_eq!(outbox.next(ms(1000)).map(|parcel| parcel.load), Some(900), "the newest are kept");
    }
}
