//! What the better decisions gain and cost, in simulated time: the shipped
//! autoscaler over loads, beside what the strict mode makes of them.

use autoscaler::schedule::Schedule;
use autoscaler::{Autoscaler, Config};
use policy::compat::Compat;
use policy::moment::Moment;
use policy::revision::{Aggregation, Bounds, Metric, RevisionId, RevisionSpec, ScaleSpec, Timeouts, WindowSpec};
use policy::stat::{Stat, StatBatch};
use policy::timeline::Timeline;
use policy::world::{Network, Order, Path, Pod, PodPhase, RevisionView, Snapshot};
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;
use tests::loads::{self, COST_MAX, Clients, Load, Pair, Second, Setting, run, shapes};

const SMALL: Setting = Setting {
    target: 7.0,
    total: 10,
    metric: Metric::Concurrency,
    window: Duration::from_secs(60),
    delay: Duration::ZERO,
    pods: 1,
    service: 1.0,
    clients: Clients::Open,
    drain: 0.0,
};

/// Load in pods of [`SMALL`], second by second.
fn load(seconds: usize, start: f64, pods: impl Fn(f64) -> f64) -> Load {
    let seconds = (0..seconds).map(|second| Second { offered: pods(second as f64) * SMALL.target, start });
    Load { name: "load".to_owned(), seconds: seconds.collect(), restarts: Vec::new() }
}

