//! The first request after some windows without any, where load is requests
//! per second, and the activator is another process each time: it is signalled
//! and decided on at once.

use platform::file::read_orders;
use plumbing::grpc::{Call, unary};
use proto::push::PUSH;
use proto::stats::{WireStatMessage, WireStatMessages};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tests::filehost::daemon::Daemon;
use tests::filehost::world::{self, Line};
use tests::floor::binaries;
use tests::rig::{OK, PATIENCE, app, read_head, send};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, timeout};

const VARIABLES: [(&str, &str); 5] = [
    ("ZEROSCALE_STATS_LISTEN", "127.0.0.1:0"),
    ("ZEROSCALE_ADMIN_LISTEN", "127.0.0.1:0"),
    ("ZEROSCALE_WEBSOCKET_LISTEN", "127.0.0.1:0"),
    ("PROFILING_PORT", "0"),
    ("ZEROSCALE_SCRAPE_PORT", "0"),
];
const REVISION: &str = "  scale: {metric: rps, window: 6s, grace: 0s, activation: 1}\n";
const WINDOW: Duration = Duration::from_secs(6);
/// Its pod: at zero it is gone, and nobody says anything.
const POD: &str = "rev-1";
/// What it takes where nothing else runs, and ten times as much where
/// something does: a tick is 2 s away, and no wake may wait for one.
const WAKE_MAX: Duration = Duration::from_millis(100 * 10);
const ROUNDS: usize = 3;

fn wanted(orders: &Path) -> Option<u32> {
    read_orders(orders).ok()?.first().map(|order| order.wanted)
}

/// Has a pod there while one is wanted. It says that nothing came but through
/// an activator.
async fn host(snapshots: PathBuf, orders: PathBuf, stats: SocketAddr) {
    let address = app(|mut stream| async move {
        while !read_head(&mut stream).await.is_empty() && stream.write_all(OK).await.is_ok() {}
    })
    .await;
    let pod = Line { name: POD.to_owned(), address, phase: "ready" };
    let stat = Some(proto::stats::Stat::of_pod(POD));
    let message = WireStatMessage { namespace: b"default".to_vec(), name: b"rev".to_vec(), stat };
    let message = proto::encode(&WireStatMessages { messages: vec![message] });
    loop {
        sleep(Duration::from_millis(500)).await;
        let is_wanted = wanted(&orders).is_some_and(|wanted| wanted > 0);
        let pods = if is_wanted { std::slice::from_ref(&pod) } else { &[] };
        world::put(&snapshots, &world::text(REVISION, pods));
        if !is_wanted {
            continue;
        }
        let call = Call {
            authority: "autoscaler",
            path: PUSH,
            user_agent: "tests",
            fields: &[],
            message: &message,
            timeout: PATIENCE,
            answer_max: 1024,
        };
        let stream = TcpStream::connect(stats).await.expect("it listens");
        unary(stream, &call).await.expect("it takes them");
    }
}

async fn activator(snapshots: &Path, stats: SocketAddr) -> (Daemon, SocketAddr) {
    let (snapshots, stats) = (snapshots.to_str().unwrap(), stats.to_string());
    let arguments = ["--snapshots", snapshots, "--stats", &stats];
    let mut activator = Daemon::start(&binaries::fileactivator().unwrap(), &arguments, &[]);
    let door = activator.address("listening for requests");
    activator.says("the autoscaler takes stats").await;
    (activator, door)
}

#[tokio::test]
async fn the_first_request_after_idle_windows_wakes_at_once_each_time() {
    let folder = tempfile::tempdir().unwrap();
    let (snapshots, orders) = (folder.path().join("world.yaml"), folder.path().join("orders.yaml"));
    world::put(&snapshots, &world::text(REVISION, &[]));
    let arguments = ["--snapshots", snapshots.to_str().unwrap(), "--orders", orders.to_str().unwrap()];
    let mut autoscaler = Daemon::start(&binaries::autoscaler().unwrap(), &arguments, &VARIABLES);
    let stats = autoscaler.address("listening for stats");
    let hosting = tokio::spawn(host(snapshots.clone(), orders.clone(), stats));
    let mut took = Vec::new();
    for round in 0..ROUNDS {
        // A new process each time; the last one is killed, not asked to end.
        let (running, door) = activator(&snapshots, stats).await;
        let asleep = async {
            while round > 0 && wanted(&orders) != Some(0) {
                sleep(Duration::from_millis(20)).await;
            }
        };
        timeout(PATIENCE + 15 * WINDOW, asleep).await.expect("it goes to zero");
        if round > 0 {
            sleep(3 * WINDOW).await;
        }
        // At any time of the second, and of the tick.
        sleep(Duration::from_millis(370 * round as u64)).await;
        let began = Instant::now();
        let request = send(door, "GET / HTTP/1.1\r\nhost: shop.example\r\n\r\n").await;
        let awake = async {
            while wanted(&orders).is_none_or(|wanted| wanted == 0) {
                sleep(Duration::from_millis(1)).await;
            }
        };
        timeout(PATIENCE, awake).await.expect("it wakes");
        took.push(began.elapsed());
        drop(request);
        // It tells that nobody waits any more, before it is gone.
        sleep(Duration::from_millis(2500)).await;
        drop(running);
    }
    hosting.abort();
    println!("{took:?} from a request to its order");
    assert!(took.iter().all(|took| *took <= WAKE_MAX), "{took:?}");
}
