//! The file platform: activators and autoscalers that stand alone, their file
//! rewritten under load, and the whole loop over several processes.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;
use tests::filehost::activator::{self, Running};
use tests::filehost::daemon::Daemon;
use tests::filehost::host::{Host, Settings};
use tests::filehost::world::{self, Line};
use tests::floor::binaries;
use tests::rig::{GET, OK, PATIENCE, app, read_head, read_until, send, sidecar, sidecar_config, until};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;
use tokio::time::{Instant, sleep, timeout};

/// What the revision says beside its pods, so that the loop takes seconds.
const REVISION: &str = "  containerConcurrency: 1
  scale: {window: 6s, grace: 0s, activation: 1, max: 3}
";

/// An app that takes 10 ms, and counts.
async fn quick_app(served: &Arc<AtomicUsize>) -> SocketAddr {
    let served = served.clone();
    app(move |mut stream| {
        let served = served.clone();
        async move {
            while !read_head(&mut stream).await.is_empty() {
                sleep(Duration::from_millis(10)).await;
                served.fetch_add(1, Ordering::SeqCst);
                if stream.write_all(OK).await.is_err() {
                    return;
                }
            }
        }
    })
    .await
}

/// What clients have met.
#[derive(Default)]
struct Tally {
    sent: AtomicUsize,
    lost: std::sync::Mutex<Vec<String>>,
    over: AtomicBool,
}

/// One request after another through an activator, until it is over.
async fn client(address: SocketAddr, tally: Arc<Tally>) {
    while !tally.over.load(Ordering::SeqCst) {
        tally.sent.fetch_add(1, Ordering::SeqCst);
        let answer = read_until(&mut send(address, GET).await, "\r\n\r\nok").await;
        if !answer.starts_with("HTTP/1.1 200") {
            tally.lost.lock().unwrap().push(answer);
        }
    }
}

async fn bad(activators: &mut [Running], path: &Path, content: &str, why: &str) {
    let before: Vec<u64> = activators.iter().map(|one| one.health.borrow().bad).collect();
    // As an editor or a script does that knows no better.
    std::fs::write(path, content).unwrap();
    for (one, before) in activators.iter_mut().zip(before) {
        let kept = one.world.borrow().version;
        let told = timeout(PATIENCE, one.health.wait_for(|health| health.bad > before)).await;
        let told = told.expect("it is told").expect("it runs").clone();
        assert!(told.fault.as_ref().is_some_and(|fault| fault.contains(why)), "{told:?}");
        assert_eq!((told.bad, one.world.borrow().version), (before + 1, kept), "{why}: once, and nothing changed");
    }
}

async fn good(activators: &mut [Running], path: &Path, pods: &[Line]) {
    let text = world::text("  containerConcurrency: 2\n", pods);
    let before: Vec<u64> = activators.iter().map(|one| one.health.borrow().good).collect();
    world::put(path, &text);
    for (one, before) in activators.iter_mut().zip(before) {
        timeout(PATIENCE, one.health.wait_for(|health| health.good > before))
            .await
            .expect("taken in")
            .expect("it runs");
    }
}

