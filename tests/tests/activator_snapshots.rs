//! A burst while the platform announces pods piece by piece, half of them not
//! ready, some taken out and put in again (the figures, a fifth as long).

use policy::world::{Path, PodPhase};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tests::bench::bench;
use tests::rig::{OK, Running, app, read_head, read_until, send, sidecar, sidecar_config};
use tokio::io::AsyncWriteExt;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

const REQUESTS: usize = 300;
const LIMIT: u32 = 2;
const READY: usize = 10;
const MORE: usize = 150;
/// How long the app takes.
const WORK: Duration = Duration::from_millis(100);
/// The announcements take so long in all.
const OVER: Duration = Duration::from_secs(1);
/// How soon a pod that is ready works, while requests wait; and how late a
/// busy machine may be.
const WORKS_WITHIN: Duration = Duration::from_millis(200);
const SLACK: u32 = 10;

/// When each app began what, and how many are inside.
#[derive(Default)]
struct Seen {
    first: std::sync::Mutex<BTreeMap<usize, Instant>>,
    most: AtomicUsize,
    all: AtomicUsize,
}

async fn pod(n: usize, seen: &Arc<Seen>) -> Running {
    let (seen, inside) = (seen.clone(), Arc::new(AtomicUsize::new(0)));
    let app = app(move |mut stream| {
        let (seen, inside) = (seen.clone(), inside.clone());
        async move {
            while !read_head(&mut stream).await.is_empty() {
                seen.first.lock().unwrap().entry(n).or_insert_with(Instant::now);
                seen.all.fetch_add(1, Ordering::SeqCst);
                seen.most.fetch_max(inside.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                sleep(WORK).await;
                inside.fetch_sub(1, Ordering::SeqCst);
                if stream.write_all(OK).await.is_err() {
                    return;
                }
            }
        }
    })
    .await;
    sidecar(sidecar_config(app, LIMIT)).await
}

#[tokio::test]
async fn a_burst_is_served_by_all_pods_as_they_come_and_go() {
    let seen = Arc::new(Seen::default());
    let bench = bench(LIMIT, |_| {}).await;
    let mut pods: Vec<Running> = Vec::new();
    for n in 0..READY {
        pods.push(pod(n, &seen).await);
    }
    let names: Vec<String> = (0..READY + MORE).map(|n| format!("pod-{n:03}")).collect();
    // Pods that are not ready have an address at which nobody listens.
    let nobody: SocketAddr = {
        let free = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        free.local_addr().unwrap()
    };
    let first: Vec<_> = (0..READY).map(|n| (names[n].as_str(), pods[n].address)).collect();
    bench.ready(&first).await;

    let began = Instant::now();
    let mut clients = JoinSet::new();
    for _ in 0..REQUESTS {
        let address = bench.address;
        clients.spawn(async move {
            let request = "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 0\r\n\r\n";
            let answer = read_until(&mut send(address, request).await, "\r\n\r\nok").await;
            assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        });
    }

    let mut draws = 7u64;
    let mut draw = |below: usize| {
        draws = draws.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (draws >> 33) as usize % below
    };
    let mut ready_since: BTreeMap<usize, Instant> = BTreeMap::new();
    let mut announced = READY;
    let mut away: Option<usize> = None;
    while announced < READY + MORE {
        announced = (announced + 1 + draw(30)).min(READY + MORE);
        // One that works is taken out, and is back in the next snapshot.
        away = if away.is_none() { Some(draw(READY)) } else { None };
        // Of the new ones every tenth becomes ready; the others never do.
        for n in (READY..announced).filter(|n| n % 10 == 0) {
            if pods.len() <= READY + (n - READY) / 10 {
                pods.push(pod(n, &seen).await);
                ready_since.insert(n, Instant::now());
            }
        }
        let shown: Vec<_> = (0..announced)
            .filter(|n| away != Some(*n))
            .map(|n| match n {
                n if n < READY => (names[n].as_str(), pods[n].address, PodPhase::Ready),
                n if n % 10 == 0 => {
                    let at = READY + (n - READY) / 10;
                    (names[n].as_str(), pods[at].address, PodPhase::Ready)
                }
                n => (names[n].as_str(), nobody, PodPhase::Starting),
            })
            .collect();
        bench.publish(&shown, Path::Activator, None).await;
        sleep(OVER / 10).await;
    }
    clients.join_all().await;
    let took = began.elapsed();

    assert_eq!(seen.all.load(Ordering::SeqCst), REQUESTS, "each is served once");
    assert!(seen.most.load(Ordering::SeqCst) <= LIMIT as usize, "no app has more than it takes");
    // As the ten from the start alone would: 300 at 20 a time.
    let alone = WORK * (REQUESTS / (READY * LIMIT as usize)) as u32;
    assert!(took <= alone + WORK * SLACK, "{took:?}, {alone:?} by the first pods alone");
    let first = seen.first.lock().unwrap();
    let end = began + took.saturating_sub(WORK * 2);
    for (n, since) in ready_since.iter().filter(|ready| *ready.1 + WORKS_WITHIN * SLACK < end) {
        let began = first.get(n).unwrap_or_else(|| panic!("{} never worked", names[*n]));
        let late = began.saturating_duration_since(*since);
        assert!(late <= WORKS_WITHIN * SLACK, "{} worked after {late:?}", names[*n]);
    }
    assert!(first.len() > READY, "the new ones work too: {}", first.len());
    assert_eq!((bench.held(), bench.in_flight()), (0, 0));
}
