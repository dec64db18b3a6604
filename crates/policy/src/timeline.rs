//! Concurrency integrated over time: what a sidecar ([`Timeline`]) and an
//! activator ([`Meter`]) report of a revision each second.

use crate::moment::Moment;
use std::time::Duration;

/// The nominal time between two reports. Counts are divided by it, not by the
/// time that really passed, as the reference does.
pub const REPORT_PERIOD: Duration = Duration::from_secs(1);

/// How far one report may be moved towards the beginning of a second; small
/// enough for a period to count as whole.
const SLEW_MAX: Duration = Duration::from_millis(20);

/// When the report after the one at `previous` is due: a period later, moved
/// little by little until reports begin with the second. The receiver has a
/// bucket for each second of wall time; a reporter that has its own second
/// leaves one empty and fills another twice whenever timers slip. It is moved
/// slowly, so that whoever reads it sees whole periods from the first on.
pub fn next_report(previous: Moment) -> Moment {
    let due = previous + REPORT_PERIOD;
    let past = due.since(due.truncated_to_second());
    if past <= REPORT_PERIOD / 2 { due - past.min(SLEW_MAX) } else { due + (REPORT_PERIOD - past).min(SLEW_MAX) }
}

/// Up to this share of a period a report is on time: timers are not exact, and
/// counts should be whole numbers.
const SLIP_MAX: f64 = 0.1;

/// How a request came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Through an activator, which counts it too (`K-Proxy-Request: activator`).
    Proxied,
    /// Straight.
    Direct,
}

/// What happened since the report before.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Report {
    /// Requests in progress, on average over the time that really passed.
    pub average_concurrency: f64,
    /// The proxied part of them.
    pub average_proxied_concurrency: f64,
    /// Requests that arrived, per second of the nominal period.
    pub request_count: f64,
    /// The proxied part of them.
    pub proxied_request_count: f64,
}

/// What an activator reports of a revision at a tick.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MeterReport {
    /// Requests in progress on average, less the one announced at once.
    pub average_concurrency: f64,
    /// Requests that arrived, less the one announced at once.
    pub request_count: f64,
    /// True when the revision was idle: nothing is reported of it any more,
    /// and its next request is announced at once.
    pub drop: bool,
}

impl MeterReport {
    /// What is sent at once of a revision's first request after idleness.
    pub const ANNOUNCEMENT: MeterReport = MeterReport { average_concurrency: 1.0, request_count: 1.0, drop: false };
}

/// Requests in progress over time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timeline {
    last: Moment,
    measured: u64,
    /// The app has said that it works by itself until then.
    busy_until: Option<Moment>,
    all: Counter,
    proxied: Counter,
}

/// Requests of one kind: in progress, arrived, and the former over time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counter {
    current: u32,
    arrived: u64,
    /// Request-nanoseconds. 128 bits: a report may be late by hours.
    area: u128,
}

impl Timeline {
    /// Nothing in progress, counted from `now` on.
    pub fn new(now: Moment) -> Timeline {
        Timeline { last: now, measured: 0, busy_until: None, all: Counter::default(), proxied: Counter::default() }
    }

    /// The app works in the background until then, which counts as one in
    /// progress and as no arrival; `None` = no longer. It ends by itself.
    pub fn busy(&mut self, now: Moment, until: Option<Moment>) {
        self.advance(now);
        self.busy_until = until;
    }

    /// A request arrived; it counts from here, while it waits too.
    pub fn enter(&mut self, now: Moment, kind: Kind) {
        self.advance(now);
        self.all.enter();
        if kind == Kind::Proxied {
            self.proxied.enter();
        }
    }

    /// A request ended, in whatever way.
    pub fn leave(&mut self, now: Moment, kind: Kind) {
        self.advance(now);
        self.all.leave();
        if kind == Kind::Proxied {
            self.proxied.leave();
        }
    }

    /// Requests in progress, waiting ones included.
    pub fn in_progress(&self) -> u32 {
        self.all.current
    }

