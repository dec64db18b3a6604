//! A recording of an autoscaler, decided on again: not a digit differs,
//! whatever came in, and whenever the recording began.

use autoscaler::explain::changes::Changes;
use autoscaler::explain::{Replay, Told};
use autoscaler::forward::{Owner, Owners};
use autoscaler::record::stream::UNREAD_MAX;
use autoscaler::record::{Ask, RECORDINGS_MAX, Recording, Refused};
use autoscaler::schedule::Schedule;
use autoscaler::{Autoscaler, Config};
use fastrand::Rng;
use policy::collect::Silence;
use policy::compat::Compat;
use policy::moment::Moment;
use policy::revision::{Aggregation, Bounds, Metric, RevisionId, RevisionSpec, ScaleSpec, Timeouts, WindowSpec};
use policy::scrape::{Outcome, ScrapeError};
use policy::stat::{Stat, StatBatch};
use policy::world::{Network, Order, Path, Pod, PodPhase, RevisionView, Snapshot};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tests::loads;
use tokio::sync::watch;

const REVISIONS: usize = 6;

/// Limits that a long run must have met, in each mode.
const COMMON: [&str; 11] = [
    "rate-up",
    "rate-down",
    "activation-scale",
    "panic-floor",
    "delay-window",
    "initial-scale",
    "min-scale",
    "max-scale",
    "scale-to-zero-off",
    "stable-window",
    "retention",
];

/// One revision of the model.
struct Revision {
    id: RevisionId,
    spec: Arc<RevisionSpec>,
    pods: Vec<Pod>,
    path: (Path, Moment),
    load: f64,
    made: usize,
    exists: bool,
    /// Reporters that say nothing until then.
    silent: BTreeMap<String, Moment>,
}

/// Everything around an autoscaler, at random.
struct World {
    random: Rng,
    now: Moment,
    config: Config,
    autoscaler: Autoscaler,
    owners: watch::Sender<Arc<Owners>>,
    revisions: Vec<Revision>,
    views: BTreeMap<RevisionId, Arc<RevisionView>>,
    /// The recordings that are read, and what was read of them.
    recordings: Vec<(Option<Recording>, Vec<u8>)>,
    orders: usize,
}

fn spec(random: &mut Rng) -> RevisionSpec {
    let stable = Duration::from_secs(random.u64(6..40));
    let limit = random.choice([0, 1, 10, 100]).unwrap();
    let target = random.choice([0.7, 3.0, 7.0, 70.0]).unwrap();
    RevisionSpec {
        service: "shop".into(),
        configuration: "shop".into(),
        container_concurrency: limit,
        timeouts: Timeouts { total: Duration::from_secs(300), response_start: None, idle: None, upgrade: None },
        scale: ScaleSpec {
            metric: if random.u8(..4) == 0 { Metric::Rps } else { Metric::Concurrency },
            target,
            total: target / 0.7,
            target_burst_capacity: random.choice([-1.0, 0.0, 10.0, 211.0]).unwrap(),
            stable_window: stable,
            scale_down_delay: Duration::from_secs(random.choice([0, 0, 5, 20]).unwrap()),
            initial_scale: random.i32(0..3),
            activation_scale: random.i32(0..3),
            max_scale_up_rate: random.choice([2.0, 1000.0]).unwrap(),
            max_scale_down_rate: 1.5,
            reachable: random.u8(..10) > 0,
            ..ScaleSpec::KNATIVE
        },
        windows: WindowSpec {
            stable,
            panic: WindowSpec::panic_of(stable, random.choice([10.0, 30.0]).unwrap()),
            aggregation: if random.bool() { Aggregation::Linear } else { Aggregation::WeightedExponential },
        },
        bounds: Bounds {
            min_scale: random.i32(0..2),
            max_scale: random.choice([0, 5, 30]).unwrap(),
            scale_to_zero: random.u8(..5) > 0,
            grace: Duration::from_secs(random.u64(0..10)),
            retention: Duration::from_secs(random.u64(0..5)),
            progress_deadline: Duration::from_secs(20),
        },
    }
}

