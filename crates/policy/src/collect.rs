//! The load of one revision over time: four windows, fed by what pods and
//! activators report, read by the scale decision.

use crate::compat::Compat;
use crate::moment::Moment;
use crate::revision::{Aggregation, Metric, WindowSpec};
use crate::stat::Stat;
use crate::window::{SavedWindow, Window};

/// A report with a number beyond this (requests in progress, or per second)
/// is taken for a fault of the reporter.
const ABSURD: f64 = 1e9;

/// Lowest count per second that a sound reporter sends: the reference's
/// activator subtracts the request it has announced at once, and may do so
/// before it has counted it.
const LOWEST_COUNT: f64 = -1.0;

/// So many reports may wait to be put into the windows.
const OPEN_MAX: usize = 8;

/// Load as the scale decision sees it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Load {
    /// Averages over the two windows, in the unit of the metric asked for
    /// (requests in progress, or requests per second).
    Average {
        /// Over the stable window.
        stable: f64,
        /// Over the panic window.
        panic: f64,
    },
    /// Nothing was recorded for more than a stable window.
    NoData,
    /// There is no collection for the revision.
    NotCollecting,
}

/// What silence means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Silence {
    /// The pods should have answered, so nothing is known.
    Unknown,
    /// Nobody is asked (the reference's empty scrape target, with
    /// `target-burst-capacity` -1), so nothing reported is no load.
    Idle,
}

/// Why a report was not recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Dropped {
    /// It contains an infinite number, or one that is none.
    NotFinite,
    /// It contains less than nothing.
    Negative,
    /// It contains a number beyond any real load.
    Absurd,
}

impl Dropped {
    /// All reasons, for counters.
    pub const ALL: [Dropped; 3] = [Dropped::NotFinite, Dropped::Negative, Dropped::Absurd];

    /// The word for it in logs and metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Dropped::NotFinite => "not-finite",
            Dropped::Negative => "negative",
            Dropped::Absurd => "absurd",
        }
    }
}

/// The four windows of one revision: concurrency and requests per second,
/// each over the stable and over the panic window.
// In this order: most reports need the first alone.
#[derive(Clone, Debug, PartialEq)]
#[repr(C)]
pub struct Collection {
    open: Open,
    concurrency: Pair,
    rps: Pair,
    silence: Silence,
    compat: Compat,
}

/// What has come of one second, in turn. It goes into the windows at once for
/// all of it: they lie elsewhere in memory, and many reports come of a second.
#[derive(Clone, Debug, Default, PartialEq)]
#[repr(C)]
struct Open {
    second: i64,
    count: usize,
    /// Concurrency and rate.
    values: [(f64, f64); OPEN_MAX],
}

#[derive(Clone, Debug, PartialEq)]
struct Pair {
    stable: Window,
    panic: Window,
}

/// All that a [`Collection`] holds, as plain values.
#[derive(Clone, Debug, PartialEq)]
pub struct SavedCollection {
    /// Concurrency over the stable and over the panic window, and requests per
    /// second over both.
    pub windows: [SavedWindow; 4],
    /// How seconds were weighed when the windows were made.
    pub aggregation: Aggregation,
}

impl Collection {
    /// Empty windows. How seconds are weighed stays as it is now, whatever
    /// [`Collection::resize`] says later.
    pub fn new(spec: &WindowSpec, silence: Silence, compat: Compat) -> Collection {
        let open = Open::default();
        Collection { open, concurrency: Pair::new(spec), rps: Pair::new(spec), silence, compat }
    }

    /// All that it holds.
    pub fn save(&self) -> SavedCollection {
        let mut settled = self.clone();
        settled.settle();
        let Collection { concurrency, rps, .. } = &settled;
        let windows = [&concurrency.stable, &concurrency.panic, &rps.stable, &rps.panic];
        SavedCollection { windows: windows.map(Window::save), aggregation: concurrency.stable.aggregation() }
    }

    /// Windows of these lengths that go on with what others have held.
    pub fn restore(spec: &WindowSpec, silence: Silence, compat: Compat, saved: &SavedCollection) -> Collection {
        let [stable, panic, rps_stable, rps_panic] = &saved.windows;
        let pair = |stable, panic| Pair {
            stable: Window::restore(spec.stable, saved.aggregation, stable),
            panic: Window::restore(spec.panic, saved.aggregation, panic),
        };
        let (concurrency, rps) = (pair(stable, panic), pair(rps_stable, rps_panic));
        Collection { open: Open::default(), concurrency, rps, silence, compat }
    }

    /// Takes in what one reporter saw in the second that ended `at`.
    ///
    /// Only the part that did not come through an activator is counted, since
    /// the activators report the rest themselves; the difference of a single
    /// report may be negative.
    ///
    /// # Errors
    /// [`Dropped`] when the report makes no sense and was not recorded
    /// ([`Compat::Better`] only: one such number would poison the windows).
    pub fn record(&mut self, at: Moment, stat: &Stat) -> Result<(), Dropped> {
        if self.compat == Compat::Better {
            check(stat)?;
        }
        let concurrency = stat.average_concurrency - stat.average_proxied_concurrency;
        let rps = stat.request_count - stat.proxied_request_count;
        self.add(at, concurrency, rps);
        Ok(())
    }

