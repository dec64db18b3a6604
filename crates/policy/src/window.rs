//! Averages and maxima over a sliding window of time buckets.
//!
//! [`Window`] is a ring of buckets into which everything recorded in the same
//! second is added, whatever its source; it answers with a flat or a weighted
//! average. [`DelayWindow`] answers with the largest of the last values.
//!
//! Buckets are aligned to the Unix epoch, not to the first write, as in the
//! reference; so two windows of one revision always agree on what a second is.

use crate::compat::Compat;
use crate::moment::Moment;
use crate::revision::Aggregation;
use std::collections::VecDeque;
use std::time::Duration;

const NANOS_PER_SECOND: i64 = 1_000_000_000;

/// The most buckets that a window has, whatever its settings say: a day of
/// seconds. Settings end at an hour.
const MOST_BUCKETS: i64 = 86_400;

/// A ring of time buckets with their running total.
///
/// The total is kept by adding and subtracting, never summed anew: the
/// reference does so, and the order of operations shows in the last digits.
#[derive(Clone, Debug, PartialEq)]
pub struct Window {
    /// None of them while there is nothing in the window.
    buckets: Vec<f64>,
    /// How many there are of them otherwise.
    length: usize,
    /// Seconds in one bucket.
    granularity: i64,
    /// Nanoseconds in the window.
    span: i64,
    /// Bucket of the earliest write that counts, `None` = unknown or none.
    first: Option<i64>,
    /// Bucket of the latest write, `None` = none yet.
    last: Option<i64>,
    total: f64,
    aggregation: Aggregation,
}

/// All that a [`Window`] holds, as plain values: with it another one goes on
/// to the last digit.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SavedWindow {
    /// Bucket of the earliest write that counts.
    pub first: Option<i64>,
    /// Bucket of the latest write.
    pub last: Option<i64>,
    /// The running total, which is not the sum of the buckets to the last digit.
    pub total: f64,
    /// The buckets, that of the latest write last; what is missing is zero.
    pub buckets: Vec<f64>,
}

impl Window {
    /// An empty window of one-second buckets (`stable-window`, or the panic
    /// share of it).
    pub fn new(span: Duration, aggregation: Aggregation) -> Window {
        Window::with_granularity(span, 1, aggregation)
    }

    /// An empty window of buckets of that many seconds, at least one.
    pub fn with_granularity(span: Duration, seconds: u32, aggregation: Aggregation) -> Window {
        let granularity = i64::from(seconds.max(1));
        let (length, span) = layout(span, granularity);
        Window { buckets: Vec::new(), length, granularity, span, first: None, last: None, total: 0.0, aggregation }
    }

    /// All that it holds.
    pub fn save(&self) -> SavedWindow {
        let last = self.last.unwrap_or_default();
        let buckets = (0..as_index(self.buckets.len())).rev().map(|back| self.bucket(last - back));
        let is_nothing = |bucket: &f64| bucket.to_bits() == 0;
        let buckets = buckets.skip_while(is_nothing).collect();
        SavedWindow { first: self.first, last: self.last, total: self.total, buckets }
    }

    /// One of that length that goes on with what another has held; buckets
    /// beyond its length are left out.
    pub fn restore(span: Duration, aggregation: Aggregation, saved: &SavedWindow) -> Window {
        let mut window = Window::new(span, aggregation);
        (window.first, window.last, window.total) = (saved.first.min(saved.last), saved.last, saved.total);
        let Some(last) = saved.last.filter(|_| !saved.buckets.is_empty() || saved.total.to_bits() != 0) else {
            return window;
        };
        window.buckets = vec![0.0; window.length];
        for (back, bucket) in saved.buckets.iter().rev().take(window.length).enumerate() {
            let slot = window.slot(last.saturating_sub(as_index(back)));
            window.buckets[slot] = *bucket;
        }
        window
    }

    /// How it weighs its seconds.
    pub fn aggregation(&self) -> Aggregation {
        self.aggregation
    }

    /// Adds `value` to the bucket of `at`, also to an earlier one that is
    /// still within the window of the latest write; earlier than that it is
    /// dropped.
    pub fn record(&mut self, at: Moment, value: f64) {
        self.record_all(self.index(at), [value]);
    }