fn owners(random: &mut Rng) -> Arc<Owners> {
    let mut owner = || if random.u8(..8) == 0 { Owner::At(vec!["10.0.0.2:8080".into()]) } else { Owner::Here };
    Owners::new([("a".into(), Some(owner())), ("b".into(), Some(owner()))]).into()
}

impl World {
    fn new(seed: u64, compat: Compat) -> World {
        let mut random = Rng::with_seed(seed);
        let now = Moment::from_unix_millis(1_700_000_000_000 + random.i64(0..1_000_000));
        let revisions = (0..REVISIONS).map(|n| Revision {
            id: RevisionId::new("default", format!("rev-{n}")),
            spec: Arc::new(spec(&mut random)),
            pods: Vec::new(),
            path: (Path::Activator, now),
            load: 0.0,
            made: 0,
            exists: true,
            silent: BTreeMap::new(),
        });
        let revisions: Vec<_> = revisions.collect();
        let floor = Schedule::new(revisions[1].id.clone(), "*/3 * * * *", "1/3 * * * *", "UTC", 2).unwrap();
        let silence = if random.bool() { Silence::Idle } else { Silence::Unknown };
        let config = Config { compat, silence, schedules: vec![floor].into(), ..Config::default() };
        let (owners, owned) = watch::channel(owners(&mut random));
        let autoscaler = Autoscaler::new(config.clone()).among(owned);
        let recordings = Vec::new();
        World { random, now, config, autoscaler, owners, revisions, views: BTreeMap::new(), recordings, orders: 0 }
    }

    fn record(&mut self, ask: Ask) {
        let recording = self.autoscaler.record_from(ask, self.now).unwrap();
        self.recordings.push((Some(recording), Vec::new()));
    }

    fn read(&mut self) {
        for (recording, lines) in &mut self.recordings {
            lines.extend(recording.iter_mut().flat_map(Recording::read));
        }
    }

    /// A tenth of a second, in which anything may happen.
    fn step(&mut self, step: u64) {
        self.now = self.now + Duration::from_micros(100_000 + self.random.u64(..3));
        let now = self.now;
        if step.is_multiple_of(10) {
            self.report();
            self.scrape();
        }
        for at in 0..REVISIONS {
            self.change(at);
        }
        self.publish();
        let due = |world: &mut World| {
            let mut orders = Vec::new();
            world.autoscaler.decide(3, now, |order| orders.push(order));
            world.follow(orders);
        };
        if step % 10 == 3 {
            self.autoscaler.tick();
        }
        due(self);
        if self.random.u16(..700) == 0 {
            self.owners.send_replace(owners(&mut self.random));
            self.publish();
        }
        if self.random.u16(..1500) == 0 {
            self.restart();
        }
        if self.random.u8(..5) == 0 {
            self.read();
        }
    }

    fn change(&mut self, at: usize) {
        let (random, now) = (&mut self.random, self.now);
        let revision = &mut self.revisions[at];
        if random.u16(..300) == 0 {
            let most = random.choice([0.0, 0.0, 2.0, 30.0, 300.0]).unwrap();
            revision.load = most * random.f64();
            if revision.load > 0.0 {
                let poke = stat(&format!("activator-{}", random.u8(..2)), [1.0, 0.0, 1.0, 0.0]);
                let batch = StatBatch { at: now, stats: vec![(revision.id.clone(), poke)], poke: true };
                let orders = self.autoscaler.ingest(&batch, now);
                return self.follow(orders);
            }
        }
        if random.u16(..600) == 0 {
            revision.spec = spec(random).into();
        }
        if random.u16(..2000) == 0 {
            revision.exists = !revision.exists;
        }
        for pod in &mut revision.pods {
            if random.u8(..30) == 0 {
                pod.phase = match pod.phase {
                    PodPhase::Starting => PodPhase::Ready,
                    PodPhase::Ready if random.u8(..20) == 0 => PodPhase::Starting,
                    other => other,
                };
                pod.since = now;
            }
        }
        revision.pods.retain(|pod| pod.phase != PodPhase::Terminating || random.u8(..20) > 0);
    }

