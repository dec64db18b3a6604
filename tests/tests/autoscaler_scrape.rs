//! Pods that are asked for their load, and pods that push it.

use autoscaler::collect::{self, Settings};
use autoscaler::{Autoscaler, Config, Links};
use plumbing::fds::Budget;
use plumbing::shutdown::Shutdown;
use plumbing::{clock, stats};
use policy::compat::Compat;
use policy::moment::Moment;
use policy::revision::{Aggregation, Bounds, RevisionId, RevisionSpec, ScaleSpec, Timeouts, WindowSpec};
use policy::stat::{Stat, StatBatch};
use policy::world::{Path, Pod, PodPhase, RevisionView, Snapshot};
use std::sync::Arc;
use std::time::Duration;
use tests::rig::PATIENCE;
use tests::scraped::pods::{Pods, well};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep, timeout};

const WINDOW: Duration = Duration::from_secs(6);

fn snapshot(pods: usize) -> Arc<Snapshot> {
    let pod = |number: usize| Pod {
        name: format!("well-{number}").into(),
        address: (well(number), 8012).into(),
        phase: PodPhase::Ready,
        since: Moment::default(),
        start_took: None,
    };
    let limit = Duration::from_secs(300);
    let spec = RevisionSpec {
        service: "rev".into(),
        configuration: "rev".into(),
        container_concurrency: 0,
        timeouts: Timeouts { total: limit, response_start: None, idle: None, upgrade: None },
        scale: ScaleSpec { stable_window: WINDOW, ..ScaleSpec::KNATIVE },
        windows: WindowSpec { stable: WINDOW, panic: WINDOW, aggregation: Aggregation::Linear },
        bounds: Bounds {
            min_scale: 1,
            max_scale: 0,
            scale_to_zero: true,
            grace: Duration::ZERO,
            retention: Duration::ZERO,
            progress_deadline: limit,
        },
    };
    let view = RevisionView {
        spec: Arc::new(spec),
        pods: (0..pods).map(pod).collect(),
        path: Path::Direct,
        path_since: Moment::default(),
        trouble: None,
        network: policy::world::Network::default(),
        without_room: 0,
    };
    let mut snapshot = Snapshot { version: 1, ..Snapshot::default() };
    snapshot.revisions.insert(id(), Arc::new(view));
    Arc::new(snapshot)
}

fn id() -> RevisionId {
    RevisionId::new("default", "rev")
}

fn push(number: usize, load: f64) -> StatBatch {
    let stat = Stat {
        pod_name: format!("well-{number}").into(),
        average_concurrency: load,
        average_proxied_concurrency: 0.0,
        request_count: 0.0,
        proxied_request_count: 0.0,
    };
    StatBatch { at: clock::now(), stats: vec![(id(), stat)], poke: false }
}

/// The average over the stable window, as decided on last.
fn stable(autoscaler: &Autoscaler) -> Option<f64> {
    let page = autoscaler.exposition();
    let line = page.lines().find(|line| line.starts_with("kn_revision_concurrency_stable{"))?;
    line.rsplit_once(' ')?.1.parse().ok()
}

/// Four pods, of which the first two push from the fifth second on until the
/// tenth; returns all averages that were decided on.
async fn mixed(compat: Compat) -> Vec<f64> {
    let pods = Pods::start();
    pods.carry(2.0);
    let (_world, world) = watch::channel(snapshot(4));
    let (orders, mut given) = mpsc::channel(16);
    tokio::spawn(async move { while given.recv().await.is_some() {} });
    let (sink, stats) = stats::link();
    let tick = Duration::from_secs(1);
    let after_reports = Duration::from_millis(500);
    let autoscaler = Autoscaler::new(Config { compat, tick, after_reports, ..Config::default() });
    let shutdown = Shutdown::new();
    let links = Links { world, orders, stats };
    tokio::spawn(autoscaler::run(autoscaler.clone(), links, shutdown.clone()));
    let settings = Settings { port: pods.port, ..Settings::new(compat) };
    tokio::spawn(collect::run(autoscaler.clone(), settings, Budget::unlimited(), shutdown.clone()));
    let known = async {
        while stable(&autoscaler).is_none() {
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(PATIENCE, known).await.expect("it is known");
    // Pushes come at any time of a second, on average.
    let mut ticks = clock::ticks(Duration::from_secs(1), Duration::from_millis(333));
    let (began, mut seen) = (Instant::now(), Vec::new());
    while began.elapsed() < Duration::from_secs(13) {
        ticks.tick().await;
        if (3..9).contains(&began.elapsed().as_secs()) {
            sink.send(push(0, 2.0));
            sink.send(push(1, 2.0));
        }
        sleep(Duration::from_millis(500)).await;
        seen.extend(stable(&autoscaler));
    }
    shutdown.stop();
    seen
}

#[tokio::test]
async fn who_pushes_is_not_counted_twice_nor_left_out() {
    let seen = mixed(Compat::Better).await;
    println!("{seen:?}");
    let most = seen.iter().copied().fold(0.0, f64::max);
    assert!(most <= 8.0, "more than the pods carry: {seen:?}");
    // Between the last push and when it is asked again a second is amiss, of
    // two pods: 4 of 8, in one of six seconds; in two on a machine that lags.
    assert!(seen.iter().all(|average| *average >= 8.0 - 2.0 * 4.0 / 6.0 - 0.01), "{seen:?}");
    assert_eq!(seen[2], 8.0, "{seen:?}");
}