    /// Adds values to a bucket, one after the other.
    pub(crate) fn record_all(&mut self, index: i64, values: impl IntoIterator<Item = f64>) {
        if self.last != Some(index) && !self.make_room(index) {
            return;
        }
        if self.buckets.is_empty() {
            self.buckets = vec![0.0; self.length];
        }
        let slot = self.slot(index);
        for value in values {
            self.buckets[slot] += value;
            self.total += value;
        }
    }

    /// Looks at the bucket that a record of that index would go to.
    pub(crate) fn touch(&self, index: i64) -> u64 {
        self.bucket(index).to_bits()
    }

    /// Gives its buckets up if it [is empty](Window::is_empty) at `now`.
    pub fn release(&mut self, now: Moment) {
        if !self.buckets.is_empty() && self.is_empty(now) {
            (self.buckets, self.total) = (Vec::new(), 0.0);
        }
    }

    /// Bytes held beside its own size.
    pub fn heap_bytes(&self) -> usize {
        self.buckets.capacity() * size_of::<f64>()
    }

    /// The average at `now`. A flat one divides by the seconds from the first
    /// write (or the start of the window) to the last: holes between writes
    /// count as zero, silence at the end does not.
    pub fn average(&self, now: Moment) -> f64 {
        match self.aggregation {
            Aggregation::Linear => self.linear(self.index(now)),
            Aggregation::WeightedExponential => self.weighted(self.index(now)),
        }
    }

    /// What was recorded in that second, of windows with a bucket for each;
    /// `None` before the first record, after the last, and out of the window.
    pub fn second(&self, index: i64) -> Option<f64> {
        let (first, last) = (self.first?, self.last?);
        let within = index >= first && index <= last && last - index < as_index(self.buckets.len());
        (self.granularity == 1 && within).then(|| self.buckets[self.slot(index)])
    }

    /// What was recorded in each second of the window up to `now`, the oldest
    /// first; `None` where nothing is known.
    pub fn seconds(&self, now: Moment) -> Vec<Option<f64>> {
        let newest = self.index(now);
        (newest - as_index(self.length) + 1..=newest).map(|index| self.second(index)).collect()
    }

    /// True when nothing was recorded for longer than the window.
    pub fn is_empty(&self, now: Moment) -> bool {
        match self.last {
            Some(last) => self.gap(last, self.index(now)) > self.span,
            None => true,
        }
    }

    /// Changes the length and keeps the latest buckets, if there was a write
    /// within the old length before `now`.
    ///
    /// The reference then claims a whole old window of history, even if there
    /// was less, so the average of a young window drops. [`Compat::Better`]
    /// claims just the history that is there.
    pub fn resize(&mut self, span: Duration, now: Moment, compat: Compat) {
        let (length, span) = layout(span, self.granularity);
        if span == self.span {
            return;
        }
        let empty = self.is_empty(now);
        let (old, before) = (std::mem::take(&mut self.buckets), std::mem::replace(&mut self.length, length));
        self.total = 0.0;
        self.span = span;
        let Some(last) = self.last.filter(|_| !empty) else {
            self.first = None;
            return;
        };
        let kept = length.min(before);
        if !old.is_empty() {
            self.buckets = vec![0.0; length];
            for back in 0..as_index(kept) {
                let value = old[wrap(last - back, before)];
                self.buckets[wrap(last - back, length)] = value;
                self.total += value;
            }
        }
        self.first = Some(match compat {
            Compat::Strict => last - (as_index(before) - 1),
            Compat::Better => self.first.unwrap_or(last).max(last - (as_index(kept) - 1)),
        });
    }

    /// Moves the window so that `index` is in it; false when it is too late.
    fn make_room(&mut self, index: i64) -> bool {
        let Some(last) = self.last else {
            self.restart(index);
            return true;
        };
        if index < last && self.gap(index, last) >= self.span {
            return false;
        }
        self.first = Some(self.first.map_or(index, |first| first.min(index)));
        if index > last {
            if self.gap(last, index) >= self.span {
                self.restart(index);
            } else {
                for passed in last + 1..=index {
                    let slot = self.slot(passed);
                    if let Some(bucket) = self.buckets.get_mut(slot) {
                        self.total -= *bucket;
                        *bucket = 0.0;
                    }
                }
                self.last = Some(index);
            }
        }
        true
    }

    fn restart(&mut self, index: i64) {
        self.buckets.fill(0.0);
        self.total = 0.0;
        self.first = Some(index);
        self.last = Some(index);
    }