    fn report(&mut self) {
        let random = &mut self.random;
        let mut stats = Vec::new();
        for revision in &mut self.revisions {
            let ready = revision.pods.iter().filter(|pod| pod.phase == PodPhase::Ready);
            let names = ready.map(|pod| pod.name.to_string()).chain(["activator-0".into(), "activator-1".into()]);
            for name in names.collect::<Vec<_>>() {
                if random.u8(..100) == 0 {
                    revision.silent.insert(name.clone(), self.now + Duration::from_secs(random.u64(1..80)));
                }
                if revision.silent.get(&name).is_some_and(|until| *until > self.now) {
                    continue;
                }
                // Some loads lie still, as far as a load does.
                let steady = revision.id.name.ends_with(['2', '3']);
                let share = revision.load * if steady { 0.9 + random.f64() / 5.0 } else { random.f64() };
                let odd = random.choice([f64::NAN, f64::INFINITY, -3.0, 1e300]).unwrap();
                let numbers = match random.u16(..2000) {
                    0 => [odd, 0.0, 1.0, 0.0],
                    _ if name.starts_with("act") => [share, 0.0, share * 2.0, 0.0],
                    _ => [share, share * random.f64(), share, share / 3.0],
                };
                stats.push((revision.id.clone(), stat(&name, numbers)));
            }
        }
        let mut late = Vec::new();
        stats.retain(|stat| {
            let is_late = random.u8(..50) == 0;
            if is_late {
                late.push(stat.clone());
            }
            !is_late
        });
        let at = self.now;
        let earlier = at - Duration::from_millis(random.u64(1..5000));
        for (at, stats) in [(at, stats), (earlier, late)] {
            let orders = self.autoscaler.ingest(&StatBatch { at, stats, poke: false }, self.now);
            self.follow(orders);
        }
    }

    fn scrape(&mut self) {
        let random = &mut self.random;
        for revision in self.revisions.iter().filter(|revision| !revision.pods.is_empty()) {
            let share = revision.load * random.f64();
            let stat = match random.u8(..8) {
                0 => Err(ScrapeError::PodsExhausted),
                1..3 => Ok(None),
                _ => Ok(Some(stat("service-scraper", [share, share / 7.0, share, 0.0]))),
            };
            if random.u8(..3) == 0 {
                let outcome = Outcome { stat, partial: false };
                self.autoscaler.scraped(&revision.id, self.now, Duration::from_millis(20), |_| outcome);
            }
        }
    }

    fn follow(&mut self, orders: Vec<Order>) {
        self.orders += orders.len();
        let now = self.now;
        for order in orders {
            let Some(revision) = self.revisions.iter_mut().find(|revision| revision.id == order.revision) else {
                continue;
            };
            if order.path != revision.path.0 {
                revision.path = (order.path, now);
            }
            let wanted = order.wanted as usize;
            let mut there = revision.pods.iter().filter(|pod| pod.phase != PodPhase::Terminating).count();
            while there < wanted.min(40) {
                there += 1;
                revision.made += 1;
                let address = SocketAddr::from(([10, 0, 0, 1], 8012));
                let name = format!("{}-pod-{}", order.revision.name, revision.made).into();
                revision.pods.push(Pod { name, address, phase: PodPhase::Starting, since: now, start_took: None });
            }
            for name in order.go_first.iter().take(there.saturating_sub(wanted)) {
                if let Some(pod) = revision.pods.iter_mut().find(|pod| pod.name == *name) {
                    (pod.phase, pod.since) = (PodPhase::Terminating, now);
                }
            }
        }
    }

    fn publish(&mut self) {
        for revision in &self.revisions {
            let view = RevisionView {
                spec: revision.spec.clone(),
                pods: revision.pods.clone(),
                path: revision.path.0,
                path_since: revision.path.1,
                trouble: None,
                without_room: 0,
                network: Network::default(),
            };
            // As a platform does: a new one only where something has changed.
            if !revision.exists {
                self.views.remove(&revision.id);
            } else if self.views.get(&revision.id).is_none_or(|old| **old != view) {
                self.views.insert(revision.id.clone(), view.into());
            }
        }
        let snapshot = Snapshot { version: 1, revisions: self.views.clone(), ..Snapshot::default() };
        self.autoscaler.follow(&snapshot, self.now);
    }

