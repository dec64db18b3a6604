//! Who reports of a revision, what each said last, and what to count for those
//! that should have reported and did not.
//!
//! A report that does not come is no report of nothing: the link may hang, or
//! the reporter stands still with requests inside. So what it said last counts
//! on for each second that is missing, for a bounded time. When the report
//! comes after all, it takes the place of what was counted for it.

use crate::collect::{Collection, Dropped};
use crate::moment::Moment;
use crate::stat::Stat;
use crate::world::{Pod, PodName, PodPhase};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

/// A reporter is late from here on; each reports once a second.
const LATE: Duration = Duration::from_millis(1500);
/// How long what was said last counts on: as long as the reference's default
/// window, in which it would count as well.
pub const COUNTS_ON: Duration = Duration::from_secs(60);
/// A pod that said within this time that it has nothing to do has nothing.
const FRESH: Duration = Duration::from_secs(3);
/// Reporters of one revision; what more say is recorded and not remembered.
const REPORTERS_MAX: usize = 20_000;
/// Names that are kept of those that are gone.
const GONE_MAX: usize = 64;

/// All that report of one revision.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reporters {
    last: HashMap<Arc<str>, Last>,
    /// The last ones that are gone: their last words may come late.
    gone: VecDeque<PodName>,
}

/// What a reporter said last.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Last {
    /// When.
    pub at: Moment,
    /// Requests in progress that count: without what came through an activator.
    pub concurrency: f64,
    /// The same of arrivals per second.
    pub rps: f64,
    /// All that is inside, whichever way it came.
    pub inside: f64,
    /// What it has announced since its last report, requests in progress and
    /// new ones. The next one leaves them out, and may be zero though they are
    /// there.
    pub announced: (f64, f64),
    /// Seconds up to this one were filled up with these.
    pub filled: Option<(i64, f64, f64)>,
}

/// All that [`Reporters`] hold, as plain values.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SavedReporters {
    /// What each said last, by name.
    pub last: Vec<(Arc<str>, Last)>,
    /// Who went lately, the latest last.
    pub gone: Vec<PodName>,
}

impl Reporters {
    /// All that they hold.
    pub fn save(&self) -> SavedReporters {
        let Reporters { last, gone } = self;
        let mut last: Vec<(Arc<str>, Last)> = last.iter().map(|(name, last)| (name.clone(), *last)).collect();
        last.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        SavedReporters { last, gone: gone.iter().cloned().collect() }
    }

    /// Goes on with what others have held.
    pub fn restore(saved: SavedReporters) -> Reporters {
        let SavedReporters { last, gone } = saved;
        Reporters {
            last: last.into_iter().take(REPORTERS_MAX).collect(),
            gone: gone.into_iter().take(GONE_MAX).collect(),
        }
    }

    /// Records a report of the second that ended `at`, or, where it is
    /// `urgent`, requests that the next one leaves out.
    ///
    /// # Errors
    /// [`Dropped`] when it makes no sense; nothing is recorded then.
    pub fn record(&mut self, at: Moment, stat: &Stat, urgent: bool, load: &mut Collection) -> Result<(), Dropped> {
        load.record(at, stat)?;
        let mut new = Last {
            at,
            concurrency: stat.average_concurrency - stat.average_proxied_concurrency,
            rps: stat.request_count - stat.proxied_request_count,
            inside: stat.average_concurrency,
            announced: if urgent { (stat.average_concurrency, stat.request_count) } else { (0.0, 0.0) },
            filled: None,
        };
        let known = self.last.len();
        match self.last.get_mut(&stat.pod_name) {
            Some(last) if urgent => {
                last.concurrency += new.concurrency;
                last.rps += new.rps;
                last.inside += new.inside;
                last.announced = (last.announced.0 + new.announced.0, last.announced.1 + new.announced.1);
            }
            Some(last) => {
                last.make_room(at, load);
                // A late one says nothing about now.
                if at >= last.at {
                    new.filled = last.filled.filter(|&(until, ..)| at.unix_seconds() < until);
                    new.concurrency += last.announced.0;
                    new.inside += last.announced.0;
                    new.rps += last.announced.1;
                    *last = new;
                }
            }
            None if known < REPORTERS_MAX && !self.gone.contains(&stat.pod_name) => {
                self.last.insert(stat.pod_name.clone(), new);
            }
            None => {}
        }
        Ok(())
    }

    /// These are gone, with all they had.
    pub fn forget(&mut self, gone: impl IntoIterator<Item = PodName>) {
        for name in gone {
            self.last.remove(&name);
            if self.gone.len() == GONE_MAX {
                self.gone.pop_front();
            }
            self.gone.push_back(name);
        }
    }

