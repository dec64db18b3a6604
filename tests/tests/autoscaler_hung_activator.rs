//! Three activators as processes, one of them stopped while it has requests:
//! what it said last counts on, and decisions about what the others say are in
//! time.

use platform::file::read_orders;
use plumbing::grpc::{Call, unary};
use policy::stat::Stat;
use proto::push::PUSH;
use proto::stats::{WireStatMessage, WireStatMessages};
use rustix::process::{Pid, Signal, kill_process};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tests::filehost::daemon::Daemon;
use tests::filehost::world;
use tests::floor::binaries;
use tests::rig::{OK, PATIENCE, app, read_head, read_to_end, read_until, send};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep};

const VARIABLES: [(&str, &str); 5] = [
    ("ZEROSCALE_STATS_LISTEN", "127.0.0.1:0"),
    ("ZEROSCALE_ADMIN_LISTEN", "127.0.0.1:0"),
    ("ZEROSCALE_WEBSOCKET_LISTEN", "127.0.0.1:0"),
    ("PROFILING_PORT", "0"),
    ("ZEROSCALE_SCRAPE_PORT", "0"),
];
/// A report, a tick, and a machine that is busy with other tests.
const SOON: Duration = Duration::from_secs(10);
/// The shortest window, of zeros alone.
const WINDOW: Duration = Duration::from_secs(6);

/// The one whose requests are answered.
const QUICK: &str = "quick";

/// `alone` has requests at one activator only. The target is such that no load
/// lies at the edge of one pod more, where noise would be waited for.
fn text(pods: SocketAddr, shared: u32) -> String {
    let revision = |(name, count): (&str, u32)| {
        let pod = |n: u32| format!("\n  - {{name: {name}-{n}, address: '{pods}'}}");
        format!(
            "\n- name: default/{name}\n  hosts: [{name}.example]\n  scale: {{target: 1.2, \
             targetUtilizationPercentage: 100, window: 6s, grace: 0s, max: 20}}\n  pods:{}",
            (1..=count).map(pod).collect::<String>()
        )
    };
    let all = [("alone", 1), ("shared", shared), (QUICK, 1)].map(revision);
    format!("revisions:{}\n...\n", all.concat())
}

/// What a platform does: pods come and go as they are ordered. Were there only
/// ever one, a load for three would be a panic without an end.
async fn carry_out(orders: PathBuf, snapshots: PathBuf, pods: SocketAddr) {
    let mut there = 1;
    loop {
        let wanted = wanted(&orders, "shared").unwrap_or(there).max(1);
        if wanted != there {
            there = wanted;
            world::put(&snapshots, &text(pods, there));
        }
        sleep(Duration::from_millis(20)).await;
    }
}

fn wanted(orders: &Path, name: &str) -> Option<u32> {
    let orders = read_orders(orders).ok()?;
    orders.iter().find(|order| &*order.revision.name == name).map(|order| order.wanted)
}

struct Orders(PathBuf, SocketAddr);

impl Orders {
    fn wanted(&self, name: &str) -> Option<u32> {
        wanted(&self.0, name)
    }

    /// Waits until it is as it should be.
    async fn come(&self, name: &str, longest: Duration, is_right: impl Fn(u32) -> bool) -> Duration {
        let began = Instant::now();
        loop {
            let wanted = self.wanted(name);
            if wanted.is_some_and(&is_right) {
                return began.elapsed();
            }
            if began.elapsed() > longest {
                let request = "GET /status HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";
                let (status, _) = read_to_end(&mut send(self.1, request).await).await;
                panic!("{name}: {wanted:?} after {longest:?}: {status}");
            }
            sleep(Duration::from_millis(20)).await;
        }
    }
}

/// Requests that last until they are dropped.
async fn requests(door: SocketAddr, revision: &str, count: usize) -> Vec<TcpStream> {
    let mut open = Vec::new();
    for _ in 0..count {
        open.push(send(door, &format!("GET / HTTP/1.1\r\nhost: {revision}.example\r\n\r\n")).await);
    }
    open
}

/// What sidecars say whose requests all came through an activator.
async fn push_zeros(stats: SocketAddr) {
    let message = |name: &str| {
        let stat = Stat {
            pod_name: format!("{name}-1").into(),
            average_concurrency: 1.0,
            average_proxied_concurrency: 1.0,
            request_count: 0.0,
            proxied_request_count: 0.0,
        };
        WireStatMessage {
            namespace: b"default".to_vec(),
            name: name.as_bytes().to_vec(),
            stat: Some(proto::stats::Stat::of(&stat, Duration::from_secs(1))),
        }
    };
    let message = proto::encode(&WireStatMessages { messages: vec![message("alone"), message("shared")] });
    loop {
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
        sleep(Duration::from_millis(500)).await;
    }
}

