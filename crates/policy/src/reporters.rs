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
use std::collections::{HashMap, HashSet};
use std::time::Duration;

/// A reporter is late from here on; each reports once a second.
const LATE: Duration = Duration::from_millis(1500);
/// How long what was said last counts on: as long as the reference's default
/// window, in which it would count as well.
pub const COUNTS_ON: Duration = Duration::from_secs(60);
/// A pod that said within this time that it has nothing to do has nothing.
const FRESH: Duration = Duration::from_secs(3);
/// What pushed within so long is not asked: a report a second, and half of one
/// for its delay. One that is later than that finds its pod asked, and is not
/// counted for that second.
pub const PUSHES: Duration = Duration::from_millis(1500);
/// The last words of a pod that is gone come within.
const GONE: Duration = Duration::from_secs(60);
/// Reporters of one revision, beside its pods; what more say is recorded and
/// not remembered.
const REPORTERS_MAX: usize = 20_000;
/// Names that are kept of those that are gone.
const GONE_MAX: usize = 64;
/// From so many on there is an index.
const MANY: usize = 16;
/// Has [pushed](Reporter::pushed): it is no pod.
const NO_POD: Moment = Moment::MIN;
/// A pod that never has.
const NEVER: Moment = Moment::from_unix_nanos(i64::MIN + 1);

/// All that report of one revision.
// In this order: the list is what each report needs.
#[derive(Clone, Debug, Default, PartialEq)]
#[repr(C)]
pub struct Reporters {
    list: Vec<Reporter>,
    /// The last ones that are gone: their last words may come late.
    gone: Vec<Gone>,
    /// Where each is, when there are many.
    places: Option<HashMap<PodName, usize>>,
}

/// What one said last: a cache line.
#[derive(Clone, Debug, PartialEq)]
#[repr(align(64))]
struct Reporter {
    name: PodName,
    /// `Moment::MIN` = nothing yet.
    at: Moment,
    /// What counts: without what came through an activator.
    concurrency: f64,
    rps: f64,
    /// All that is inside, whichever way it came.
    inside: f64,
    /// When a pod has pushed last.
    pushed: Moment,
    /// Seldom there.
    beside: Option<Box<Beside>>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Beside {
    /// What it has announced since its last report, requests in progress and
    /// new ones. The next one leaves them out, and may be zero though they are
    /// there.
    announced: (f64, f64),
    /// Seconds up to this one were filled up with these.
    filled: Option<(i64, f64, f64)>,
}

#[derive(Clone, Debug, PartialEq)]
struct Gone {
    name: PodName,
    pushed: Moment,
    since: Moment,
}

/// Who reports, as [`Reporters::hear`] has found.
#[derive(Clone, Copy, Debug)]
pub struct Heard {
    place: Option<usize>,
    gone: bool,
    /// A pod that has not pushed of late: it may have been asked as well.
    pub begins: bool,
}

/// What one said last, as plain values.
#[derive(Clone, Debug, PartialEq)]
pub struct SavedReporter {
    /// Who.
    pub name: PodName,
    /// When; [`Moment::MIN`] = nothing yet.
    pub at: Moment,
    /// Requests in progress that count: without what came through an activator.
    pub concurrency: f64,
    /// The same of arrivals per second.
    pub rps: f64,
    /// All that is inside, whichever way it came.
    pub inside: f64,
    /// When a pod has pushed last; `None` = no pod.
    pub pushed: Option<Moment>,
    /// Requests in progress and new ones that it has announced since.
    pub announced: (f64, f64),
    /// Seconds up to this one were filled up with these.
    pub filled: Option<(i64, f64, f64)>,
}

/// All that [`Reporters`] hold, as plain values and in their order, on which the
/// last digit of a sum depends.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SavedReporters {
    /// What each said last.
    pub list: Vec<SavedReporter>,
    /// Who went lately, when it had pushed last, and since when it is gone.
    pub gone: Vec<(PodName, Option<Moment>, Moment)>,
}