    fn linear(&self, now: i64) -> f64 {
        let Some(last) = self.last else { return 0.0 };
        if self.gap(last, now) >= self.span {
            return 0.0;
        }
        let most = as_index(self.length);
        let silent = (now - last).max(0);
        let mut sum = self.total;
        for passed in last + 1..=last + silent {
            sum -= self.bucket(passed);
        }
        let seen = self.first.map_or(most, |first| last - first + 1);
        let divisor = seen.min(most - silent);
        debug_assert!(divisor > 0, "a window with a write has at least one bucket");
        round6(sum / divisor as f64)
    }

    fn weighted(&self, now: i64) -> f64 {
        let Some(last) = self.last else { return 0.0 };
        if self.gap(last, now) > self.span {
            return 0.0;
        }
        let silent = (now - last).max(0);
        let coefficient = weighted_coefficient(self.length);
        let mut weight = coefficient * decay(coefficient, silent);
        let mut sum = 0.0;
        for back in 0..as_index(self.length) - silent {
            sum += self.bucket(last - back) * weight;
            weight *= 1.0 - coefficient;
        }
        sum
    }

    fn index(&self, at: Moment) -> i64 {
        at.unix_seconds().div_euclid(self.granularity)
    }

    fn slot(&self, index: i64) -> usize {
        wrap(index, self.length)
    }

    fn bucket(&self, index: i64) -> f64 {
        self.buckets.get(self.slot(index)).copied().unwrap_or(0.0)
    }

    /// Nanoseconds from one bucket to another; negative when `to` is earlier.
    fn gap(&self, from: i64, to: i64) -> i64 {
        (to - from).saturating_mul(self.granularity).saturating_mul(NANOS_PER_SECOND)
    }
}

/// How much of its value the newest bucket of `buckets` contributes to a
/// weighted average: such that all of them together contribute 99.99 %, but
/// at least a fifth.
pub fn weighted_coefficient(buckets: usize) -> f64 {
    const UNSEEN: f64 = 1.0 - 0.9999;
    (1.0 - UNSEEN.powf(1.0 / buckets as f64)).max(0.2)
}

/// The share that is left of a bucket's weight after `buckets` newer ones.
pub fn decay(coefficient: f64, buckets: i64) -> f64 {
    (1.0 - coefficient).powf(buckets as f64)
}

/// The largest of the values recorded within a span (`scale-down-delay`).
///
/// It ages only when something is recorded, by the bucket: a value leaves when
/// as many buckets have begun as fit into the span, rounded up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DelayWindow {
    /// Candidates, oldest first, each larger than all that follow.
    values: VecDeque<(i64, i32)>,
    buckets: i64,
    granularity: Duration,
}

impl DelayWindow {
    /// An empty one over `span`, in buckets of whole seconds (`granularity`,
    /// at least one second).
    pub fn new(span: Duration, granularity: Duration) -> DelayWindow {
        let granularity = Duration::from_secs(granularity.as_secs().max(1));
        DelayWindow { values: VecDeque::new(), buckets: fitting(span, granularity), granularity }
    }

    /// Records `value` and answers with the largest that is still in.
    pub fn record(&mut self, at: Moment, value: i32) -> i32 {
        let seconds = i64::try_from(self.granularity.as_secs()).unwrap_or(i64::MAX);
        let index = self.push(at.unix_seconds().div_euclid(seconds), value);
        while self.values.front().is_some_and(|&(at, _)| index.saturating_sub(at) >= self.buckets) {
            self.values.pop_front();
        }
        self.values.front().map_or(value, |&(_, largest)| largest)
    }

    /// Adds a candidate; the bucket that it came to lie in.
    fn push(&mut self, index: i64, value: i32) -> i64 {
        // Time does not go back in a process; if it does, the value counts as
        // of the newest bucket, so that the order of `values` stays.
        let index = self.values.back().map_or(index, |&(newest, _)| newest.max(index));
        while self.values.back().is_some_and(|&(_, smaller)| smaller <= value) {
            self.values.pop_back();
        }
        // A smaller value of the same bucket would leave with the larger one.
        if self.values.back().is_none_or(|&(newest, _)| newest != index) {
            self.values.push_back((index, value));
        }
        index
    }

    /// Bucket and value of each that may still become the largest, the oldest
    /// first.
    pub fn values(&self) -> Vec<(i64, i32)> {
        self.values.iter().copied().collect()
    }