    /// What happened since the report before; what is in progress stays.
    pub fn report(&mut self, now: Moment) -> Report {
        self.advance(now);
        let measured = std::mem::take(&mut self.measured);
        let (average_concurrency, request_count) = self.all.report(measured);
        let (average_proxied_concurrency, proxied_request_count) = self.proxied.report(measured);
        Report { average_concurrency, average_proxied_concurrency, request_count, proxied_request_count }
    }

    /// Like [`Timeline::report`], but arrivals are divided by the time that
    /// really passed when that is much more than a period: the report comes
    /// late, and what it counts did not arrive within a second.
    pub fn report_measured(&mut self, now: Moment) -> Report {
        self.advance(now);
        let periods = self.measured as f64 / REPORT_PERIOD.as_nanos() as f64;
        let report = self.report(now);
        if periods <= 1.0 + SLIP_MAX {
            return report;
        }
        Report {
            request_count: report.request_count / periods,
            proxied_request_count: report.proxied_request_count / periods,
            ..report
        }
    }

    /// Integrates up to `now`; a step back in time adds nothing.
    fn advance(&mut self, now: Moment) {
        let passed = now.since(self.last);
        if passed.is_zero() {
            return;
        }
        let nanos = u64::try_from(passed.as_nanos()).unwrap_or(u64::MAX);
        self.measured = self.measured.saturating_add(nanos);
        self.all.advance(nanos);
        self.proxied.advance(nanos);
        if let Some(until) = self.busy_until {
            self.all.area += until.since(self.last).min(passed).as_nanos();
        }
        self.last = now;
    }
}

impl Counter {
    fn enter(&mut self) {
        self.current = self.current.saturating_add(1);
        self.arrived += 1;
    }

    fn leave(&mut self) {
        debug_assert!(self.current > 0, "a request that left had entered");
        self.current = self.current.saturating_sub(1);
    }

    fn advance(&mut self, nanos: u64) {
        self.area += u128::from(self.current) * u128::from(nanos);
    }

    /// Average in progress, and arrivals per second; both start anew.
    fn report(&mut self, measured: u64) -> (f64, f64) {
        let area = std::mem::take(&mut self.area) as f64;
        let arrived = std::mem::take(&mut self.arrived) as f64;
        let average = if measured == 0 { 0.0 } else { area / measured as f64 };
        (average, arrived / REPORT_PERIOD.as_secs_f64())
    }
}

