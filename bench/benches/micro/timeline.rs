//! Requests in progress over time.

use criterion::Criterion;
use policy::moment::Moment;
use policy::timeline::{Kind, Timeline};
use std::hint::black_box;
use std::time::Duration;

pub(crate) fn run(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("timeline");
    let (mut now, mut line) = (Moment::from_unix_millis(0), Timeline::new(Moment::from_unix_millis(0)));
    group.bench_function("enter and leave", |bencher| {
        bencher.iter(|| {
            now = now + Duration::from_micros(10);
            line.enter(black_box(now), Kind::Proxied);
            now = now + Duration::from_micros(10);
            line.leave(black_box(now), Kind::Proxied);
        });
    });
    group.bench_function("report", |bencher| {
        bencher.iter(|| {
            now = now + Duration::from_secs(1);
            black_box(line.report_measured(black_box(now)))
        });
    });
    group.finish();
}
