//! Answers of an autoscaler that was fed and has decided, against what it does
//! when it is fed with what they say.

use crate::why::{Refused, Why};
use crate::{Autoscaler, Config};
use policy::collect::Silence;
use policy::moment::Moment;
use policy::revision::{Aggregation, Bounds, Metric, RevisionId, RevisionSpec, ScaleSpec, Timeouts, WindowSpec};
use policy::stat::{Stat, StatBatch};
use policy::world::{Network, Path, Pod, PodPhase, RevisionView, Snapshot};
use std::sync::Arc;
use std::time::Duration;

const BEGAN: i64 = 1_000;

fn second(seconds: i64) -> Moment {
    Moment::from_unix_millis(seconds * 1000)
}

fn id() -> RevisionId {
    RevisionId::new("default", "shop-00001")
}

fn spec(limit: u32, metric: Metric) -> RevisionSpec {
    let stable = Duration::from_secs(60);
    RevisionSpec {
        service: "shop".into(),
        configuration: "shop".into(),
        container_concurrency: limit,
        timeouts: Timeouts { total: Duration::from_secs(300), response_start: None, idle: None, upgrade: None },
        scale: ScaleSpec { metric, target: 7.0, total: 10.0, initial_scale: 0, ..ScaleSpec::KNATIVE },
        windows: WindowSpec { stable, panic: Duration::from_secs(6), aggregation: Aggregation::Linear },
        bounds: Bounds {
            min_scale: 0,
            max_scale: 5,
            scale_to_zero: true,
            grace: Duration::ZERO,
            retention: Duration::ZERO,
            progress_deadline: Duration::from_secs(60),
        },
    }
}

/// An autoscaler, and a platform that does at once what it is told.
struct Rig {
    autoscaler: Autoscaler,
    spec: Arc<RevisionSpec>,
    second: i64,
    pods: u32,
    /// The second of each new number of pods, and the number.
    orders: Vec<(i64, u32)>,
}

impl Rig {
    fn new(spec: &RevisionSpec) -> Rig {
        let config = Config { silence: Silence::Idle, ..Config::default() };
        let mut rig = Rig {
            autoscaler: Autoscaler::new(config),
            spec: Arc::new(spec.clone()),
            second: BEGAN,
            pods: 0,
            orders: Vec::new(),
        };
        rig.follow();
        rig
    }

    fn follow(&mut self) {
        let pod = |number: u32| Pod {
            name: format!("shop-00001-{number}").into(),
            address: ([127, 0, 0, 1], 1).into(),
            phase: PodPhase::Ready,
            since: second(BEGAN),
            start_took: None,
        };
        let view = RevisionView {
            spec: self.spec.clone(),
            pods: (0..self.pods).map(pod).collect(),
            path: Path::Activator,
            path_since: second(BEGAN),
            trouble: None,
            without_room: 0,
            network: Network::default(),
        };
        let snapshot = Snapshot { revisions: [(id(), Arc::new(view))].into(), ..Snapshot::default() };
        self.autoscaler.follow(&snapshot, second(self.second));
    }

    /// A second's report as it is over, and the decision of every other one.
    fn feed(&mut self, load: f64, arrived: f64) {
        self.second += 1;
        let at = second(self.second);
        let stat = Stat {
            pod_name: "activator".into(),
            average_concurrency: load,
            average_proxied_concurrency: 0.0,
            request_count: arrived,
            proxied_request_count: 0.0,
        };
        let mut orders = self.autoscaler.ingest(&StatBatch { at, stats: vec![(id(), stat)], poke: false }, at);
        if self.second % 2 == 0 {
            self.autoscaler.tick();
            self.autoscaler.decide(100, at + Duration::from_millis(100), |order| orders.push(order));
        }
        for order in orders {
            if order.wanted != self.pods {
                self.pods = order.wanted;
                self.orders.push((self.second, order.wanted));
                self.follow();
            }
        }
    }

    fn fed(spec: &RevisionSpec, loads: &[f64]) -> Rig {
        let mut rig = Rig::new(spec);
        loads.iter().for_each(|&load| rig.feed(load, load));
        rig
    }