    fn restart(&mut self) {
        self.read();
        let saved = self.autoscaler.save(self.now);
        let old = std::mem::replace(
            &mut self.autoscaler,
            Autoscaler::new(self.config.clone()).among(self.owners.subscribe()),
        );
        old.end_recordings();
        self.read();
        self.recordings.iter_mut().for_each(|(recording, _)| *recording = None);
        self.now = self.now + Duration::from_millis(self.random.u64(100..8000));
        if self.random.bool() {
            self.autoscaler.restore(saved);
        }
        self.record(Ask { file_bytes: 256 << 10, ..Ask::default() });
        self.publish();
    }
}

fn stat(name: &str, [average, proxied, count, proxied_count]: [f64; 4]) -> Stat {
    Stat {
        pod_name: name.into(),
        average_concurrency: average,
        average_proxied_concurrency: proxied,
        request_count: count,
        proxied_request_count: proxied_count,
    }
}

/// What a replay came to.
#[derive(Debug, Default)]
struct Came {
    heads: usize,
    decisions: usize,
    differ: Vec<String>,
    lost: u64,
}

fn replay(lines: &[u8], changes: Changes) -> Came {
    let mut replay = Replay::new(changes);
    let mut came = Came::default();
    for (number, line) in lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).enumerate() {
        let told = replay
            .line(line)
            .unwrap_or_else(|fault| panic!("line {number}: {fault:?} {}", String::from_utf8_lossy(line)));
        match told {
            Told::Head { .. } => came.heads += 1,
            Told::Gap { lost, .. } => came.lost += lost,
            Told::Decision(step) => {
                came.decisions += 1;
                if let Some(differs) = &step.differs {
                    came.differ.push(format!("line {number} {} {}: {differs:?}", step.at, step.revision));
                }
            }
            Told::Nothing => {}
        }
    }
    came
}