async fn activator(name: &str, snapshots: &Path, stats: SocketAddr) -> (Daemon, SocketAddr) {
    let (snapshots, stats) = (snapshots.to_str().unwrap(), stats.to_string());
    let arguments = ["--name", name, "--snapshots", snapshots, "--stats", &stats];
    let mut activator = Daemon::start(&binaries::fileactivator().unwrap(), &arguments, &[]);
    let door = activator.address("listening for requests");
    // It listens before it knows the file, or has a stream.
    let request = format!("GET / HTTP/1.1\r\nhost: {QUICK}.example\r\n\r\n");
    let began = Instant::now();
    let takes = |line: &String| line.contains("the autoscaler takes stats");
    while !read_until(&mut send(door, &request).await, "\r\n\r\n").await.starts_with("HTTP/1.1 200")
        || !activator.lines().iter().any(takes)
    {
        assert!(began.elapsed() < PATIENCE, "{:#?}", activator.lines());
        sleep(Duration::from_millis(10)).await;
    }
    (activator, door)
}

#[tokio::test]
async fn requests_at_an_activator_that_hangs_count_on_and_others_are_decided_on_in_time() {
    let inside = Arc::new(AtomicUsize::new(0));
    let counted = inside.clone();
    // Answers nobody, until they leave.
    let pods = app(move |mut stream| {
        let inside = counted.clone();
        async move {
            let head = read_head(&mut stream).await;
            if head.contains(QUICK) {
                let _ = stream.write_all(OK).await;
            } else if !head.is_empty() {
                inside.fetch_add(1, Ordering::SeqCst);
                read_head(&mut stream).await;
                inside.fetch_sub(1, Ordering::SeqCst);
            }
        }
    })
    .await;
    let folder = tempfile::tempdir().unwrap();
    let (snapshots, orders) = (folder.path().join("world.yaml"), folder.path().join("orders.yaml"));
    world::put(&snapshots, &text(pods, 1));
    let arguments = ["--snapshots", snapshots.to_str().unwrap(), "--orders", orders.to_str().unwrap()];
    let mut autoscaler = Daemon::start(&binaries::autoscaler().unwrap(), &arguments, &VARIABLES);
    let stats = autoscaler.address("listening for stats");
    let admin = autoscaler.address("listening for admin");
    let (_first, at_first) = activator("activator-1", &snapshots, stats).await;
    let (_second, at_second) = activator("activator-2", &snapshots, stats).await;
    let (third, at_third) = activator("activator-3", &snapshots, stats).await;
    let pushing = tokio::spawn(push_zeros(stats));
    let platform = tokio::spawn(carry_out(orders.clone(), snapshots.clone(), pods));
    let orders = Orders(orders, admin);

    let alone = requests(at_third, "alone", 1).await;
    let at_hung = requests(at_third, "shared", 2).await;
    let steady = requests(at_second, "shared", 1).await;
    orders.come("shared", SOON, |wanted| wanted >= 3).await;
    orders.come("alone", SOON, |wanted| wanted == 1).await;
    assert_eq!(inside.load(Ordering::SeqCst), 4);

    let third_pid = Pid::from_raw(third.pid()).unwrap();
    kill_process(third_pid, Signal::STOP).unwrap();
    let stopped = Instant::now();
    let rise = requests(at_first, "shared", 5).await;
    let rose = orders.come("shared", SOON, |wanted| wanted >= 7).await;
    drop(rise);
    // The three that are left, and what panic keeps for a window.
    let fell = orders.come("shared", SOON + 4 * WINDOW, |wanted| wanted == 3).await;
    drop(steady);
    let idle = orders.come("shared", SOON + 2 * WINDOW, |wanted| wanted == 2).await;
    println!("rose in {rose:?}, fell in {fell:?}, idle but for the hung one in {idle:?}");
    // Longer than a window of zeros: nothing goes whose requests sit there.
    while stopped.elapsed() < 5 * WINDOW {
        assert_eq!(orders.wanted("alone"), Some(1), "after {:?}", stopped.elapsed());
        assert!(orders.wanted("shared").is_some_and(|wanted| wanted >= 2), "after {:?}", stopped.elapsed());
        sleep(Duration::from_millis(100)).await;
    }
    // What it said last is not good for ever, and that is too long for a test
    // (see `policy::reporters`). It goes on, and all is as it says again.
    kill_process(third_pid, Signal::CONT).unwrap();
    let open = requests(at_third, "shared", 2).await;
    orders.come("shared", SOON + PATIENCE, |wanted| wanted == 4).await;
    assert_eq!(orders.wanted("alone"), Some(1));
    drop((alone, at_hung, open));
    for name in ["alone", "shared"] {
        orders.come(name, SOON + 4 * WINDOW, |wanted| wanted == 0).await;
    }
    pushing.abort();
    platform.abort();
}
