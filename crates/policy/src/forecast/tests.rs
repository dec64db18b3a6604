//! What a forecast says against the evaluation itself, fed with just that.

use super::*;
use crate::collect::Silence;
use crate::judge::{Judged, Mind, Sight, judge};
use crate::revision::{Aggregation, Bounds, RevisionSpec, ScaleSpec, Timeouts, WindowSpec};
use crate::world::Path;

/// Draws, the same each time.
struct Draw(u64);

impl Draw {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }

    fn of<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.next() as usize % from.len()]
    }

    fn share(&mut self) -> f64 {
        (self.next() % 1000) as f64 / 1000.0
    }
}

fn second(seconds: i64) -> Moment {
    Moment::from_unix_millis(seconds * 1000)
}

fn spec(draw: &mut Draw) -> RevisionSpec {
    let limit = draw.of(&[0, 0, 1, 10]);
    let total = if limit > 0 { f64::from(limit) } else { draw.of(&[1.0, 10.0, 100.0]) };
    let stable = Duration::from_secs(draw.of(&[6, 10, 30, 60]));
    let min = draw.of(&[0, 0, 0, 2]);
    RevisionSpec {
        service: "shop".into(),
        configuration: "shop".into(),
        container_concurrency: limit,
        timeouts: Timeouts { total: Duration::from_secs(300), response_start: None, idle: None, upgrade: None },
        scale: ScaleSpec {
            metric: draw.of(&[Metric::Concurrency, Metric::Concurrency, Metric::Rps]),
            target: total * draw.of(&[0.7, 1.0]),
            total,
            target_burst_capacity: draw.of(&[211.0, 0.0, -1.0, 10.0]),
            stable_window: stable,
            max_scale_up_rate: draw.of(&[1000.0, 2.0]),
            scale_down_delay: Duration::from_secs(draw.of(&[0, 0, 10, 40])),
            initial_scale: min.max(draw.of(&[0, 1])),
            activation_scale: draw.of(&[0, 0, 3]),
            ..ScaleSpec::KNATIVE
        },
        windows: WindowSpec {
            stable,
            panic: WindowSpec::panic_of(stable, 10.0),
            aggregation: draw.of(&[Aggregation::Linear, Aggregation::Linear, Aggregation::WeightedExponential]),
        },
        bounds: Bounds {
            min_scale: min,
            max_scale: draw.of(&[0, 0, 10, 3]),
            scale_to_zero: draw.of(&[true, true, false]),
            grace: Duration::from_secs(draw.of(&[0, 30])),
            retention: Duration::from_secs(draw.of(&[0, 0, 45])),
            progress_deadline: Duration::from_secs(60),
        },
    }
}

/// A revision with decisions every other second, 0.1 s into it; pods are there
/// as soon as they are ordered.
#[derive(Clone)]
struct World<'a> {
    course: Course<'a>,
    second: i64,
    /// Pods ordered, and since when.
    orders: Vec<(i64, u32)>,
}

impl World<'_> {
    /// Feeds one second, as it begins, and decides in each second one.
    fn feed(&mut self, load: (f64, f64), grows: bool) {
        self.second += 1;
        self.course.collection.add(second(self.second), load.0, load.1);
        if self.course.status.poke(load.0, self.course.compat) {
            self.decide(second(self.second), grows);
        }
        if self.second % 2 == 0 {
            self.decide(second(self.second) + Duration::from_millis(100), grows);
        }
    }

    fn decide(&mut self, at: Moment, grows: bool) {
        let course = &mut self.course;
        let sight = Sight {
            ready: course.ready,
            starting: course.starting,
            pods: course.ready + course.starting > 0,
            floor: None,
            in_path_for: course.in_path_since.map(|since| at.since(since)),
        };
        let mind = Mind {
            collection: &mut course.collection,
            overload: &mut course.overload,
            slots: &mut course.slots,
            memory: &mut course.memory,
            status: &mut course.status,
            zero: &mut course.zero,
        };
        let Judged { verdict, .. } = judge(course.spec, &sight, mind, course.compat, at);
        if let Some(pods) = verdict.order {
            course.ordered = pods;
            course.starting = course.starting.min(pods.saturating_sub(course.ready));
            course.ready = if grows { pods } else { course.ready.min(pods) };
            course.pods = course.ready > 0;
        }
        course.in_path_since = match (verdict.path, course.in_path_since) {
            (Path::Direct, _) => None,
            (Path::Activator, since) => since.or(Some(at)),
        };
        if self.orders.last().is_none_or(|last| last.1 != course.ordered) {
            self.orders.push((self.second, course.ordered));
        }
    }

    /// After how many seconds of that load another number is ordered, and
    /// which; `None` = not within the time, decisions included.
    fn first_change(&self, load: f64, service: f64, within: u32) -> Option<(u32, u32)> {
        let mut ahead = self.clone();
        ahead.orders.clear();
        let before = self.course.ordered;
        let load = match self.course.spec.scale.metric {
            Metric::Concurrency => (load, load / service),
            Metric::Rps => (load * service, load),
        };
        for fed in 1..=within {
            ahead.feed(load, false);
            if ahead.course.ordered != before {
                return Some((fed, ahead.course.ordered));
            }
        }
        None
    }
}