    /// Counts for those that are late, and forgets whoever has been silent for
    /// too long or has nothing that could count. Returns for how many it counts.
    /// Whoever `is_known` otherwise, by having been asked, is not counted for.
    pub fn fill(&mut self, now: Moment, load: &mut Collection, is_known: impl Fn(&str) -> bool) -> u32 {
        let mut late: Vec<Arc<str>> = Vec::new();
        self.last.retain(|name, last| {
            let silent = now.since(last.at);
            if silent < LATE || (silent <= COUNTS_ON && is_known(name)) {
                return true;
            }
            let counts = last.concurrency != 0.0 || last.rps > 0.0;
            if !counts || silent > COUNTS_ON {
                return false;
            }
            late.push(name.clone());
            true
        });
        // The table has another order in each process, and sums of fractions
        // depend on their order: the same reports must give the same load.
        late.sort_unstable();
        for name in &late {
            if let Some(last) = self.last.get_mut(name) {
                last.fill(now, load);
            }
        }
        u32::try_from(late.len()).unwrap_or(u32::MAX)
    }

    /// So many pods to take away, by name: those that start first, then those
    /// without work, then those with the least; of equal ones the youngest.
    pub fn go_first(&self, pods: &[Pod], excess: usize, now: Moment) -> Vec<PodName> {
        let work = |pod: &Pod| match self.last.get(&pod.name) {
            Some(last) if now.since(last.at) <= FRESH => last.inside,
            // It may have anything.
            _ => f64::INFINITY,
        };
        let staying = pods.iter().enumerate().filter(|(_, pod)| pod.phase != PodPhase::Terminating);
        let mut all: Vec<(bool, f64, usize)> =
            staying.map(|(at, pod)| (pod.phase == PodPhase::Ready, work(pod), at)).collect();
        all.sort_by(|a, b| {
            let work = if a.0 && b.0 { a.1.total_cmp(&b.1) } else { a.0.cmp(&b.0) };
            work.then(b.2.cmp(&a.2))
        });
        all.into_iter().take(excess).map(|(.., at)| pods[at].name.clone()).collect()
    }

    /// Bytes held beside its own size, nearly: names are shared.
    pub fn heap_bytes(&self) -> usize {
        // A table has up to twice its entries, and a byte of its own for each.
        self.last.capacity() * (size_of::<(Arc<str>, Last)>() + 1) * 8 / 7 + self.gone.capacity() * size_of::<PodName>()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.last.len()
    }

    /// True when nobody reports.
    pub fn is_empty(&self) -> bool {
        self.last.is_empty()
    }
}

impl Last {
    /// Takes back what was counted for the second of a report that has come.
    fn make_room(&self, at: Moment, load: &mut Collection) {
        if let Some((until, concurrency, rps)) = self.filled
            && (self.at.unix_seconds() + 1..=until).contains(&at.unix_seconds())
        {
            load.add(at, -concurrency, -rps);
        }
    }