#[tokio::test]
async fn no_request_is_lost_while_the_file_is_rewritten_under_load() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("world.yaml");
    let served = Arc::new(AtomicUsize::new(0));
    let mut lines = Vec::new();
    let mut sidecars = Vec::new();
    for n in 0..6 {
        let pod = sidecar(sidecar_config(quick_app(&served).await, 2)).await;
        lines.push(Line { name: format!("p{n}"), address: pod.address, phase: "ready" });
        sidecars.push(pod);
    }
    // One never becomes ready; one is said to be, and nobody listens there.
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let never = Line { name: "never".to_owned(), address: silent.local_addr().unwrap(), phase: "starting" };
    let dead = TcpListener::bind("127.0.0.81:0").await.unwrap().local_addr().unwrap();
    let dead = Line { name: "dead".to_owned(), address: dead, phase: "ready" };

    world::put(&path, &world::text("  containerConcurrency: 2\n", &lines));
    let mut activators = Vec::new();
    for name in ["a", "b"] {
        let mut one = activator::start(name, path.clone(), None).await;
        timeout(PATIENCE, one.world.wait_for(|world| world.version > 0)).await.unwrap().unwrap();
        activators.push(one);
    }
    let tally = Arc::new(Tally::default());
    let clients: Vec<_> = (0..12).map(|n| tokio::spawn(client(activators[n % 2].address, tally.clone()))).collect();
    until("requests are served", || served.load(Ordering::SeqCst) > 20).await;

    let whole = world::text("  containerConcurrency: 2\n", &lines);
    let half = &whole[..whole.find("  - {name: p3").unwrap()];
    for round in 0..8_usize {
        let with = |keep: &dyn Fn(usize) -> bool| -> Vec<Line> {
            let some = lines.iter().enumerate().filter(|(n, _)| keep(*n)).map(|(_, line)| line.clone());
            some.chain([never.clone(), dead.clone()]).collect()
        };
        good(&mut activators, &path, &with(&|n| (n + round) % 3 != 0)).await;
        good(&mut activators, &path, &with(&|n| (n + round) % 2 == 0)).await;
        let mut ending = with(&|_| true);
        ending[round % 6].phase = "terminating";
        good(&mut activators, &path, &ending).await;
        match round % 4 {
            0 => bad(&mut activators, &path, "", "empty").await,
            1 => bad(&mut activators, &path, "revisions:\n- name: [\n...\n", "line").await,
            2 => bad(&mut activators, &path, half, "half").await,
            _ => bad(&mut activators, &path, &whole.replace("fallback", "falback"), "unknown field `falback`").await,
        }
        let before = served.load(Ordering::SeqCst);
        until("requests are served all the same", || served.load(Ordering::SeqCst) > before + 10).await;
        // No pod at all for a moment: all are held.
        good(&mut activators, &path, std::slice::from_ref(&never)).await;
        sleep(Duration::from_millis(50)).await;
        good(&mut activators, &path, &with(&|_| true)).await;
    }
    tally.over.store(true, Ordering::SeqCst);
    for client in clients {
        timeout(PATIENCE, client).await.expect("each has its answer").unwrap();
    }
    let lost = tally.lost.lock().unwrap();
    assert!(lost.is_empty(), "{} of {}: {:?}", lost.len(), tally.sent.load(Ordering::SeqCst), lost.first());
    assert!(tally.sent.load(Ordering::SeqCst) > 200);
}

struct Files {
    _folder: tempfile::TempDir,
    snapshots: PathBuf,
    orders: PathBuf,
}

impl Files {
    fn new() -> Files {
        let folder = tempfile::tempdir().unwrap();
        let (snapshots, orders) = (folder.path().join("world.yaml"), folder.path().join("orders.yaml"));
        Files { _folder: folder, snapshots, orders }
    }

    fn arguments(&self) -> [&str; 4] {
        ["--snapshots", self.snapshots.to_str().unwrap(), "--orders", self.orders.to_str().unwrap()]
    }
}

const FREE: [(&str, &str); 5] = [
    ("ZEROSCALE_STATS_LISTEN", "127.0.0.1:0"),
    ("ZEROSCALE_ADMIN_LISTEN", "127.0.0.1:0"),
    ("ZEROSCALE_WEBSOCKET_LISTEN", "127.0.0.1:0"),
    ("PROFILING_PORT", "0"),
    // Sidecars push here, all at one address.
    ("ZEROSCALE_SCRAPE_PORT", "0"),
];

async fn ask(address: SocketAddr, path: &str) -> String {
    let request = format!("GET {path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n");
    tests::rig::read_to_end(&mut send(address, &request).await).await.0
}