impl Heard {
    /// A place to begin with next time.
    pub fn place(&self) -> Option<u32> {
        self.place.and_then(|place| u32::try_from(place).ok())
    }
}

impl Reporters {
    /// All that they hold.
    pub fn save(&self) -> SavedReporters {
        let one = |one: &Reporter| {
            let Reporter { name, at, concurrency, rps, inside, pushed, beside } = one.clone();
            let Beside { announced, filled } = beside.map(|beside| *beside).unwrap_or_default();
            SavedReporter { name, at, concurrency, rps, inside, pushed: saved_push(pushed), announced, filled }
        };
        let gone = self.gone.iter().map(|gone| (gone.name.clone(), saved_push(gone.pushed), gone.since));
        SavedReporters { list: self.list.iter().map(one).collect(), gone: gone.collect() }
    }

    /// Goes on with what others have held.
    pub fn restore(saved: SavedReporters) -> Reporters {
        let mut all = Reporters::default();
        for one in saved.list.into_iter().take(REPORTERS_MAX) {
            let SavedReporter { name, at, concurrency, rps, inside, announced, filled, .. } = one;
            let pushed = restored_push(one.pushed);
            let beside = Beside { announced, filled };
            let beside = (beside != Beside::default()).then(|| beside.into());
            all.insert(Reporter { name, at, concurrency, rps, inside, pushed, beside });
        }
        let gone = saved.gone.into_iter().take(GONE_MAX);
        all.gone = gone.map(|(name, pushed, since)| Gone { name, pushed: restored_push(pushed), since }).collect();
        all
    }

    /// Somebody reports `now`. Of one that is new, `pod` says under which name
    /// it is a pod, if it is one; [`Reporters::follow`] tells of the others.
    /// `guess`: its place of last time, if that is known.
    pub fn hear(
        &mut self,
        name: &PodName,
        guess: Option<u32>,
        now: Moment,
        pod: impl FnOnce() -> Option<PodName>,
    ) -> Heard {
        let guess = guess.map(|place| place as usize);
        let guess = guess.filter(|&place| self.list.get(place).is_some_and(|one| PodName::ptr_eq(&one.name, name)));
        if let Some(place) = guess.or_else(|| self.place(name)) {
            let begins = push(&mut self.list[place].pushed, now);
            return Heard { place: Some(place), gone: false, begins };
        }
        if let Some(gone) = self.gone.iter_mut().find(|gone| gone.name == *name) {
            return Heard { place: None, gone: true, begins: push(&mut gone.pushed, now) };
        }
        let place = pod().map(|name| self.insert(Reporter { pushed: now, ..Reporter::new(&name) }));
        Heard { place, gone: false, begins: place.is_some() }
    }

    /// Looks at the memory of the one in that place, so that it is there by the
    /// time it is needed.
    pub fn touch(&self, place: Option<u32>) -> u64 {
        let one = place.and_then(|place| self.list.get(place as usize));
        one.map_or(0, |one| one.inside.to_bits() ^ one.at.unix_nanos().cast_unsigned())
    }

    /// The name that it is found by soonest.
    pub fn name(&self, heard: &Heard) -> Option<&PodName> {
        Some(&self.list.get(heard.place?)?.name)
    }