    /// With values that another one had.
    pub fn with_values(mut self, values: &[(i64, i32)]) -> DelayWindow {
        // What is too old goes with the next recording, as it did there.
        for &(index, value) in values {
            self.push(index, value);
        }
        self
    }

    /// Gives up values that are all too old `now`.
    pub fn release(&mut self, now: Moment) {
        let seconds = i64::try_from(self.granularity.as_secs()).unwrap_or(i64::MAX);
        let index = now.unix_seconds().div_euclid(seconds);
        if self.values.back().is_some_and(|&(newest, _)| index.saturating_sub(newest) >= self.buckets) {
            self.values = VecDeque::new();
        }
    }

    /// Bytes held beside its own size.
    pub fn heap_bytes(&self) -> usize {
        self.values.capacity() * size_of::<(i64, i32)>()
    }

    /// The largest at the last recording; `None` before the first.
    pub fn largest(&self) -> Option<i32> {
        self.values.front().map(|&(_, largest)| largest)
    }

    /// Changes the span; what it has seen stays until it is too old.
    pub fn resize(&mut self, span: Duration) {
        self.buckets = fitting(span, self.granularity);
    }
}

/// Number of buckets, and nanoseconds, of a window over `span`.
fn layout(span: Duration, granularity: i64) -> (usize, i64) {
    let bucket = granularity.saturating_mul(NANOS_PER_SECOND);
    let span = i64::try_from(span.as_nanos()).unwrap_or(i64::MAX);
    let span = span.clamp(1, bucket.saturating_mul(MOST_BUCKETS));
    let whole = span / bucket + i64::from(span % bucket != 0);
    (usize::try_from(whole.max(1)).unwrap_or(1), span)
}

fn fitting(span: Duration, granularity: Duration) -> i64 {
    let buckets = span.as_nanos().div_ceil(granularity.as_nanos()).max(1);
    i64::try_from(buckets).unwrap_or(i64::MAX)
}

fn wrap(index: i64, length: usize) -> usize {
    index.rem_euclid(as_index(length)) as usize
}

fn as_index(length: usize) -> i64 {
    i64::try_from(length).unwrap_or(i64::MAX)
}

