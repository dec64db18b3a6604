//! When requests arrive: fixed beforehand, whatever the answers do. Pure.

use std::time::Duration;

/// A load that rises from nothing to a peak, stays, and falls to nothing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Schedule {
    rise: f64,
    stay: f64,
    fall: f64,
    peak: f64,
}

impl Schedule {
    /// Over `length`, with at most `peak` requests per second.
    pub(crate) fn new(length: Duration, peak: f64) -> Schedule {
        let length = length.as_secs_f64();
        Schedule { rise: 0.4 * length, stay: 0.3 * length, fall: 0.3 * length, peak }
    }

    /// Requests per second at the peak.
    pub(crate) fn peak(&self) -> f64 {
        self.peak
    }

    /// Requests in all; at least one, so that something wakes.
    pub(crate) fn total(&self) -> u64 {
        let all = self.peak * (self.rise / 2.0 + self.stay + self.fall / 2.0);
        (all as u64).max(1)
    }

    /// The times of all requests, from the beginning on; the first comes at once.
    pub(crate) fn arrivals(self) -> impl Iterator<Item = Duration> {
        (0..self.total()).map(move |n| Duration::from_secs_f64(self.time_of(n as f64)))
    }

    /// When `n` requests have come: the inverse of the area under the curve.
    fn time_of(&self, n: f64) -> f64 {
        let risen = self.peak * self.rise / 2.0;
        let stayed = risen + self.peak * self.stay;
        if n < risen {
            return (2.0 * self.rise * n / self.peak).sqrt();
        }
        if n < stayed {
            return self.rise + (n - risen) / self.peak;
        }
        let left = (self.peak * self.fall / 2.0 - (n - stayed)).max(0.0);
        self.rise + self.stay + self.fall - (2.0 * self.fall * left / self.peak).sqrt()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn within(arrivals: &[Duration], from: f64, to: f64) -> usize {
        arrivals.iter().filter(|at| (from..to).contains(&at.as_secs_f64())).count()
    }

    #[test]
    fn the_load_rises_from_nothing_stays_and_falls_to_nothing() {
        let schedule = Schedule::new(Duration::from_secs(30), 300.0);
        let arrivals: Vec<Duration> = schedule.arrivals().collect();
        assert_eq!(arrivals.len() as u64, schedule.total());
        assert_eq!(schedule.total(), 5850);
        assert_eq!(arrivals[0], Duration::ZERO);
        assert!(arrivals.is_sorted());
        assert!(*arrivals.last().unwrap() < Duration::from_secs(30));
        // A second at the start, on the way up, at the peak, at the end.
        for (from, expected) in [(0.0, 12.5), (5.5, 150.0), (15.0, 300.0), (29.0, 16.7)] {
            let seen = within(&arrivals, from, from + 1.0) as f64;
            assert!((seen - expected).abs() <= 2.0, "{seen} from {from} s");
        }
    }

    #[test]
    fn the_shortest_load_still_wakes() {
        let arrivals: Vec<Duration> = Schedule::new(Duration::from_millis(1), 300.0).arrivals().collect();
        assert_eq!(arrivals, [Duration::ZERO]);
    }
}