    /// Records a report of the second that ended `at`, or, where it is
    /// `urgent`, requests that the next one leaves out.
    ///
    /// # Errors
    /// [`Dropped`] when it makes no sense; nothing is recorded then.
    pub fn record(
        &mut self,
        heard: Heard,
        at: Moment,
        stat: &Stat,
        urgent: bool,
        load: &mut Collection,
    ) -> Result<(), Dropped> {
        load.record(at, stat)?;
        let place = match heard.place {
            Some(place) => place,
            None if heard.gone || self.list.len() >= REPORTERS_MAX => return Ok(()),
            None => self.insert(Reporter::new(&stat.pod_name)),
        };
        let last = &mut self.list[place];
        let concurrency = stat.average_concurrency - stat.average_proxied_concurrency;
        let rps = stat.request_count - stat.proxied_request_count;
        if urgent {
            if last.at == Moment::MIN {
                last.at = at;
            }
            last.concurrency += concurrency;
            last.rps += rps;
            last.inside += stat.average_concurrency;
            let announced = &mut last.beside.get_or_insert_default().announced;
            *announced = (announced.0 + stat.average_concurrency, announced.1 + stat.request_count);
            return Ok(());
        }
        let mut announced = (0.0, 0.0);
        if let Some(beside) = &mut last.beside {
            beside.make_room(last.at, at, load);
            // A late one says nothing about now.
            if at >= last.at {
                announced = std::mem::take(&mut beside.announced);
                beside.filled = beside.filled.filter(|&(until, ..)| at.unix_seconds() < until);
                if **beside == Beside::default() {
                    last.beside = None;
                }
            }
        }
        if at >= last.at {
            last.at = at;
            last.concurrency = concurrency + announced.0;
            last.rps = rps + announced.1;
            last.inside = stat.average_concurrency + announced.0;
        }
        Ok(())
    }

    /// Other pods are `there`: those of `before` that are not among them are
    /// gone, with all they had.
    pub fn follow(&mut self, before: &[Pod], there: &[Pod], now: Moment) {
        if self.list.is_empty() && self.gone.is_empty() && before.is_empty() {
            return;
        }
        let names: HashSet<&str> = there.iter().map(|pod| &*pod.name).collect();
        self.gone.retain(|gone| !names.contains(&*gone.name));
        for pod in before.iter().filter(|pod| !names.contains(&*pod.name)) {
            self.forget(&pod.name, now);
        }
        for pod in there {
            let Some(place) = self.place(&pod.name) else { continue };
            let one = &mut self.list[place];
            one.name = pod.name.clone();
            one.pushed = one.pushed.max(NEVER);
        }
    }

    fn forget(&mut self, name: &PodName, now: Moment) {
        let pushed = self.place(name).map_or(NEVER, |place| self.remove(place).pushed.max(NEVER));
        if self.gone.len() == GONE_MAX {
            self.gone.remove(0);
        }
        self.gone.push(Gone { name: name.clone(), pushed, since: now });
    }

    /// Whether a pod pushes its stats.
    pub fn push(&self, pod: &str, now: Moment) -> bool {
        self.place(pod).is_some_and(|place| self.list[place].pushes(now))
    }

    /// Counts for those that are late, and forgets whoever has been silent for
    /// too long or has nothing that could count. Returns for how many it counts.
    /// Whoever `is_known` otherwise, by having been asked, is not counted for.
    pub fn fill(&mut self, now: Moment, load: &mut Collection, is_known: impl Fn(&str) -> bool) -> u32 {
        let (mut late, mut place) = (0, 0);
        while let Some(last) = self.list.get_mut(place) {
            let silent = now.since(last.at);
            if silent < LATE || (silent <= COUNTS_ON && is_known(&last.name)) {
                place += 1;
            } else if silent <= COUNTS_ON && (last.concurrency != 0.0 || last.rps > 0.0) {
                late += 1;
                last.fill(now, load);
                place += 1;
            } else if last.pushes(now) {
                place += 1;
            } else {
                self.remove(place);
            }
        }
        self.release(now);
        late
    }

    /// Gives memory back that is not needed.
    fn release(&mut self, now: Moment) {
        if self.list.is_empty() {
            self.list = Vec::new();
        } else if self.list.capacity() > 4 * self.list.len().max(MANY) {
            self.list.shrink_to(2 * self.list.len());
        }
        if self.gone.capacity() > 0 {
            self.gone.retain(|gone| now.since(gone.since) < GONE);
            if self.gone.is_empty() {
                self.gone = Vec::new();
            }
        }
    }