    fn why(&self) -> Why {
        let now = second(self.second) + Duration::from_millis(500);
        self.autoscaler.why("shop", None, now).unwrap().remove(0)
    }

    /// After how many seconds of a load there is another number, and which.
    fn first_change(mut self, load: f64, within: u32) -> Option<(u32, u32)> {
        let before = self.pods;
        (1..=within).find_map(|fed| {
            self.feed(load, load);
            (self.pods != before).then_some((fed, self.pods))
        })
    }
}

#[test]
fn what_an_answer_says_would_change_it_does_and_one_per_cent_off_does_not() {
    let shapes: [(&str, Vec<f64>); 6] = [
        ("steady", vec![9.0; 130]),
        ("a jump", [vec![3.0; 100], vec![30.0; 5]].concat()),
        ("a fall", [vec![20.0; 130], vec![4.0; 20]].concat()),
        ("after panic", [vec![3.0; 100], vec![30.0; 10], vec![6.0; 61]].concat()),
        ("the first seconds", vec![2.0; 5]),
        ("the top", vec![90.0; 90]),
    ];
    let mut judged = 0;
    for (name, loads) in &shapes {
        for (limit, metric) in [(0, Metric::Concurrency), (10, Metric::Concurrency), (0, Metric::Rps)] {
            let spec = spec(limit, metric);
            let rig = || Rig::fed(&spec, loads);
            let (why, pods) = (rig().why(), rig().pods);
            let changes = why.changes.as_ref().unwrap();
            assert_eq!(why.decision.as_ref().unwrap().wanted, Some(pods));
            let say = |of: &super::Change| format!("{name} {limit} {metric:?}, {pods} pods: {of:?} of {changes:#?}");
            for change in &changes.list {
                let said = Some((change.seconds, change.pods));
                let ask = |load| rig().first_change(load, change.seconds);
                let way = |of: Option<(u32, u32)>| of.map(|of| of.1.cmp(&pods));
                match (change.when.as_str(), change.does, change.does_not) {
                    ("above" | "below", Some(does), Some(does_not)) => {
                        assert_eq!(ask(does), said, "{}", say(change));
                        let off = if change.when == "above" { 0.99 } else { 1.01 };
                        for load in [does_not, does * off] {
                            assert_ne!(way(ask(load)), way(said), "{load} {}", say(change));
                        }
                    }
                    ("nothing", None, None) if change.pods > 0 => assert_eq!(ask(0.0), said, "{}", say(change)),
                    ("nothing", None, None) => {
                        let mut ahead = rig();
                        let fed = (1..).find(|_| {
                            ahead.feed(0.0, 0.0);
                            ahead.pods == 0
                        });
                        assert_eq!(fed, Some(change.seconds), "{}", say(change));
                    }
                    ("any", None, None) => assert_eq!(way(ask(0.0)), way(said), "{}", say(change)),
                    _ => panic!("{}", say(change)),
                }
                judged += 1;
            }
            let then = changes.then.as_ref().map(|then| (then.seconds, then.pods));
            let within = then.map_or(120, |then| then.0);
            assert_eq!(rig().first_change(changes.as_now, within), then, "{name} {limit} {metric:?} {changes:#?}");
        }
    }
    assert!(judged > 50, "{judged}");
}

#[test]
fn at_the_top_and_at_zero_it_says_what_holds() {
    let spec = spec(10, Metric::Concurrency);
    let top = Rig::fed(&spec, &[90.0; 90]).why();
    assert_eq!(top.changes.unwrap().more_held.as_deref(), Some("max-scale"));
    let acted = top.decision.unwrap().limits;
    let setting = acted.last().unwrap().setting.clone().unwrap();
    assert_eq!((acted.last().unwrap().to, setting.name.as_str(), setting.value.as_str()), (5, "max-scale", "5"));
    let places =
        ["annotation autoscaling.knative.dev/max-scale", "config-autoscaler max-scale", "--max-scale", "scale.max"];
    assert_eq!(setting.places, places);

    let mut zero = Rig::fed(&spec, &[2.0; 70]);
    (0..70).for_each(|_| zero.feed(0.0, 0.0));
    assert_eq!(zero.pods, 0);
    let changes = zero.why().changes.unwrap();
    assert_eq!(changes.list.len(), 1);
    assert_eq!(changes.list[0].words, "the first request, at once: 1 pod");

    let mut warm = spec.clone();
    warm.bounds.min_scale = 2;
    let warm = Rig::fed(&warm, &[0.0; 70]).why().changes.unwrap();
    assert_eq!(warm.fewer_held.as_deref(), Some("min-scale"));
}