/// Numbers in -1..=1, always the same.
fn noise(second: f64) -> f64 {
    let mut bits = (second as u64).wrapping_add(0x9E37_79B9_7F4A_7C15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    ((bits ^ (bits >> 31)) >> 11) as f64 / (1u64 << 52) as f64 - 1.0
}

#[test]
fn better_decisions_cost_little_and_are_never_later() {
    for shape in shapes() {
        let pair = Pair::of(&shape.load, &shape.setting);
        assert_eq!(pair.faults(), Vec::<String>::new(), "{}", shape.load.name);
    }
}

/// Pods that are starting are capacity on its way.
#[test]
fn a_jump_to_ten_times_with_slow_starters_is_not_overshot() {
    let spike = load(200, 20.0, |t| if (100.0..106.0).contains(&t) { 10.0 } else { 1.0 });
    let step = load(260, 20.0, |t| if t < 100.0 { 1.0 } else { 10.0 });
    for (name, load) in [("spike", &spike), ("step", &step)] {
        let Pair { strict, better, .. } = Pair::of(load, &SMALL);
        println!("{name}: peak {} of 10 needed, strict {}", better.peak, strict.peak);
        assert!(better.peak <= 13 && strict.peak > 20, "{name}: {} {}", better.peak, strict.peak);
        assert!(better.to_needed <= strict.to_needed, "{name}");
        // From the first of the needed pods to the end: never below the need.
        let reached = better.wanted.iter().position(|&wanted| wanted >= 10).unwrap();
        for (at, second) in load.seconds.iter().enumerate().skip(reached) {
            let need = SMALL.need(second.offered);
            assert!(better.wanted[at] >= need, "{name}: {} of {need} wanted in second {at}", better.wanted[at]);
        }
    }
}

/// Panic ends when the load has just risen again, by less than makes a panic.
#[test]
fn the_end_of_panic_does_not_throw_away_what_the_load_needs() {
    let rises = load(260, 1.0, |t| {
        if t < 60.0 {
            2.0
        } else if t < 115.0 {
            10.0
        } else {
            19.0
        }
    });
    let closed = Setting { clients: Clients::Closed, pods: 2, ..SMALL };
    let Pair { strict, better, .. } = Pair::of(&rises, &closed);
    let lowest = |wanted: &[u32]| *wanted[125..].iter().min().unwrap();
    println!("lowest after panic: {}, strict {}, of 19 needed", lowest(&better.wanted), lowest(&strict.wanted));
    assert!(lowest(&better.wanted) >= 19 && lowest(&strict.wanted) < 19);
}

/// A steady rate a little above the target, with noise, for half an hour.
#[test]
fn noise_at_an_edge_changes_nothing() {
    for (pods, margin) in [(1.0, 1.02), (2.0, 1.02), (5.0, 1.01), (10.0, 1.005), (20.0, 1.005)] {
        let steady = load(1800, 5.0, |t| pods * margin * (1.0 + 0.1 * noise(t)));
        for metric in [Metric::Concurrency, Metric::Rps] {
            let setting = Setting { pods: pods as u32 + 1, metric, ..SMALL };
            let Pair { strict, better, .. } = Pair::of(&steady, &setting);
            println!("{pods} x {margin} {metric:?}: {} changes, strict {}", better.changes, strict.changes);
            assert!(better.changes <= 2 && better.changes <= strict.changes, "{pods} {margin}: {}", better.changes);
            assert!(better.pod_seconds <= strict.pod_seconds * COST_MAX);
        }
    }
}

#[test]
fn a_load_that_halves_is_followed_within_window_and_delay() {
    for delay in [0, 30] {
        let delay = Duration::from_secs(delay);
        let halves = load(400, 2.0, |t| if t < 200.0 { 7.8 } else { 3.9 });
        let setting = Setting { delay, pods: 8, ..SMALL };
        let better = run(&halves, &setting, Compat::Better);
        let within = 200 + 60 + delay.as_secs() as usize + 6;
        assert_eq!(better.wanted[within], 4, "{delay:?}: {:?}", &better.wanted[195..]);
        assert_eq!(better.wanted[200 + delay.as_secs() as usize - 1], 8);
    }
}

#[test]
fn a_restart_neither_panics_nor_forgets() {
    let restarted = |load: &Load| Load { restarts: vec![150], ..load.clone() };
    // Steady: nothing changes.
    let steady = load(300, 5.0, |_| 5.5);
    let better = run(&restarted(&steady), &Setting { pods: 6, ..SMALL }, Compat::Better);
    assert_eq!((better.changes, better.peak), (0, 6));
    // Rising: no scale-down, and as soon as without.
    let rising = load(300, 5.0, |t| 3.0 + t / 30.0);
    let setting = Setting { pods: 4, ..SMALL };
    let (with, without) = (run(&restarted(&rising), &setting, Compat::Better), run(&rising, &setting, Compat::Better));
    assert!(with.wanted[140..].windows(2).all(|pair| pair[0] <= pair[1]), "{:?}", &with.wanted[140..]);
    assert!(with.to_needed <= without.to_needed + 2.0, "{} {}", with.to_needed, without.to_needed);
    // Four times as much, three seconds after it.
    let jumps = load(300, 5.0, |t| if t < 156.0 { 2.0 } else { 8.0 });
    let setting = Setting { pods: 2, ..SMALL };
    let (with, without) = (run(&restarted(&jumps), &setting, Compat::Better), run(&jumps, &setting, Compat::Better));
    assert!(with.to_needed <= without.to_needed, "{} {}", with.to_needed, without.to_needed);
}

/// At zero, with a metric that counts arrivals, after three idle windows.
#[test]
fn the_first_request_wakes_at_once_whatever_the_metric() {
    for metric in [Metric::Rps, Metric::Concurrency] {
        let gaps = load(900, 2.0, |t| if t % 300.0 < 60.0 { 0.5 } else { 0.0 });
        let setting = Setting { pods: 0, metric, ..SMALL };
        let better = run(&gaps, &setting, Compat::Better);
        for begin in [0, 300, 600] {
            assert!(better.wanted[begin] > 0 && (begin == 0 || better.wanted[begin - 1] == 0), "{metric:?} {begin}");
        }
    }
}

/// One revision, its autoscaler, and its pods, by hand.
struct Bench {
    autoscaler: Autoscaler,
    id: RevisionId,
    spec: RevisionSpec,
    pods: Vec<Pod>,
    path: Path,
    version: u64,
}

impl Bench {
    fn new(config: Config) -> Bench {
        let spec = RevisionSpec {
            service: "s".into(),
            configuration: "s".into(),
            container_concurrency: 10,
            timeouts: Timeouts { total: Duration::from_secs(300), response_start: None, idle: None, upgrade: None },
            scale: ScaleSpec { target: 7.0, total: 10.0, initial_scale: 0, ..ScaleSpec::KNATIVE },
            windows: WindowSpec {
                stable: Duration::from_secs(60),
                panic: Duration::from_secs(6),
                aggregation: Aggregation::Linear,
            },
            bounds: Bounds {
                min_scale: 0,
                max_scale: 0,
                scale_to_zero: true,
                grace: Duration::ZERO,
                retention: Duration::ZERO,
                progress_deadline: Duration::from_secs(600),
            },
        };
        Bench {
            autoscaler: Autoscaler::new(config),
            id: RevisionId::new("default", "s"),
            spec,
            pods: Vec::new(),
            path: Path::Activator,
            version: 0,
        }
    }

    fn better() -> Bench {
        Bench::new(Config::default())
    }

    fn pods(&mut self, phases: &[PodPhase]) {
        let pod = |(at, &phase): (usize, &PodPhase)| Pod {
            name: format!("p{at}").into(),
            address: SocketAddr::from((Ipv4Addr::LOCALHOST, 1)),
            phase,
            since: second(0),
            start_took: None,
        };
        self.pods = phases.iter().enumerate().map(pod).collect();
    }

    fn publish(&mut self, now: Moment) -> Vec<Order> {
        self.version += 1;
        let view = RevisionView {
            spec: Arc::new(self.spec.clone()),
            pods: self.pods.clone(),
            path: self.path,
            path_since: second(0),
            trouble: None,
            without_room: 0,
            network: Network::default(),
        };
        let revisions = BTreeMap::from([(self.id.clone(), Arc::new(view))]);
        self.autoscaler.follow(&Snapshot { version: self.version, revisions, ..Snapshot::default() }, now);
        loads::due(&self.autoscaler, now)
    }

    /// A second's reports, by name, and a decision after them.
    fn second(&mut self, at: i64, stats: &[(&str, f64)]) -> Option<Order> {
        let stats = stats.iter().map(|&(name, inside)| (self.id.clone(), stat(name, inside))).collect();
        self.autoscaler.ingest(&StatBatch { at: second(at), stats, poke: false }, second(at));
        self.autoscaler.tick();
        loads::due(&self.autoscaler, second(at) + Duration::from_millis(100)).pop()
    }
}

fn second(seconds: i64) -> Moment {
    Moment::from_unix_millis((1_700_000_000 + seconds) * 1000)
}

fn stat(name: &str, inside: f64) -> Stat {
    Stat {
        pod_name: name.into(),
        average_concurrency: inside,
        average_proxied_concurrency: 0.0,
        request_count: inside,
        proxied_request_count: 0.0,
    }
}

#[test]
fn a_restart_at_zero_loses_no_wake() {
    // The request is held while the old one is killed before it could decide.
    let mut old = Bench::better();
    old.publish(second(0));
    let saved = old.autoscaler.save(second(1));
    let mut new = Bench::better();
    new.autoscaler.restore(saved);
    new.publish(second(5));
    let poke = StatBatch { at: second(6), stats: vec![(new.id.clone(), stat("activator", 1.0))], poke: false };
    let orders = new.autoscaler.ingest(&poke, second(6));
    assert_eq!(orders.first().map(|order| order.wanted), Some(1));
    // Or it has ordered a pod already, which starts: it is not taken back.
    let saved = new.autoscaler.save(second(7));
    let mut third = Bench::better();
    third.autoscaler.restore(saved);
    third.pods(&[PodPhase::Starting]);
    let orders = third.publish(second(11));
    assert_eq!(orders.first().map(|order| order.wanted), Some(1));
    assert_eq!(third.second(12, &[("activator", 1.0)]).map(|order| order.wanted), Some(1));
}

#[test]
fn reports_that_do_not_come_are_not_zero_and_not_for_ever() {
    for (compat, after_20) in [(Compat::Better, 2), (Compat::Strict, 1)] {
        let mut bench = Bench::new(Config { compat, ..Config::default() });
        bench.pods(&[PodPhase::Ready; 2]);
        bench.publish(second(0));
        let mut wanted = BTreeMap::new();
        for at in 1..300 {
            let all = [("p0", 0.0), ("p1", 0.0), ("activator", 13.0)];
            let pods = bench.pods.len().min(2);
            let stats = if at <= 100 { &all[..] } else { &all[..pods] };
            if let Some(order) = bench.second(at, stats) {
                bench.pods(&vec![PodPhase::Ready; order.wanted as usize]);
                bench.path = order.path;
                bench.publish(second(at));
                wanted.insert(at, order.wanted);
            }
        }
        // The one that has all the requests is silent from second 101 on.
        let lowest = wanted.range(100..=130).map(|(_, &wanted)| wanted).min();
        assert!(lowest >= Some(after_20), "{compat:?}: {wanted:?}");
        assert_eq!(wanted.range(250..).map(|(_, &wanted)| wanted).max(), Some(0), "{compat:?}");
    }
}

#[test]
fn pods_without_work_go_first() {
    let mut bench = Bench::better();
    bench.pods(&[PodPhase::Ready; 4]);
    bench.publish(second(0));
    let stats = [("p0", 0.0), ("p1", 5.0), ("p2", 0.0), ("p3", 1.5)];
    let last = (1..=80).filter_map(|at| bench.second(at, &stats)).find(|order| order.wanted < 4).unwrap();
    let names: Vec<&str> = last.go_first.iter().map(|name| &**name).collect();
    assert_eq!((last.wanted, names), (2, vec!["p2", "p0"]));
    let mut strict = Bench::new(Config { compat: Compat::Strict, ..Config::default() });
    strict.pods(&[PodPhase::Ready; 4]);
    strict.publish(second(0));
    let last = (1..=80).filter_map(|at| strict.second(at, &stats)).find(|order| order.wanted < 4).unwrap();
    assert!(last.go_first.is_empty());
}

/// Ten pods start, and nobody wants them any more.
#[test]
fn the_way_to_zero_keeps_to_the_rate() {
    for (compat, steps) in [(Compat::Better, vec![5, 2, 1, 0]), (Compat::Strict, vec![0])] {
        let mut bench = Bench::new(Config { compat, ..Config::default() });
        bench.pods(&[PodPhase::Ready]);
        bench.publish(second(0));
        let mut wanted = Vec::new();
        for at in 1..400 {
            let load = if at < 10 { 65.0 } else { 0.0 };
            let Some(order) = bench.second(at, &[("p0", load)]) else { continue };
            if order.wanted as usize != bench.pods.len() {
                // All but one are starting for ever.
                let phases: Vec<PodPhase> =
                    (0..order.wanted).map(|pod| if pod == 0 { PodPhase::Ready } else { PodPhase::Starting }).collect();
                bench.pods(&phases);
                bench.path = order.path;
                bench.publish(second(at));
                wanted.push(order.wanted);
            }
        }
        let peak = wanted.iter().position(|&wanted| wanted == 10).unwrap();
        assert!(wanted[peak + 1..].ends_with(&steps), "{compat:?}: {wanted:?}");
        println!("{compat:?}: {:?}", &wanted[peak..]);
    }
}

#[test]
fn a_schedule_keeps_pods_warm_and_wakes_them() {
    let id = RevisionId::new("default", "s");
    // 2023-11-14 22:13:20 UTC is second 0.
    let schedule = Schedule::new(id, "15 22 * * *", "20 22 * * *", "UTC", 3).unwrap();
    let mut bench = Bench::new(Config { schedules: [schedule].into(), ..Config::default() });
    bench.publish(second(0));
    let mut wanted = BTreeMap::new();
    for at in (2..900).step_by(2) {
        let names: Vec<String> = bench.pods.iter().map(|pod| pod.name.to_string()).collect();
        let stats: Vec<(&str, f64)> = names.iter().map(|name| (&**name, 0.0)).collect();
        if let Some(order) = bench.second(at, &stats) {
            bench.pods(&vec![PodPhase::Ready; order.wanted as usize]);
            bench.path = order.path;
            bench.publish(second(at));
            wanted.insert(at, order.wanted);
        }
    }
    let most = |from, to| wanted.range(from..to).map(|(_, &wanted)| wanted).max().unwrap_or(0);
    let least = |from, to| wanted.range(from..to).map(|(_, &wanted)| wanted).min().unwrap_or(0);
    assert_eq!((most(0, 100), least(102, 400), most(800, 900)), (0, 3, 0), "{wanted:?}");
}

/// A busy lease is one request in progress in the sidecar's report.
#[test]
fn a_busy_lease_keeps_the_pod() {
    for (busy, expected) in [(true, 1), (false, 0)] {
        let mut bench = Bench::better();
        bench.pods(&[PodPhase::Ready]);
        bench.publish(second(0));
        let mut line = Timeline::new(second(0));
        if busy {
            line.busy(second(0), Some(second(1000)));
        }
        let mut wanted = None;
        for at in 1..200 {
            let inside = line.report(second(at)).average_concurrency;
            let order = bench.second(at, &[("p0", inside + if at < 20 { 1.0 } else { 0.0 })]);
            if let Some(order) = order {
                bench.path = order.path;
                bench.publish(second(at));
                wanted = Some(order.wanted);
            }
        }
        assert_eq!(wanted, Some(expected), "busy: {busy}");
    }
}

#[test]
fn the_campaign_takes_files_and_tells_of_both_modes() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("steps.csv");
    let rows: Vec<String> = (0..120).map(|at| if at < 60 { "70,2".to_owned() } else { "350,20".to_owned() }).collect();
    std::fs::write(&file, format!("concurrency,start\n{}\n", rows.join("\n"))).unwrap();
    let campaign = |arguments: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_campaign")).arg("loads").args(arguments).output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let (code, out) = campaign(&[file.to_str().unwrap()]);
    assert_eq!(code, Some(0), "{out}");
    assert!(out.starts_with("== steps.csv, 120 s\n") && out.ends_with("\n1 passed, 0 failed\n"), "{out}");
    for word in ["pod-seconds", "below need", "to needed", "peak", "changes", "  strict", "  default"] {
        assert!(out.contains(word), "{word}: {out}");
    }
    assert_eq!(campaign(&[file.to_str().unwrap()]).1, out, "the same again");
    std::fs::write(&file, "1\nx\n").unwrap();
    assert_eq!(campaign(&[file.to_str().unwrap()]).0, Some(1));
    assert_eq!(campaign(&["--clients", "odd"]).0, Some(64));
}