    /// So many pods to take away, by name: those that start first, then those
    /// without work, then those with the least; of equal ones the youngest.
    pub fn go_first(&self, pods: &[Pod], excess: usize, now: Moment) -> Vec<PodName> {
        let work = |pod: &Pod| match self.place(&pod.name).map(|place| &self.list[place]) {
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
        let beside = self.list.iter().filter(|one| one.beside.is_some()).count() * size_of::<Beside>();
        // A table has up to twice its entries, and a byte of its own for each.
        let places = self.places.as_ref().map_or(0, |places| places.capacity() * (size_of::<(PodName, usize)>() + 1));
        let (list, gone) = (self.list.capacity() * size_of::<Reporter>(), self.gone.capacity() * size_of::<Gone>());
        list + beside + places * 8 / 7 + gone
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// True when nobody reports.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    fn place(&self, name: &str) -> Option<usize> {
        match &self.places {
            Some(places) => places.get(name).copied(),
            // Names are kept once, so most of the time this looks at none.
            None => (self.list.iter())
                .position(|one| std::ptr::eq(&*one.name, name))
                .or_else(|| self.list.iter().position(|one| *one.name == *name)),
        }
    }

    fn insert(&mut self, one: Reporter) -> usize {
        let place = self.list.len();
        if let Some(places) = &mut self.places {
            places.insert(one.name.clone(), place);
        }
        self.list.push(one);
        if self.places.is_none() && place >= MANY {
            let all = self.list.iter().enumerate();
            self.places = Some(all.map(|(place, one)| (one.name.clone(), place)).collect());
        }
        place
    }

    /// Takes one away; the last one has its place then.
    fn remove(&mut self, place: usize) -> Reporter {
        let gone = self.list.swap_remove(place);
        if self.list.len() <= MANY / 2 {
            self.places = None;
        }
        if let Some(places) = &mut self.places {
            places.remove(&gone.name);
            if let Some(moved) = self.list.get(place) {
                places.insert(moved.name.clone(), place);
            }
        }
        gone
    }
}

impl Reporter {
    fn new(name: &PodName) -> Reporter {
        let (name, at) = (name.clone(), Moment::MIN);
        Reporter { name, at, concurrency: 0.0, rps: 0.0, inside: 0.0, pushed: NO_POD, beside: None }
    }

    fn pushes(&self, now: Moment) -> bool {
        now.since(self.pushed) < PUSHES
    }