    /// Adds to what was recorded in the second of `at`.
    pub(crate) fn add(&mut self, at: Moment, concurrency: f64, rps: f64) {
        let second = at.unix_seconds();
        if self.open.second != second || self.open.count == OPEN_MAX {
            self.settle();
            self.open.second = second;
        }
        self.open.values[self.open.count] = (concurrency, rps);
        self.open.count += 1;
    }

    /// Looks at the memory that a report of the second of `at` will need, so that
    /// it is there by then.
    pub fn touch(&self, at: Moment) -> u64 {
        let Open { second, count, .. } = self.open;
        if second == at.unix_seconds() && count < OPEN_MAX {
            return second.cast_unsigned();
        }
        let of = |pair: &Pair| pair.stable.touch(second) ^ pair.panic.touch(second);
        of(&self.concurrency) ^ of(&self.rps)
    }

    /// Puts into the windows what has come. Reading an average does it too.
    pub fn settle(&mut self) {
        let Open { second, count, values } = &self.open;
        if *count > 0 {
            let values = values[..*count].iter();
            self.concurrency.record_all(*second, values.clone().map(|both| both.0));
            self.rps.record_all(*second, values.map(|both| both.1));
            self.open.count = 0;
        }
    }

    /// Averages of `metric` at `now`; never [`Load::NotCollecting`].
    pub fn load(&mut self, metric: Metric, now: Moment) -> Load {
        self.settle();
        let pair = match metric {
            Metric::Concurrency => &self.concurrency,
            Metric::Rps => &self.rps,
        };
        if self.silence == Silence::Unknown && pair.stable.is_empty(now) {
            return Load::NoData;
        }
        Load::Average { stable: pair.stable.average(now), panic: pair.panic.average(now) }
    }

    /// The stable and the panic window of `metric`, as last settled.
    pub fn windows_of(&self, metric: Metric) -> (&Window, &Window) {
        let pair = match metric {
            Metric::Concurrency => &self.concurrency,
            Metric::Rps => &self.rps,
        };
        (&pair.stable, &pair.panic)
    }

    /// Requests in progress and arrivals as recorded in one second (whole ones
    /// since 1970); `None` when nothing was, or it is past.
    pub fn second(&mut self, index: i64) -> Option<(f64, f64)> {
        self.settle();
        Some((self.concurrency.stable.second(index)?, self.rps.stable.second(index)?))
    }

    /// Changes the lengths of the windows, and keeps what they hold.
    pub fn resize(&mut self, spec: &WindowSpec, now: Moment) {
        self.settle();
        for pair in [&mut self.concurrency, &mut self.rps] {
            pair.stable.resize(spec.stable, now, self.compat);
            pair.panic.resize(spec.panic, now, self.compat);
        }
    }

    /// Gives up memory of windows in which nothing is left at `now`.
    pub fn release(&mut self, now: Moment) {
        self.settle();
        self.windows().for_each(|window| window.release(now));
    }

    /// Bytes held beside its own size.
    pub fn heap_bytes(&self) -> usize {
        let of = |pair: &Pair| pair.stable.heap_bytes() + pair.panic.heap_bytes();
        of(&self.concurrency) + of(&self.rps)
    }

    fn windows(&mut self) -> impl Iterator<Item = &mut Window> {
        [&mut self.concurrency, &mut self.rps].into_iter().flat_map(|pair| [&mut pair.stable, &mut pair.panic])
    }

    /// Changes what silence means.
    pub fn set_silence(&mut self, silence: Silence) {
        self.silence = silence;
    }
}

impl Pair {
    fn new(spec: &WindowSpec) -> Pair {
        Pair { stable: Window::new(spec.stable, spec.aggregation), panic: Window::new(spec.panic, spec.aggregation) }
    }

    fn record_all(&mut self, second: i64, values: impl Iterator<Item = f64> + Clone) {
        self.stable.record_all(second, values.clone());
        self.panic.record_all(second, values);
    }
}

/// Whether a report makes sense.
///
/// # Errors
/// [`Dropped`] when it does not.
pub fn check(stat: &Stat) -> Result<(), Dropped> {
    let averages = [stat.average_concurrency, stat.average_proxied_concurrency];
    let counts = [stat.request_count, stat.proxied_request_count];
    let mut all = averages.into_iter().chain(counts);
    if !all.clone().all(f64::is_finite) {
        return Err(Dropped::NotFinite);
    }
    if averages.iter().any(|&n| n < 0.0) || counts.iter().any(|&n| n < LOWEST_COUNT) {
        return Err(Dropped::Negative);
    }
    if all.any(|n| n > ABSURD) {
        return Err(Dropped::Absurd);
    }
    Ok(())
}