/// An activator's view of one revision. The first request after idleness is
/// announced at once (as one request in progress, one arrived), so that pods
/// start without waiting for the tick; the report that follows is that much
/// lower.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Meter {
    tracked: Option<Tracked>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Tracked {
    timeline: Timeline,
    /// What was announced since the last tick, to be subtracted at the next.
    announced: Announced,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Announced {
    inside: u32,
    arrived: u64,
}

impl Meter {
    /// Of an idle revision.
    pub fn new() -> Meter {
        Meter::default()
    }

    /// A request came in, before anything is done with it. True when it has
    /// to be announced at once.
    #[must_use = "true means that the autoscaler has to be told now"]
    pub fn enter(&mut self, now: Moment) -> bool {
        let first = self.tracked.is_none();
        let announced = Announced { inside: 1, arrived: 1 };
        let tracked = self.tracked.get_or_insert_with(|| Tracked { timeline: Timeline::new(now), announced });
        tracked.timeline.enter(now, Kind::Direct);
        first
    }

    /// A request went out, in whatever way.
    pub fn leave(&mut self, now: Moment) {
        debug_assert!(self.tracked.is_some(), "a request that left had entered");
        if let Some(tracked) = &mut self.tracked {
            tracked.timeline.leave(now, Kind::Direct);
        }
    }

    /// False while it is idle: then a tick has nothing to say.
    pub fn is_tracked(&self) -> bool {
        self.tracked.is_some()
    }

    /// Requests in progress.
    pub fn in_progress(&self) -> u32 {
        self.tracked.as_ref().map_or(0, |tracked| tracked.timeline.in_progress())
    }

    /// What is in progress beyond what was announced since the last tick, to
    /// be told before the next one; `None` when all is known.
    pub fn announce(&mut self, now: Moment) -> Option<MeterReport> {
        let tracked = self.tracked.as_mut()?;
        tracked.timeline.advance(now);
        let all = Announced { inside: tracked.timeline.in_progress(), arrived: tracked.timeline.all.arrived };
        let before = tracked.announced;
        if all.inside <= before.inside {
            return None;
        }
        tracked.announced = all;
        Some(MeterReport {
            average_concurrency: f64::from(all.inside - before.inside),
            request_count: all.arrived.saturating_sub(before.arrived) as f64,
            drop: false,
        })
    }

    /// What to report at a tick, each second; `None` when there is nothing to
    /// say. An idle revision is reported once with zeros, then no more.
    pub fn tick(&mut self, now: Moment) -> Option<MeterReport> {
        let tracked = self.tracked.as_mut()?;
        let report = tracked.timeline.report(now);
        let told = std::mem::take(&mut tracked.announced);
        let drop = report.average_concurrency == 0.0 && tracked.timeline.in_progress() == 0;
        if drop {
            self.tracked = None;
        }
        Some(MeterReport {
            average_concurrency: (report.average_concurrency - f64::from(told.inside)).max(0.0),
            request_count: report.request_count - told.arrived as f64,
            drop,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(millis: i64) -> Moment {
        Moment::from_unix_millis(millis)
    }

    #[test]
    fn a_request_over_the_whole_period_is_one_and_half_of_it_a_half() {
        let mut line = Timeline::new(ms(0));
        line.enter(ms(0), Kind::Direct);
        line.enter(ms(500), Kind::Proxied);
        let report = line.report(ms(1000));
        assert_eq!(report.average_concurrency, 1.5);
        assert_eq!(report.average_proxied_concurrency, 0.5);
        assert_eq!((report.request_count, report.proxied_request_count), (2.0, 1.0));
    }

    #[test]
    fn what_is_in_progress_goes_on_into_the_next_period() {
        let mut line = Timeline::new(ms(0));
        line.enter(ms(0), Kind::Proxied);
        line.report(ms(1000));
        line.leave(ms(1250), Kind::Proxied);
        let report = line.report(ms(2000));
        assert_eq!(report.average_proxied_concurrency, 0.25);
        assert_eq!((report.request_count, line.in_progress()), (0.0, 0));
    }

    #[test]
    fn counts_are_per_nominal_second_and_averages_per_measured_one() {
        let mut line = Timeline::new(ms(0));
        line.enter(ms(0), Kind::Direct);
        let late = line.report(ms(4000));
        assert_eq!((late.average_concurrency, late.request_count), (1.0, 1.0));
    }

    #[test]
    fn work_in_the_background_is_one_in_progress_until_it_ends_and_no_arrival() {
        let mut line = Timeline::new(ms(0));
        line.busy(ms(500), Some(ms(2_250)));
        let averages: Vec<f64> = (1..=4).map(|second| line.report(ms(second * 1000)).average_concurrency).collect();
        assert_eq!(averages, [0.5, 1.0, 0.25, 0.0]);
        line.enter(ms(4_000), Kind::Proxied);
        line.busy(ms(4_000), Some(ms(9_000)));
        line.busy(ms(4_500), None);
        let report = line.report(ms(5_000));
        assert_eq!((report.average_concurrency, report.average_proxied_concurrency), (1.5, 1.0));
        assert_eq!((report.request_count, line.in_progress()), (1.0, 1));
    }

    #[test]
    fn reports_move_to_the_beginning_of_the_second_by_small_steps() {
        for start in [0, 1, 130, 499, 500, 501, 870, 999] {
            let mut at = ms(start);
            for _ in 0..26 {
                let next = next_report(at);
                assert!((980..=1020).contains(&next.since(at).as_millis()), "{start}");
                at = next;
            }
            assert_eq!(at, at.truncated_to_second(), "{start}");
            assert_eq!(next_report(at), at + REPORT_PERIOD, "and there they stay");
        }
    }

    #[test]
    fn counts_of_a_late_report_are_per_measured_second() {
        let mut line = Timeline::new(ms(0));
        for at in [0, 3_999] {
            line.enter(ms(at), Kind::Proxied);
        }
        let late = line.report_measured(ms(4000));
        assert_eq!((late.request_count, late.proxied_request_count), (0.5, 0.5));
        line.enter(ms(4500), Kind::Direct);
        assert_eq!(line.report_measured(ms(5002)).request_count, 1.0, "this one was on time");
        line.enter(ms(5002), Kind::Direct);
        assert_eq!(line.report_measured(ms(5100)).request_count, 1.0, "and this one early");
    }

    #[test]
    fn a_report_without_time_is_zero_and_a_step_back_adds_nothing() {
        let mut line = Timeline::new(ms(1000));
        line.enter(ms(1000), Kind::Direct);
        assert_eq!(line.report(ms(1000)).average_concurrency, 0.0);
        line.enter(ms(200), Kind::Direct);
        assert_eq!(line.report(ms(1500)).average_concurrency, 2.0);
    }

    #[test]
    fn the_first_request_after_idleness_is_announced_and_then_subtracted() {
        let mut meter = Meter::new();
        assert!(meter.enter(ms(0)));
        assert!(!meter.enter(ms(0)));
        let first = meter.tick(ms(1000)).unwrap();
        assert_eq!((first.average_concurrency, first.request_count), (1.0, 1.0));
        let second = meter.tick(ms(2000)).unwrap();
        assert_eq!((second.average_concurrency, second.request_count), (2.0, 0.0));
    }

    #[test]
    fn a_crowd_is_announced_as_it_grows_and_then_subtracted() {
        let mut meter = Meter::new();
        assert_eq!(meter.announce(ms(0)), None);
        let first = meter.enter(ms(0));
        assert!(first && meter.announce(ms(1)).is_none(), "the first one is known");
        (0..9).for_each(|n| assert!(!meter.enter(ms(n))));
        let told = meter.announce(ms(10)).unwrap();
        assert_eq!((told.average_concurrency, told.request_count), (9.0, 9.0));
        assert_eq!(meter.announce(ms(11)), None);
        let report = meter.tick(ms(1000)).unwrap();
        assert_eq!((report.average_concurrency, report.request_count), (0.0, 0.0));
        // In the next second they are in progress still, and one more comes.
        let _ = meter.enter(ms(1000));
        let told = meter.announce(ms(1010)).unwrap();
        assert_eq!((told.average_concurrency, told.request_count), (11.0, 1.0));
        let report = meter.tick(ms(2000)).unwrap();
        assert_eq!((report.average_concurrency, report.request_count), (0.0, 0.0));
    }

    #[test]
    fn an_idle_revision_is_reported_once_and_announced_anew() {
        let mut meter = Meter::new();
        assert!(meter.enter(ms(0)));
        meter.leave(ms(400));
        assert!(!meter.tick(ms(1000)).unwrap().drop);
        assert!(meter.tick(ms(2000)).unwrap().drop);
        assert_eq!((meter.tick(ms(3000)), meter.in_progress()), (None, 0));
        assert!(meter.enter(ms(3500)));
    }

    #[test]
    fn a_request_that_took_no_time_leaves_the_revision_idle() {
        let mut meter = Meter::new();
        assert!(meter.enter(ms(0)));
        meter.leave(ms(0));
        let report = meter.tick(ms(1000)).unwrap();
        assert_eq!((report.average_concurrency, report.request_count), (0.0, 0.0));
        assert!(report.drop);
    }

    #[test]
    fn a_running_request_keeps_its_revision_even_without_time() {
        let mut meter = Meter::new();
        assert!(meter.enter(ms(1000)));
        assert!(!meter.tick(ms(1000)).unwrap().drop);
        assert!(!meter.enter(ms(1000)));
    }

    #[test]
    fn the_ends_of_time_do_not_panic() {
        let mut line = Timeline::new(Moment::MIN);
        for at in [i64::MIN, i64::MAX, 0].map(Moment::from_unix_nanos) {
            line.enter(at, Kind::Proxied);
            assert!(line.report(at).average_concurrency.is_finite());
        }
    }
}