    fn fill(&mut self, now: Moment, load: &mut Collection) {
        let filled = &mut self.beside.get_or_insert_default().filled;
        let (until, concurrency, rps) = filled.unwrap_or((self.at.unix_seconds(), self.concurrency, self.rps.max(0.0)));
        let last = now.unix_seconds();
        for second in until + 1..=last {
            load.add(Moment::from_unix_millis(second.saturating_mul(1000)), concurrency, rps);
        }
        *filled = Some((last.max(until), concurrency, rps));
    }
}

impl Beside {
    /// Takes back what was counted for the second of a report that has come.
    fn make_room(&self, last: Moment, at: Moment, load: &mut Collection) {
        if let Some((until, concurrency, rps)) = self.filled
            && (last.unix_seconds() + 1..=until).contains(&at.unix_seconds())
        {
            load.add(at, -concurrency, -rps);
        }
    }
}

/// As it is saved: `None` = no pod.
fn saved_push(pushed: Moment) -> Option<Moment> {
    match pushed {
        NO_POD => None,
        NEVER => Some(Moment::MIN),
        at => Some(at),
    }
}

fn restored_push(saved: Option<Moment>) -> Moment {
    saved.map_or(NO_POD, |at| at.max(NEVER))
}

/// Takes in that a pod has pushed. True when it has not done so of late.
fn push(pushed: &mut Moment, now: Moment) -> bool {
    if *pushed == NO_POD {
        return false;
    }
    let begins = now.since(*pushed) >= PUSHES;
    *pushed = now.max(*pushed);
    begins
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

    fn record(all: &mut Reporters, at: Moment, stat: &Stat, urgent: bool, load: &mut Collection) {
        let heard = all.hear(&stat.pod_name, None, at, || None);
        all.record(heard, at, stat, urgent, load).unwrap();
    }

    fn pods(phases: &[PodPhase]) -> Vec<Pod> {
        let pod = |(at, phase): (usize, &PodPhase)| Pod {
            name: format!("p{at}").into(),
            address: SocketAddr::from((Ipv4Addr::LOCALHOST, 1)),
            phase: *phase,
            since: ms(0),
            start_took: None,
        };
        phases.iter().enumerate().map(pod).collect()
    }

    fn panic_load(load: &mut Collection, now: Moment) -> f64 {
        match load.load(Metric::Concurrency, now) {
            Load::Average { panic, .. } => panic,
            none => panic!("{none:?}"),
        }
    }

    #[test]
    fn a_silent_reporter_counts_on_and_not_for_ever() {
        let (mut all, mut load) = (Reporters::default(), load());
        for second in 1..=100 {
            record(&mut all, ms(second * 1000), &stat("a", 0.0, 0.0), false, &mut load);
            if second <= 20 {
                record(&mut all, ms(second * 1000), &stat("b", 6.0, 0.0), false, &mut load);
            }
            all.fill(ms(second * 1000 + 100), &mut load, |_| false);
            let inside = panic_load(&mut load, ms(second * 1000 + 100));
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
        record(&mut all, ms(10_000), &stat("a", 6.0, 0.0), false, &mut load);
        assert_eq!(all.fill(ms(13_100), &mut load, |_| false), 1);
        assert_eq!(load.second(13), Some((6.0, 6.0)));
        for second in 11..=14 {
            record(&mut all, ms(second * 1000), &stat("a", 2.0, 0.0), false, &mut load);
        }
        let seen: Vec<f64> = (10..=14).filter_map(|second| load.second(second)).map(|(inside, _)| inside).collect();
        assert_eq!(seen, [6.0, 2.0, 2.0, 2.0, 2.0]);
        assert_eq!(all.fill(ms(14_100), &mut load, |_| false), 0);
    }

    #[test]
    fn whoever_said_goodbye_or_is_gone_is_not_counted_on() {
        let (mut all, mut load) = (Reporters::default(), load());
        record(&mut all, ms(10_000), &stat("activator", 0.0, 0.0), false, &mut load);
        record(&mut all, ms(10_000), &stat("p1", 5.0, 0.0), false, &mut load);
        all.forget(&"p1".into(), ms(10_100));
        // Its last words come after that.
        record(&mut all, ms(10_500), &stat("p1", 5.0, 0.0), false, &mut load);
        assert_eq!((all.fill(ms(13_000), &mut load, |_| false), all.len()), (0, 0));
    }

    #[test]
    fn what_was_told_beforehand_counts_with_the_report_that_leaves_it_out() {
        let (mut all, mut load) = (Reporters::default(), load());
        record(&mut all, ms(10_300), &stat("activator", 4.0, 0.0), true, &mut load);
        record(&mut all, ms(11_000), &stat("activator", 0.0, 0.0), false, &mut load);
        assert_eq!(all.fill(ms(13_100), &mut load, |_| false), 1);
        assert_eq!(load.second(13), Some((4.0, 4.0)));
    }

    #[test]
    fn what_was_told_beforehand_and_is_over_soon_leaves_nothing_behind() {
        let (mut all, mut load) = (Reporters::default(), load());
        record(&mut all, ms(10_900), &stat("activator", 1.0, 0.0), true, &mut load);
        record(&mut all, ms(11_000), &stat("activator", 0.0, 0.0), false, &mut load);
        record(&mut all, ms(12_000), &stat("activator", 0.0, 0.0), false, &mut load);
        assert_eq!((all.fill(ms(20_000), &mut load, |_| false), all.len()), (0, 0));
    }

    #[test]
    fn who_is_asked_meanwhile_is_not_counted_for_as_well() {
        let (mut all, mut load) = (Reporters::default(), load());
        for name in ["p1", "activator"] {
            record(&mut all, ms(10_000), &stat(name, 3.0, 0.0), false, &mut load);
        }
        assert_eq!(all.fill(ms(13_100), &mut load, |name| name == "p1"), 1);
        assert_eq!(load.second(13), Some((3.0, 3.0)));
    }

    #[test]
    fn who_is_remembered_is_bounded() {
        let (mut all, mut load) = (Reporters::default(), load());
        for n in 0..REPORTERS_MAX + 9 {
            record(&mut all, ms(10_000), &stat(&n.to_string(), 1.0, 0.0), false, &mut load);
        }
        assert_eq!(all.len(), REPORTERS_MAX);
    }

    #[test]
    fn who_has_pushed_lately_pushes() {
        let (mut all, mut load) = (Reporters::default(), load());
        let pods = pods(&[PodPhase::Ready]);
        let name = &pods[0].name;
        let pod = || Some(name.clone());
        assert!(all.hear(name, None, ms(10_000), pod).begins && !all.hear(name, None, ms(11_000), pod).begins);
        assert!(all.push("p0", ms(12_000)) && !all.push("p1", ms(12_000)) && !all.push("p0", ms(12_500)));
        assert!(all.hear(name, None, ms(12_500), pod).begins);
        // What it pushes last may come after it is gone.
        all.follow(&pods, &[], ms(13_000));
        assert!(!all.hear(name, None, ms(13_500), || None).begins && all.hear(name, None, ms(15_000), || None).begins);
        assert!(!all.push("p0", ms(15_000)));
        all.fill(ms(73_000), &mut load, |_| false);
        assert_eq!(all.heap_bytes(), 0);
        // One that began before it was known to be a pod.
        record(&mut all, ms(80_000), &stat("p0", 1.0, 0.0), false, &mut load);
        assert!(!all.push("p0", ms(80_000)));
        all.follow(&[], &pods, ms(80_500));
        assert!(all.hear(name, None, ms(81_000), || None).begins && all.push("p0", ms(81_000)));
    }

    #[test]
    fn many_are_found_as_few_are_and_nothing_is_held_when_all_are_gone() {
        let (mut all, mut load) = (Reporters::default(), load());
        let mut expected = HashMap::new();
        let mut seed = 7_u32;
        for step in 0..4000_u32 {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let name = ((seed >> 8) % 64).to_string();
            let at = ms(10_000 + i64::from(step));
            if seed >> 24 < if step < 2000 { 60 } else { 200 } {
                all.forget(&name.as_str().into(), at);
                expected.remove(&name);
                all.gone.clear();
            } else {
                record(&mut all, at, &stat(&name, f64::from(step), 0.0), false, &mut load);
                expected.insert(name, f64::from(step));
            }
            assert_eq!(all.len(), expected.len());
            let right = |(name, inside): (&String, &f64)| all.list[all.place(name).unwrap()].inside == *inside;
            assert!(expected.iter().all(right), "{step}");
        }
        all.fill(ms(200_000), &mut load, |_| false);
        assert_eq!((all.len(), all.heap_bytes()), (0, 0));
    }

    #[test]
    fn those_that_start_go_first_then_the_idle_and_then_the_least_busy() {
        let pods =
            pods(&[PodPhase::Ready, PodPhase::Ready, PodPhase::Starting, PodPhase::Ready, PodPhase::Terminating]);
        let (mut all, mut load) = (Reporters::default(), load());
        for (name, inside) in [("p0", 3.0), ("p1", 0.0), ("p3", 0.5)] {
            record(&mut all, ms(10_000), &stat(name, inside, inside), false, &mut load);
        }
        let names = |count| all.go_first(&pods, count, ms(10_100)).join(" ");
        assert_eq!((names(1), names(3), names(9)), ("p2".into(), "p2 p1 p3".into(), "p2 p1 p3 p0".to_owned()));
    }
}