/// How many of `population` pods to ask for their load: 0 to 16, enough for
/// an error of 5 requests at 95 % confidence if loads vary by 10. All of up to
/// three; a fraction counts as one more.
pub fn sample_size(population: f64) -> u32 {
    // 1.96² (95 % confidence) × 100 (variance) ÷ 25 (error squared).
    const FACTOR: f64 = 15.3664;
    let size = if population > 3.0 {
        // Bounded, so that an infinite one is not divided by itself.
        let n = population.min(1e12);
        n * FACTOR / (n + FACTOR - 1.0)
    } else {
        population
    };
    // `as` takes the nearest that fits, and 0 for no number.
    size.ceil() as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::revision::Aggregation;
    use std::time::Duration;

    fn windows(stable: u64, panic: u64) -> WindowSpec {
        WindowSpec {
            stable: Duration::from_secs(stable),
            panic: Duration::from_secs(panic),
            aggregation: Aggregation::Linear,
        }
    }

    fn second(seconds: i64) -> Moment {
        Moment::from_unix_millis(seconds * 1000)
    }

    fn stat(average: f64, proxied: f64, count: f64, count_proxied: f64) -> Stat {
        Stat {
            pod_name: "pod".into(),
            average_concurrency: average,
            average_proxied_concurrency: proxied,
            request_count: count,
            proxied_request_count: count_proxied,
        }
    }

    #[test]
    fn what_came_through_an_activator_is_counted_once() {
        let mut load = Collection::new(&windows(60, 6), Silence::Unknown, Compat::Better);
        load.record(second(1), &stat(5.0, 0.0, 9.0, 0.0)).unwrap();
        load.record(second(1), &stat(6.0, 5.0, 10.0, 9.0)).unwrap();
        let average = |of| Load::Average { stable: of, panic: of };
        assert_eq!(load.load(Metric::Concurrency, second(1)), average(6.0));
        assert_eq!(load.load(Metric::Rps, second(1)), average(10.0));
    }

    #[test]
    fn silence_is_unknown_or_no_load_as_told() {
        let mut load = Collection::new(&windows(60, 6), Silence::Unknown, Compat::Better);
        assert_eq!(load.load(Metric::Rps, second(1)), Load::NoData);
        load.set_silence(Silence::Idle);
        let nothing = Load::Average { stable: 0.0, panic: 0.0 };
        assert_eq!(load.load(Metric::Rps, second(1)), nothing);
    }

    #[test]
    fn nonsense_is_dropped_and_named_but_poisons_the_window_in_strict_mode() {
        let nonsense = [
            (stat(f64::NAN, 0.0, 0.0, 0.0), Dropped::NotFinite),
            (stat(0.0, 0.0, f64::INFINITY, 0.0), Dropped::NotFinite),
            (stat(-0.5, 0.0, 0.0, 0.0), Dropped::Negative),
            (stat(0.0, 0.0, -2.0, 0.0), Dropped::Negative),
            (stat(1e12, 0.0, 0.0, 0.0), Dropped::Absurd),
        ];
        let mut better = Collection::new(&windows(60, 6), Silence::Unknown, Compat::Better);
        let mut strict = Collection::new(&windows(60, 6), Silence::Unknown, Compat::Strict);
        for (stat, why) in &nonsense {
            assert_eq!(better.record(second(1), stat), Err(*why));
            assert_eq!(strict.record(second(1), stat), Ok(()));
        }
        assert_eq!(better.load(Metric::Concurrency, second(1)), Load::NoData);
        let Load::Average { stable, .. } = strict.load(Metric::Concurrency, second(1)) else {
            panic!("something was recorded");
        };
        assert!(stable.is_nan());
    }

    #[test]
    fn the_announced_request_may_be_subtracted_before_it_is_counted() {
        let mut load = Collection::new(&windows(60, 6), Silence::Unknown, Compat::Better);
        load.record(second(1), &stat(0.0, 0.0, 1.0, 0.0)).unwrap();
        load.record(second(1), &stat(0.0, 0.0, -1.0, 0.0)).unwrap();
        let nothing = Load::Average { stable: 0.0, panic: 0.0 };
        assert_eq!(load.load(Metric::Rps, second(1)), nothing);
    }

    #[test]
    fn resizing_keeps_what_was_seen() {
        let mut load = Collection::new(&windows(60, 6), Silence::Unknown, Compat::Better);
        load.record(second(1), &stat(4.0, 0.0, 4.0, 0.0)).unwrap();
        load.resize(&windows(30, 3), second(1));
        let average = Load::Average { stable: 4.0, panic: 4.0 };
        assert_eq!(load.load(Metric::Concurrency, second(1)), average);
    }

    #[test]
    fn never_more_than_sixteen_pods_are_asked() {
        let sizes = [-5.0, 3.0, 5.0, 1000.0, 1e300, f64::INFINITY].map(sample_size);
        assert_eq!(sizes, [0, 3, 4, 16, 16, 16]);
        assert_eq!(sample_size(f64::NAN), 0);
    }
}