    fn fill(&mut self, now: Moment, load: &mut Collection) {
        let (until, concurrency, rps) =
            self.filled.unwrap_or((self.at.unix_seconds(), self.concurrency, self.rps.max(0.0)));
        let last = now.unix_seconds();
        for second in until + 1..=last {
            load.add(Moment::from_unix_millis(second.saturating_mul(1000)), concurrency, rps);
        }
        self.filled = Some((last.max(until), concurrency, rps));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collect::{Load, Silence};
    use crate::compat::Compat;
    use crate::revision::{Aggregation, Metric, WindowSpec};
    use std::net::{Ipv4Addr, SocketAddr};

    fn ms(millis: i64) -> Moment {
        Moment::from_unix_millis(millis)
    }

    fn load() -> Collection {
        let (stable, panic) = (Duration::from_secs(60), Duration::from_secs(6));
        let windows = WindowSpec { stable, panic, aggregation: Aggregation::Linear };
        Collection::new(&windows, Silence::Unknown, Compat::Better)
    }

    fn stat(name: &str, inside: f64, proxied: f64) -> Stat {
        Stat {
            pod_name: name.into(),
            average_concurrency: inside,
            average_proxied_concurrency: proxied,
            request_count: inside,
            proxied_request_count: proxied,
        }
    }

    fn panic_load(load: &Collection, now: Moment) -> f64 {
        match load.load(Metric::Concurrency, now) {
            Load::Average { panic, .. } => panic,
            none => panic!("{none:?}"),
        }
    }

    #[test]
    fn a_silent_reporter_counts_on_and_not_for_ever() {
        let (mut all, mut load) = (Reporters::default(), load());
        for second in 1..=100 {
            all.record(ms(second * 1000), &stat("a", 0.0, 0.0), false, &mut load).unwrap();
            if second <= 20 {
                all.record(ms(second * 1000), &stat("b", 6.0, 0.0), false, &mut load).unwrap();
            }
            all.fill(ms(second * 1000 + 100), &mut load, |_| false);
            let inside = panic_load(&load, ms(second * 1000 + 100));
            match second {
                10..=80 => assert!((5.0..=6.0).contains(&inside), "{second}: {inside}"),
                90.. => assert_eq!(inside, 0.0, "{second}"),
                _ => {}
            }
        }
    }

    #[test]
    fn a_report_that_comes_late_takes_its_place_back() {
        let (mut all, mut load) = (Reporters::default(), load());
        all.record(ms(10_000), &stat("a", 6.0, 0.0), false, &mut load).unwrap();
        assert_eq!(all.fill(ms(13_100), &mut load, |_| false), 1);
        assert_eq!(load.second(13), Some((6.0, 6.0)));
        for second in 11..=14 {
            all.record(ms(second * 1000), &stat("a", 2.0, 0.0), false, &mut load).unwrap();
        }
        let seen: Vec<f64> = (10..=14).filter_map(|second| load.second(second)).map(|(inside, _)| inside).collect();
        assert_eq!(seen, [6.0, 2.0, 2.0, 2.0, 2.0]);
        assert_eq!(all.fill(ms(14_100), &mut load, |_| false), 0);
    }

    #[test]
    fn whoever_said_goodbye_or_is_gone_is_not_counted_on() {
        let (mut all, mut load) = (Reporters::default(), load());
        all.record(ms(10_000), &stat("activator", 0.0, 0.0), false, &mut load).unwrap();
        all.record(ms(10_000), &stat("p1", 5.0, 0.0), false, &mut load).unwrap();
        all.forget([Arc::from("p1")]);
        // Its last words come after that.
        all.record(ms(10_500), &stat("p1", 5.0, 0.0), false, &mut load).unwrap();
        assert_eq!((all.fill(ms(13_000), &mut load, |_| false), all.len()), (0, 0));
    }

    #[test]
    fn what_was_told_beforehand_counts_with_the_report_that_leaves_it_out() {
        let (mut all, mut load) = (Reporters::default(), load());
        all.record(ms(10_300), &stat("activator", 4.0, 0.0), true, &mut load).unwrap();
        all.record(ms(11_000), &stat("activator", 0.0, 0.0), false, &mut load).unwrap();
        assert_eq!(all.fill(ms(13_100), &mut load, |_| false), 1);
        assert_eq!(load.second(13), Some((4.0, 4.0)));
    }

    #[test]
    fn what_was_told_beforehand_and_is_over_soon_leaves_nothing_behind() {
        let (mut all, mut load) = (Reporters::default(), load());
        all.record(ms(10_900), &stat("activator", 1.0, 0.0), true, &mut load).unwrap();
        all.record(ms(11_000), &stat("activator", 0.0, 0.0), false, &mut load).unwrap();
        all.record(ms(12_000), &stat("activator", 0.0, 0.0), false, &mut load).unwrap();
        assert_eq!((all.fill(ms(20_000), &mut load, |_| false), all.len()), (0, 0));
    }

    #[test]
    fn who_is_asked_meanwhile_is_not_counted_for_as_well() {
        let (mut all, mut load) = (Reporters::default(), load());
        for name in ["p1", "activator"] {
            all.record(ms(10_000), &stat(name, 3.0, 0.0), false, &mut load).unwrap();
        }
        assert_eq!(all.fill(ms(13_100), &mut load, |name| name == "p1"), 1);
        assert_eq!(load.second(13), Some((3.0, 3.0)));
    }

    #[test]
    fn who_is_remembered_is_bounded() {
        let (mut all, mut load) = (Reporters::default(), load());
        for n in 0..REPORTERS_MAX + 9 {
            all.record(ms(10_000), &stat(&n.to_string(), 1.0, 0.0), false, &mut load).unwrap();
        }
        assert_eq!(all.len(), REPORTERS_MAX);
    }

    #[test]
    fn those_that_start_go_first_then_the_idle_and_then_the_least_busy() {
        let phases = [PodPhase::Ready, PodPhase::Ready, PodPhase::Starting, PodPhase::Ready, PodPhase::Terminating];
        let pods: Vec<Pod> = phases
            .into_iter()
            .enumerate()
            .map(|(at, phase)| Pod {
                name: format!("p{at}").into(),
                address: SocketAddr::from((Ipv4Addr::LOCALHOST, 1)),
                phase,
                since: ms(0),
                start_took: None,
            })
            .collect();
        let (mut all, mut load) = (Reporters::default(), load());
        for (name, inside) in [("p0", 3.0), ("p1", 0.0), ("p3", 0.5)] {
            all.record(ms(10_000), &stat(name, inside, inside), false, &mut load).unwrap();
        }
        let names = |count| all.go_first(&pods, count, ms(10_100)).join(" ");
        assert_eq!((names(1), names(3), names(9)), ("p2".into(), "p2 p1 p3".into(), "p2 p1 p3 p0".to_owned()));
    }
}