#[test]
fn inputs_are_the_windows_second_by_second() {
    let loads: Vec<f64> = (0..20).map(f64::from).collect();
    let why = Rig::fed(&spec(0, Metric::Concurrency), &loads).why();
    let inputs = why.inputs.unwrap();
    assert_eq!((inputs.stable.samples.len(), inputs.panic.samples.len()), (60, 6));
    assert_eq!(inputs.stable.samples.iter().flatten().copied().collect::<Vec<f64>>(), loads);
    assert_eq!(inputs.panic.samples[5], Some(19.0));
    assert_eq!((inputs.stable.average, inputs.panic.average), (9.5, 16.5));
}

#[test]
fn of_a_time_it_tells_what_stood_then() {
    let rig = Rig::fed(&spec(0, Metric::Concurrency), &[vec![3.0; 100], vec![30.0; 20]].concat());
    let now = second(rig.second) + Duration::from_millis(500);
    let ask = |at: i64| rig.autoscaler.why("default/shop-00001", Some(second(at)), now);
    let (risen, to) = *rig.orders.iter().find(|order| order.1 > 1).unwrap();
    let before = ask(risen - 1).unwrap().remove(0);
    assert_eq!(before.decision.as_ref().unwrap().wanted, Some(1));
    assert!(before.after.is_some() && before.inputs.is_none() && before.changes.is_none() && !before.undecided);
    let then = ask(risen + 1).unwrap().remove(0);
    assert_eq!(then.decision.unwrap().wanted, Some(to));
    assert_eq!(then.before.unwrap().wanted, Some(1));

    match ask(BEGAN - 1) {
        Err(Refused::TooEarly { revision, since: Some(since) }) => {
            assert_eq!((revision.as_str(), since.unix_seconds() / 10), ("default/shop-00001", BEGAN / 10));
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(ask(rig.second + 5), Err(Refused::Future));
    assert_eq!(rig.autoscaler.why("shpo", None, now), Err(Refused::Unknown(vec!["shop".to_owned()])));
    assert_eq!(
        rig.autoscaler.why("other/shop-00001", None, now),
        Err(Refused::Unknown(vec!["shop".to_owned(), "shop-00001".to_owned()]))
    );

    // Nothing was decided since: the decision stands, and that is said.
    let much_later = now + Duration::from_secs(100);
    let why = rig.autoscaler.why("shop", None, much_later).unwrap().remove(0);
    assert!(why.undecided && why.decision.is_some());
}

#[test]
fn the_history_goes_on_in_the_next_autoscaler() {
    let rig = Rig::fed(&spec(0, Metric::Concurrency), &[vec![3.0; 100], vec![30.0; 20]].concat());
    let mut written = Vec::new();
    rig.autoscaler.write_history(&mut written).unwrap();
    let mut next = Rig::new(&spec(0, Metric::Concurrency));
    let now = second(rig.second + 60);
    // Before the revision is seen again, and after it.
    let other = Autoscaler::new(Config::default());
    assert_eq!(other.read_history(written.as_slice(), now).unwrap(), 1);
    let mut again = Vec::new();
    other.write_history(&mut again).unwrap();
    assert_eq!(again, written);
    next.autoscaler = other;
    (next.second, next.pods) = (rig.second + 60, 5);
    next.follow();
    (0..6).for_each(|_| next.feed(30.0, 30.0));
    let now = second(next.second) + Duration::from_millis(500);
    let old = next.autoscaler.why("shop", Some(second(BEGAN + 50)), now).unwrap().remove(0);
    assert_eq!(old.decision.unwrap().wanted, Some(1));
    let away = next.autoscaler.why("shop", Some(second(rig.second + 30)), now).unwrap().remove(0);
    assert!(away.undecided && away.after.is_some());
    let (history, _) = next.autoscaler.bytes();
    assert!(history > 0 && history < 4096, "{history}");
}
