//! The first request after some windows without any, where load is requests
//! per second, and the activator is another process each time: it is signalled
//! and decided on at once.

use platform::file::read_orders;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;
use tests::filehost::daemon::Daemon;
use tests::filehost::world;
use tests::floor::binaries;
use tests::rig::{PATIENCE, send};
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
/// What it takes where nothing else runs, and ten times as much where
/// something does: a tick is 2 s away, and no wake may wait for one.
const WAKE_MAX: Duration = Duration::from_millis(100 * 10);
const ROUNDS: usize = 3;

fn wanted(orders: &Path) -> Option<u32> {
    read_orders(orders).ok()?.first().map(|order| order.wanted)
}

async fn activator(snapshots: &Path, stats: SocketAddr) -> (Daemon, SocketAddr) {
    let (snapshots, stats) = (snapshots.to_str().unwrap(), stats.to_string());
    let arguments = ["--snapshots", snapshots, "--stats", &stats];
    let mut activator = Daemon::start(&binaries::fileactivator().unwrap(), &arguments, &[]);
    let door = activator.address("listening for requests");
    let up = async {
        while !activator.lines().iter().any(|line| line.contains("the autoscaler takes stats")) {
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(PATIENCE, up).await.expect("the stream is up");
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
    let mut took = Vec::new();
    for round in 0..ROUNDS {
        // A new process each time; the last one is killed, not asked to end.
        let (running, door) = activator(&snapshots, stats).await;
        let idle = Instant::now();
        if round > 0 {
            sleep(WINDOW * 3).await;
        }
        let asleep = async {
            while wanted(&orders).is_none_or(|wanted| wanted > 0) && round > 0 {
                sleep(Duration::from_millis(20)).await;
            }
        };
        timeout(PATIENCE + 15 * WINDOW, asleep).await.expect("it goes to zero");
        println!("round {round}: at zero after {:?}", idle.elapsed());
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
    println!("{took:?} from a request to its order");
    assert!(took.iter().all(|took| *took <= WAKE_MAX), "{took:?}");
}