fn world<'a>(spec: &'a RevisionSpec, draw: &mut Draw) -> World<'a> {
    let compat = draw.of(&[Compat::Better, Compat::Better, Compat::Strict]);
    let began = second(1000);
    let course = Course {
        spec,
        compat,
        collection: Collection::new(&spec.windows, draw.of(&[Silence::Idle, Silence::Unknown]), compat),
        overload: Overload::new(spec.windows.stable, spec.windows.panic),
        slots: 0.0,
        memory: Memory::new(&spec.scale, 0, began, compat),
        status: Status::initial(&spec.scale, compat),
        zero: ZeroState::new(began, compat),
        ordered: 0,
        ready: 0,
        starting: 0,
        pods: false,
        in_path_since: Some(began),
    };
    let mut world = World { course, second: 1000, orders: Vec::new() };
    let mut load = 0.0;
    for at in 0..draw.of(&[3, 20, 70, 150]) {
        if at % 20 == 0 {
            load = draw.of(&[0.0, 0.5, 1.0, 2.5, 7.0, 7.1]) * spec.scale.total * draw.of(&[0.3, 1.0]);
        }
        let noisy = load * (0.9 + 0.2 * draw.share());
        world.feed((noisy, noisy * 2.0), true);
    }
    if draw.of(&[true, false, false]) {
        (0..150).for_each(|_| world.feed((0.0, 0.0), true));
    }
    world
}

#[test]
fn what_is_said_comes_and_one_per_cent_off_it_does_not() {
    let mut seen = [0; 4];
    for seed in 0..200 {
        let mut draw = Draw(seed);
        let spec = spec(&mut draw);
        let world = world(&spec, &mut draw);
        let now = second(world.second) + Duration::from_millis(draw.next() as i64 as u64 % 900 + 101);
        let next = second(world.second + 2 - world.second % 2) + Duration::from_millis(100);
        let beat = Beat { next, every: Duration::from_secs(2) };
        let told = forecast(&world.course, beat, |_| None, now);
        let service = super::service(&world.course, now);
        assert!(!told.cut_short, "{seed}");
        for change in told.more.iter().chain(&told.fewer) {
            let said = Some((change.seconds, change.pods));
            let ask = |load: f64| world.first_change(load, service, change.seconds);
            let say = || format!("seed {seed}: {change:?} of {told:?}\n{:?}", world.course);
            match change.when {
                When::Above(edge) => {
                    assert_eq!(ask(edge.does), said, "{}", say());
                    let more = |of: Option<(u32, u32)>| of.is_some_and(|of| of.1 > world.course.ordered);
                    assert!(!more(ask(edge.does_not)), "{}", say());
                    assert!(edge.does_not == 0.0 || !more(ask(edge.does * 0.99)), "{}", say());
                    seen[0] += 1;
                }
                When::Below(edge) => {
                    assert_eq!(ask(edge.does), said, "{}", say());
                    // A second shorter is not enough, nor is a little more load.
                    assert_eq!(world.first_change(edge.does, service, change.seconds - 1), None, "{}", say());
                    let less = |of: Option<(u32, u32)>| of.is_some_and(|of| of.1 < world.course.ordered);
                    assert!(!less(ask(edge.does_not)) && !less(ask(edge.does * 1.01)), "{}", say());
                    seen[1] += 1;
                }
                When::Nothing if change.pods == 0 => {
                    let mut ahead = world.clone();
                    let mut fed = 0;
                    while ahead.course.ordered > 0 && fed <= change.seconds {
                        ahead.feed((0.0, 0.0), false);
                        fed += 1;
                    }
                    assert_eq!(fed, change.seconds, "{}", say());
                    seen[2] += 1;
                }
                When::Nothing => assert_eq!(ask(0.0), said, "{}", say()),
                When::Any => {
                    assert_eq!(
                        ask(0.0).map(|of| of.1 > world.course.ordered),
                        ask(1e6).map(|of| of.1 > world.course.ordered),
                        "{}",
                        say()
                    );
                }
                When::FirstRequest => {
                    let mut ahead = world.clone();
                    ahead.course.collection.add(now, 1.0, 1.0);
                    ahead.decide(now, false);
                    assert_eq!(ahead.course.ordered, change.pods, "{}", say());
                    seen[3] += 1;
                }
            }
        }
        if told.more.is_empty() {
            let ordered = world.course.ordered;
            assert!(ordered == 0 || world.first_change(1e8, service, 60).is_none_or(|of| of.1 < ordered), "{seed}");
        }
    }
    let [above, below, zero, first] = seen;
    assert!(above > 100 && below > 50 && zero > 50 && first > 20, "{seen:?}");
}

#[test]
fn the_longest_windows_are_looked_through() {
    let mut draw = Draw(7);
    let mut long = spec(&mut draw);
    long.scale.stable_window = Duration::from_secs(3600);
    long.scale.scale_down_delay = Duration::from_secs(3600);
    long.windows = WindowSpec {
        stable: Duration::from_secs(3600),
        panic: Duration::from_secs(360),
        aggregation: Aggregation::Linear,
    };
    long.bounds.min_scale = 0;
    let mut world = world(&long, &mut draw);
    (0..200).for_each(|_| world.feed((long.scale.target * 1.5, 1.0), true));
    let now = second(world.second) + Duration::from_millis(500);
    let beat = Beat { next: second(world.second + 2) + Duration::from_millis(100), every: Duration::from_secs(2) };
    let told = forecast(&world.course, beat, |_| None, now);
    assert!(!told.cut_short && !told.fewer.is_empty(), "{told:?}");
}