fn long_run(compat: Compat, seeds: std::ops::Range<u64>, limits: &[&'static str]) {
    let (mut decisions, mut files) = (0, 0);
    let mut acted: BTreeSet<&str> = BTreeSet::new();
    for seed in seeds {
        let mut world = World::new(seed, compat);
        let late = world.random.u64(0..2500);
        world.record(Ask { file_bytes: 256 << 10, ..Ask::default() });
        for step in 0..4000 {
            if step == late {
                // In the middle of everything: of all, and of one alone.
                world.record(Ask::default());
                world.record(Ask { services: vec!["rev-3".into()], ..Ask::default() });
            }
            world.step(step);
        }
        world.read();
        assert!(world.orders > 200, "{seed}: {} orders", world.orders);
        for (number, (_, lines)) in world.recordings.iter().enumerate() {
            let came = replay(lines, Changes::default());
            assert!(came.heads > 0 && came.lost == 0);
            assert_eq!(came.differ.first(), None, "seed {seed}, recording {number}: {} differ", came.differ.len());
            (decisions, files) = (decisions + came.decisions, files + came.heads);
            let lines = String::from_utf8_lossy(lines);
            acted.extend(limits.iter().filter(|limit| {
                lines.contains(&format!("[[\"{limit}\"")) || lines.contains(&format!(",[\"{limit}\""))
            }));
        }
    }
    println!("{decisions} decisions of {files} files; limits: {acted:?}");
    assert!(decisions > 4_000, "{decisions}");
    let missing: Vec<_> = limits.iter().filter(|limit| !acted.contains(*limit)).collect();
    assert!(missing.is_empty(), "no run was long enough for {missing:?}");
}

#[test]
fn a_long_random_run_is_decided_alike_in_the_default_mode() {
    long_run(Compat::Better, 0..5, &[&COMMON[..], &["starting-pods", "after-panic", "override"]].concat());
}

#[test]
fn a_long_random_run_is_decided_alike_in_strict_mode() {
    long_run(Compat::Strict, 100..103, &COMMON);
}

/// Loads as they are in life: slow starters, noise at an edge, restarts.
#[test]
fn every_kind_of_load_is_decided_alike() {
    let mut steady = 0;
    for (number, shape) in loads::shapes().iter().enumerate() {
        let compat = if number % 5 == 4 { Compat::Strict } else { Compat::Better };
        let lines = loads::record(&shape.load, &shape.setting, compat);
        let came = replay(&lines, Changes::default());
        assert_eq!(came.differ.first(), None, "{}: {} differ", shape.load.name, came.differ.len());
        assert!(came.decisions >= shape.load.seconds.len() / 2 - 2, "{}: {}", shape.load.name, came.decisions);
        steady += String::from_utf8_lossy(&lines).matches("[\"steady\",").count();
    }
    assert!(steady > 10, "{steady}");
}

fn short_recording(seed: u64) -> Vec<u8> {
    let mut world = World::new(seed, Compat::Better);
    (0..200).for_each(|step| world.step(step));
    world.record(Ask::default());
    (200..700).for_each(|step| world.step(step));
    world.read();
    world.recordings.swap_remove(0).1
}

#[test]
fn other_settings_are_seen_to_differ_and_the_first_difference_is_named() {
    // One that falls to an eighth.
    let fall = &loads::shapes()[3];
    let lines = loads::record(&fall.load, &fall.setting, Compat::Better);
    let with = |set: &str, compat| {
        let mut changes = Changes::default();
        changes.compat = compat;
        if !set.is_empty() {
            changes.set(set).unwrap();
        }
        replay(&lines, changes)
    };
    assert!(with("", None).differ.is_empty());
    assert!(with("", Some(Compat::Better)).differ.is_empty());
    assert!(!with("", Some(Compat::Strict)).differ.is_empty());
    let target = with("target=0.01", None).differ;
    assert!(target[0].contains("what: \"target\"") && target[0].contains("now: \"0.01\""), "{}", target[0]);
    for set in ["stable-window=120s", "min-scale=9", "max-scale=1", "scale-down-delay=600s", "max-scale-down-rate=1.1"]
    {
        assert!(!with(set, None).differ.is_empty(), "{set}");
    }
}

#[test]
fn a_slow_reader_holds_up_nobody_and_gets_a_marked_gap() {
    let mut world = World::new(3, Compat::Better);
    (0..300).for_each(|step| world.step(step));
    let autoscaler = world.autoscaler.clone();
    let mut slow = autoscaler.record_from(Ask::default(), world.now).unwrap();
    // More than it may leave unread, and then some: a stat takes 100 bytes.
    for step in 300..400 {
        let ids = world.revisions.iter().map(|revision| revision.id.clone()).cycle();
        let stats = ids.zip(0..2500).map(|(id, n)| (id, stat("p", [f64::from(n) / 3.0, 0.0, 1.0, 0.0])));
        let batch = StatBatch { at: world.now, stats: stats.collect(), poke: false };
        world.autoscaler.ingest(&batch, world.now);
        world.step(step);
    }
    let mut lines = slow.read();
    assert!((UNREAD_MAX / 2..=UNREAD_MAX).contains(&lines.len()), "{}", lines.len());
    assert!(slow.read().is_empty());
    for step in 400..1200 {
        world.step(step);
        lines.extend(slow.read());
    }
    let came = replay(&lines, Changes::default());
    assert!(came.lost > 100, "{}", came.lost);
    assert!(came.decisions > 20, "{}", came.decisions);
    assert_eq!(came.differ.first(), None);
}

#[test]
fn recordings_are_few_and_end_with_their_reader_or_the_autoscaler() {
    let autoscaler = Autoscaler::new(Config::default());
    let mut all: Vec<_> = (0..RECORDINGS_MAX).map(|_| autoscaler.record(Ask::default()).unwrap()).collect();
    assert_eq!(autoscaler.record(Ask::default()).err(), Some(Refused::TooMany));
    all.pop();
    all.push(autoscaler.record(Ask::default()).unwrap());
    assert!(String::from_utf8(all[0].read()).unwrap().starts_with("{\"head\":{\"format\":1,"));
    autoscaler.end_recordings();
    assert_eq!(autoscaler.record(Ask::default()).err(), Some(Refused::Ending));
}

#[test]
fn a_damaged_recording_is_told_of_and_nothing_worse() {
    let lines = short_recording(11);
    // From its beginning: without the head and the states the rest says nothing.
    let lines = &lines[..lines[..120_000].iter().rposition(|byte| *byte == b'\n').unwrap() + 1];
    let digits: Vec<usize> = (0..lines.len()).filter(|at| lines[*at].is_ascii_digit()).collect();
    let mut random = Rng::with_seed(5);
    let (mut told, mut decisions) = (0, 0);
    for round in 0..400 {
        let mut damaged = lines.to_vec();
        match round % 4 {
            0 => damaged.truncate(random.usize(..lines.len())),
            1 => damaged[random.usize(..lines.len())] ^= 1 << random.u8(..8),
            // Other numbers: a digit that is another one, many times; and one
            // that is many.
            2 => {
                for _ in 0..40 {
                    damaged[digits[random.usize(..digits.len())]] = b'0' + random.u8(..10);
                }
            }
            _ => {
                let at = digits[random.usize(..digits.len())];
                let more = random.choice(["9999999999", "-1", "e300", "99999999999999999", "0.5"]).unwrap();
                let _ = damaged.splice(at..=at, more.bytes()).count();
            }
        }
        let mut replay = Replay::new(Changes::default());
        // On after a fault, which `explain` is not: all that can be reached.
        let mut faults = 0;
        for line in damaged.split(|byte| *byte == b'\n') {
            match replay.line(line) {
                Ok(Told::Decision(_)) => decisions += 1,
                Ok(_) => {}
                Err(fault) => {
                    assert!(!fault.what.is_empty());
                    faults += 1;
                }
            }
        }
        // What follows the last line is one without anything.
        told += u32::from(faults > 1 || (faults == 1 && damaged.last() != Some(&b'\n')));
    }
    println!("{told} of 400 told, {decisions} decisions all the same");
    assert!(told > 100 && decisions > 1000, "{told} {decisions}");
}

#[test]
fn what_is_wrong_with_a_line_is_told_with_its_field() {
    let lines = String::from_utf8(short_recording(13)).unwrap();
    let all: Vec<&str> = lines.lines().collect();
    let fault = |line: &str, from: &str, to: &str| {
        assert!(line.contains(from), "{from} in {line}");
        let mut replay = Replay::new(Changes::default());
        for before in all.iter().take_while(|before| **before != line) {
            replay.line(before.as_bytes()).unwrap();
        }
        replay.line(line.replace(from, to).as_bytes()).unwrap_err().what
    };
    let of = |mark: &str| {
        let is_it = |line: &&&str| line.starts_with(mark) || (!mark.starts_with('{') && line.contains(mark));
        *all.iter().find(is_it).unwrap()
    };
    assert!(fault(of("{\"head\""), "\"format\":1", "\"format\":2").contains("`format`: it is 2, and 1 is known"));
    assert!(fault(of("{\"head\""), "\"mode\":\"default\"", "\"mode\":\"odd\"").contains("`odd`"));
    assert!(fault(of("{\"revision\""), "\"target\":", "\"goal\":").contains("`goal`"));
    assert!(fault(of("{\"revision\""), "\"spec\":{", "\"spec\":{\"x\":1,").contains("`x`"));
    assert!(fault(of("\"state\""), "\"stuck\":0", "\"stuck\":-1").contains("-1"));
    assert!(fault(of("\"due\""), "\"now\":1", "\"now\":-1").contains("`now`"));
    assert!(fault(of("\"due\""), "\"n\":", "\"n\":77").contains("`n`: there is no revision 77"));
    assert!(fault(of("\"due\""), "\"got\":", "\"gets\":").contains("`gets`"));
    let mut replay = Replay::new(Changes::default());
    assert!(replay.line(all[1].as_bytes()).unwrap_err().what.contains("no `head`"));
    assert!(replay.line(b"").unwrap_err().column.is_some());
}
