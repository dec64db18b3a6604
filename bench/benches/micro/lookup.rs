//! The revision that a request is for, in an activator that has taken in a
//! snapshot of many.

use activator::{Activator, Config, Links, Sockets};
use criterion::Criterion;
use http::{HeaderValue, Request, header};
use plumbing::fds::Budget;
use plumbing::head::Head;
use plumbing::shutdown::Shutdown;
use plumbing::stats;
use plumbing::trust::Trust;
use plumbing::worker::{Worker, Workers};
use policy::moment::Moment;
use policy::revision::RevisionId;
use policy::world::{Holding, Network, Path, RevisionView, Routes, Snapshot};
use std::hint::black_box;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::sync::watch;

pub(crate) fn run(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("lookup");
    for count in [10, 10_000] {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let shutdown = Shutdown::new();
        let activator = runtime.block_on(with(count, &shutdown));
        let heads: Vec<Head> = (0..count).map(|number| head(&host(number))).collect();
        // Far apart in memory, as requests of many clients are.
        let mut number = 0;
        group.bench_function(format!("of {count}"), |bencher| {
            bencher.iter(|| {
                number = (number + 7919) % heads.len();
                assert!(black_box(activator.revision_of(&heads[number])).is_some());
            });
        });
        shutdown.stop();
    }
    group.finish();
}

/// An activator that has taken in so many revisions.
async fn with(count: usize, shutdown: &Shutdown) -> Activator {
    let (holding, mut taken_in) = watch::channel(Arc::new(Holding::default()));
    let (sink, _) = stats::link();
    let activator = Activator::new(Config::new("bench", Trust::nobody()), sink, holding);
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let (world, seen) = watch::channel(Arc::new(snapshot(count)));
    let links = Links { world: seen, workers: Workers::only(Worker::here(shutdown, Budget::unlimited())) };
    tokio::spawn(activator::run(
        activator.clone(),
        Sockets { serving: vec![listener.into()] },
        links,
        shutdown.clone(),
    ));
    taken_in.wait_for(|held| held.version == 1).await.expect("it runs");
    drop(world);
    activator
}

fn host(number: usize) -> String {
    format!("service-{number:05}.default.example.com")
}

fn head(host: &str) -> Head {
    let value = HeaderValue::from_str(host).expect("a plain name");
    let request = Request::builder().header(header::HOST, value).body(()).expect("a request");
    Head::read(&request.into_parts().0)
}

fn snapshot(count: usize) -> Snapshot {
    let spec = Arc::new(super::decision::spec());
    let view = RevisionView {
        spec,
        pods: Vec::new(),
        path: Path::Activator,
        path_since: Moment::from_unix_millis(0),
        trouble: None,
        without_room: 0,
        network: Network::default(),
    };
    let view = Arc::new(view);
    let id = |number| RevisionId::new("default", format!("service-{number:05}-00001"));
    Snapshot {
        version: 1,
        revisions: (0..count).map(|number| (id(number), view.clone())).collect(),
        routes: Routes {
            hosts: (0..count).map(|number| (Arc::from(host(number)), id(number))).collect(),
            fallback: None,
        },
    }
}