/// Waits for something that processes must do first.
async fn comes(what: &str, longest: Duration, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < longest, "{what}");
        sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn from_zero_and_back_over_three_processes() {
    // Before anything is timed: it may have to be built.
    binaries::queue_proxy().and_then(|_| binaries::testapp()).unwrap();
    let files = Files::new();
    let mut autoscaler = Daemon::start(&binaries::autoscaler().unwrap(), &files.arguments(), &FREE);
    let (stats, admin) = (autoscaler.address("listening for stats"), autoscaler.address("listening for admin"));
    loop {
        let health = ask(admin, "/healthz").await;
        assert!(health.starts_with("HTTP/1.1 503"), "{health}");
        if health.contains("No such file") {
            break;
        }
    }
    let sidecar = [
        ("CONTAINER_CONCURRENCY", "1".to_owned()),
        ("SERVING_NAMESPACE", "default".to_owned()),
        ("SERVING_REVISION", "rev".to_owned()),
        ("ZEROSCALE_STATS_ADDR", stats.to_string()),
        ("ZEROSCALE_DRAIN_SETTLE", "200ms".to_owned()),
    ];
    let host = Host::start(Settings {
        snapshots: files.snapshots.clone(),
        orders: files.orders.clone(),
        revision: REVISION.to_owned(),
        work: Duration::from_millis(300),
        sidecar: sidecar.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
    });
    let arguments = ["--snapshots", files.snapshots.to_str().unwrap(), "--stats", &stats.to_string()];
    let mut activator = Daemon::start(&binaries::fileactivator().unwrap(), &arguments, &[]);
    let door = activator.address("listening for requests");
    activator.says("the autoscaler takes stats").await;
    while !ask(admin, "/healthz").await.starts_with("HTTP/1.1 200") {
        sleep(Duration::from_millis(5)).await;
    }
    for round in 1..=2 {
        assert_eq!(host.pods(), 0);
        let began = Instant::now();
        let answers: Vec<_> = (0..3)
            .map(|_| tokio::spawn(async move { read_until(&mut send(door, GET).await, "\r\n\r\n").await }))
            .collect();
        for answer in answers {
            let answer = answer.await.unwrap();
            assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        }
        println!("round {round}: three requests from zero took {:?}", began.elapsed());
        assert!(host.started() >= round && host.pods() > 0);
        let status = ask(admin, "/status").await;
        assert!(status.contains("\"revision\":\"default/rev\"") && status.contains("\"fault\":null"), "{status}");
        // A window of 6 s, and the drain.
        comes("it is at zero again", Duration::from_secs(40), || host.pods() == 0).await;
    }
    let metrics = ask(admin, "/metrics").await;
    for name in ["zeroscale_autoscaler_stat_messages_total{call=\"report\"}", "zeroscale_file_good 1"] {
        assert!(metrics.contains(name), "{name}: {metrics}");
    }
    let (code, lines) = activator.terminate().await;
    assert_eq!(code, 0, "{lines:#?}");
    let (code, lines) = autoscaler.terminate().await;
    assert_eq!(code, 0, "{lines:#?}");
}

#[tokio::test]
async fn an_autoscaler_that_cannot_be_brought_up_says_why_and_ends_with_1() {
    let binary = binaries::autoscaler().unwrap();
    let faults = [("ZEROSCALE_TICK", "soon"), ("ZEROSCALE_STATS_LISTEN", "x")];
    let (code, lines) = Daemon::start(&binary, &["--colour", "red"], &faults).ended().await;
    let text = lines.join("\n");
    assert_eq!(code, 1);
    for name in
        ["ZEROSCALE_TICK", "ZEROSCALE_STATS_LISTEN", "ZEROSCALE_SNAPSHOT_FILE", "ZEROSCALE_ORDER_FILE", "--colour"]
    {
        assert!(text.contains(name), "{name}: {text}");
    }
    let files = Files::new();
    let taken = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let variables = [&[("ZEROSCALE_STATS_LISTEN", address.as_str())], &FREE[1..]].concat();
    let (code, lines) = Daemon::start(&binary, &files.arguments(), &variables).ended().await;
    assert!(code == 1 && lines.join("\n").contains(&address), "{lines:?}");
}