/// Hides the error that a running total gathers.
fn round6(number: f64) -> f64 {
    (number * 1e6).round() / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    fn second(seconds: i64) -> Moment {
        Moment::from_unix_millis(seconds * 1000)
    }

    fn flat(seconds: u64) -> Window {
        Window::new(Duration::from_secs(seconds), Aggregation::Linear)
    }

    fn filled(length: u64, values: &[(i64, f64)]) -> Window {
        let mut window = flat(length);
        for &(at, value) in values {
            window.record(second(at), value);
        }
        window
    }

    #[test]
    fn records_of_one_second_add_up() {
        let mut window = filled(10, &[(5, 1.0)]);
        window.record(second(5) + Duration::from_millis(999), 2.0);
        assert_eq!(window.average(second(5)), 3.0);
    }

    #[test]
    fn holes_count_as_zero_and_silence_at_the_end_does_not() {
        let window = filled(10, &[(0, 4.0), (3, 4.0)]);
        assert_eq!(window.average(second(3)), 2.0);
        assert_eq!(window.average(second(5)), 2.0);
        assert_eq!(filled(3, &[(0, 9.0), (1, 3.0), (2, 3.0)]).average(second(4)), 3.0);
    }

    #[test]
    fn after_exactly_a_window_of_silence_the_average_is_zero_but_valid() {
        let window = filled(10, &[(0, 4.0)]);
        assert_eq!((window.average(second(10)), window.is_empty(second(10))), (0.0, false));
        assert!(window.is_empty(second(11)));
        assert!(flat(10).is_empty(second(0)));
    }

    #[test]
    fn a_late_record_moves_first_back() {
        let window = filled(10, &[(5, 6.0), (3, 3.0)]);
        assert_eq!(window.average(second(5)), 3.0);
    }

    #[test]
    fn a_record_a_whole_window_late_is_dropped() {
        let window = filled(10, &[(10, 6.0), (0, 100.0)]);
        assert_eq!(window.average(second(10)), 6.0);
    }

    #[test]
    fn a_gap_of_a_window_starts_anew() {
        let window = filled(10, &[(0, f64::INFINITY), (10, 2.0)]);
        assert_eq!(window.average(second(10)), 2.0);
    }

    #[test]
    fn resizing_a_young_window_keeps_its_average_unless_strict() {
        let young = filled(20, &[(0, 4.0), (1, 4.0)]);
        let resized = |span: u64, compat| {
            let mut window = young.clone();
            window.resize(Duration::from_secs(span), second(1), compat);
            window.average(second(1))
        };
        assert_eq!((resized(10, Compat::Better), resized(40, Compat::Better)), (4.0, 4.0));
        assert_eq!((resized(10, Compat::Strict), resized(40, Compat::Strict)), (0.8, 0.4));
    }

    #[test]
    fn growing_a_full_window_claims_no_history_that_is_gone() {
        let values: Vec<_> = (0..20).map(|at| (at, 4.0)).collect();
        let mut window = filled(5, &values);
        window.resize(Duration::from_secs(60), second(19), Compat::Better);
        assert_eq!(window.average(second(19)), 4.0);
    }

    #[test]
    fn a_weighted_window_prefers_new_seconds_and_forgets_after_its_length() {
        let mut window = Window::new(Duration::from_secs(6), Aggregation::WeightedExponential);
        window.record(second(0), 1.0);
        window.record(second(1), 2.0);
        let fresh = window.average(second(1));
        assert!(fresh > 1.5 && fresh < 2.0, "{fresh}");
        assert!(window.average(second(2)) < fresh);
        assert_eq!(window.average(second(20)), 0.0);
    }

    #[test]
    fn what_was_given_up_because_it_was_empty_is_as_if_it_had_not_been() {
        for aggregation in [Aggregation::Linear, Aggregation::WeightedExponential] {
            let mut kept = Window::new(Duration::from_secs(10), aggregation);
            let mut given_up = kept.clone();
            assert_eq!(given_up.heap_bytes(), 0);
            // Gaps of all lengths about that of the window, and late records.
            let mut at = 1000;
            for step in (0..14).chain((0..14).rev()) {
                at += step;
                given_up.release(second(at));
                assert_eq!(given_up.heap_bytes() == 0, kept.is_empty(second(at)), "{at}");
                for late in [11, 3, 0] {
                    for window in [&mut kept, &mut given_up] {
                        window.record(second(at - late), 1.5);
                    }
                    for ahead in 0..13 {
                        let now = second(at + ahead);
                        let mut later = given_up.clone();
                        later.release(now);
                        for window in [&given_up, &later] {
                            assert_eq!(window.average(now), kept.average(now), "{at} - {late} + {ahead}");
                            assert_eq!(window.is_empty(now), kept.is_empty(now), "{at} - {late} + {ahead}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn absurd_times_spans_and_values_do_not_panic() {
        for aggregation in [Aggregation::Linear, Aggregation::WeightedExponential] {
            for span in [Duration::ZERO, Duration::from_millis(1500), Duration::MAX] {
                let mut window = Window::new(span, aggregation);
                let ends = [i64::MIN, 0, i64::MAX].map(Moment::from_unix_nanos);
                for at in ends.into_iter().chain(ends.into_iter().rev()) {
                    window.record(at, f64::NAN);
                    window.average(at);
                    window.is_empty(at);
                    window.resize(Duration::from_secs(3), at, Compat::Strict);
                }
            }
        }
    }

    #[test]
    fn the_largest_value_stays_until_its_bucket_is_too_old() {
        let mut window = DelayWindow::new(Duration::from_secs(6), Duration::from_secs(2));
        let seen = [(0, 9), (2, 3), (4, 5), (6, 1), (8, 1), (10, 1)];
        let largest = seen.map(|(at, value)| window.record(second(at), value));
        assert_eq!(largest, [9, 9, 9, 5, 5, 1]);
    }

    #[test]
    fn a_resized_delay_window_keeps_what_it_has_seen() {
        let mut window = DelayWindow::new(Duration::from_secs(60), Duration::from_secs(2));
        window.record(second(0), 9);
        window.resize(Duration::from_secs(10));
        assert_eq!(window.record(second(2), 1), 9);
        assert_eq!(window.record(second(10), 1), 1);
    }

    #[test]
    fn a_step_back_in_time_neither_panics_nor_brings_back_old_values() {
        let mut window = DelayWindow::new(Duration::from_secs(4), Duration::from_secs(2));
        window.record(second(100), 2);
        assert_eq!(window.record(second(0), 1), 2);
        assert_eq!(window.record(Moment::MIN, 3), 3);
        assert_eq!(window.record(second(102), 1), 3);
    }
}
