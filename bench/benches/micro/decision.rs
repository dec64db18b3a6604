//! One revision's decision.

use criterion::Criterion;
use policy::collect::{Collection, Silence};
use policy::compat::Compat;
use policy::decider::Status;
use policy::judge::{Mind, Sight, judge};
use policy::moment::Moment;
use policy::overload::Overload;
use policy::revision::{Aggregation, Bounds, RevisionSpec, ScaleSpec, Timeouts, WindowSpec};
use policy::scale::Memory;
use policy::stat::Stat;
use policy::zero::ZeroState;
use std::hint::black_box;
use std::time::Duration;

const PODS: u32 = 4;

pub(crate) fn run(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("decision");
    for (name, compat) in [("default", Compat::Better), ("strict", Compat::Strict)] {
        group.bench_function(name, |bencher| {
            let mut revision = Revision::new(compat);
            bencher.iter(|| {
                revision.second();
                black_box(revision.decide())
            });
        });
    }
    group.bench_function("a stat alone", |bencher| {
        let mut revision = Revision::new(Compat::Better);
        bencher.iter(|| revision.second());
    });
    group.finish();
}

struct Revision {
    spec: RevisionSpec,
    stat: Stat,
    compat: Compat,
    now: Moment,
    collection: Collection,
    overload: Overload,
    slots: f64,
    memory: Memory,
    status: Status,
    zero: ZeroState,
}

impl Revision {
    /// With windows full of load.
    fn new(compat: Compat) -> Revision {
        let (spec, now) = (spec(), Moment::from_unix_millis(0));
        let mut revision = Revision {
            collection: Collection::new(&spec.windows, Silence::Unknown, compat),
            overload: Overload::new(spec.windows.stable, spec.windows.panic),
            slots: 0.0,
            memory: Memory::new(&spec.scale, PODS, now, compat),
            status: Status::initial(&spec.scale, compat),
            zero: ZeroState::new(now, compat),
            stat: Stat {
                pod_name: "pod".into(),
                average_concurrency: 200.0,
                average_proxied_concurrency: 20.0,
                request_count: 400.0,
                proxied_request_count: 40.0,
            },
            spec,
            compat,
            now,
        };
        (0..60).for_each(|_| revision.second());
        revision
    }

    fn second(&mut self) {
        self.now = self.now + Duration::from_secs(1);
        let _ = black_box(self.collection.record(self.now, black_box(&self.stat)));
    }

    fn decide(&mut self) -> policy::judge::Judged {
        let sight = Sight { ready: PODS, starting: 0, pods: true, floor: None, in_path_for: None };
        let Revision { collection, overload, slots, memory, status, zero, .. } = self;
        let mind = Mind { collection, overload, slots, memory, status, zero };
        judge(&self.spec, &sight, mind, self.compat, self.now)
    }
}

pub(crate) fn spec() -> RevisionSpec {
    let seconds = Duration::from_secs;
    RevisionSpec {
        service: "svc".into(),
        configuration: "svc".into(),
        container_concurrency: 100,
        timeouts: Timeouts { total: seconds(300), response_start: None, idle: None, upgrade: Some(seconds(300)) },
        scale: ScaleSpec::KNATIVE,
        windows: WindowSpec { stable: seconds(60), panic: seconds(6), aggregation: Aggregation::Linear },
        bounds: Bounds {
            min_scale: 0,
            max_scale: 10,
            scale_to_zero: true,
            grace: seconds(30),
            retention: seconds(0),
            progress_deadline: seconds(600),
        },
    }
}
