//! What a client says in the name of our parts: other services' revisions,
//! probes, marks; once and twice, in odd case, over both versions of HTTP.

use activator::{Activator, Config, Links, Sockets};
use plumbing::fds::Budget;
use plumbing::shutdown::Shutdown;
use plumbing::stats;
use plumbing::trust::Trust;
use plumbing::worker::{Worker, Workers};
use policy::revision::RevisionId;
use policy::world::{Holding, Network, Path, Pod, PodPhase, RevisionView, Routes, Snapshot};
use std::sync::Arc;
use std::time::Duration;
use tests::bench::{EPOCH, spec};
use tests::rig::{PATIENCE, app, read_head, read_until, send, sidecar, sidecar_config};
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;

const FORGED: &str = "f0r9ed";

/// What each header says that only our parts may say.
const LINES: [(&str, &str); 16] = [
    ("Knative-Serving-Revision", "theirs"),
    ("Knative-Serving-Namespace", "default"),
    ("K-Network-Probe", "queue"),
    ("K-Network-Probe", "activator"),
    ("K-Network-Probe", "probe"),
    ("K-Network-Hash", FORGED),
    ("K-Kubelet-Probe", FORGED),
    ("K-Proxy-Request", FORGED),
    ("K-Original-Host", "f0r9ed.example"),
    ("K-Passthrough-Lb", FORGED),
    ("X-Zeroscale-Offer", FORGED),
    ("X-Zeroscale-Handback", "f0r9ed full"),
    ("X-Zeroscale-Proxy", FORGED),
    ("X-Zeroscale-Lease", "1h"),
    ("X-Forwarded-For", "203.0.113.9"),
    ("Forwarded", "for=f0r9ed"),
];

/// None of these may come through, whatever their name.
const VALUES: [&str; 5] = [FORGED, "theirs", "203.0.113.9", "1h", "k-network-probe"];

/// Odd case, as HTTP/1 allows it.
fn odd(name: &str) -> String {
    name.chars()
        .enumerate()
        .map(|(n, c)| if n % 2 == 0 { c.to_ascii_lowercase() } else { c.to_ascii_uppercase() })
        .collect()
}

struct Two {
    address: std::net::SocketAddr,
    stats: stats::StatSource,
    heard: mpsc::UnboundedReceiver<String>,
    activator: Activator,
    _world: watch::Sender<Arc<Snapshot>>,
}

/// Two services, one awake and one asleep; the app says back what it got, in
/// the names of our headers.
async fn two() -> Two {
    let (told, heard) = mpsc::unbounded_channel();
    let echo = app(move |mut stream| {
        let told = told.clone();
        async move {
            loop {
                let head = read_head(&mut stream).await;
                if head.is_empty() {
                    return;
                }
                if head.starts_with("PRI ") {
                    // It is asked whether it speaks HTTP/2, and does not.
                    let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\nconnection: close\r\n\r\n").await;
                    return;
                }
                told.send(head.to_lowercase()).unwrap();
                let answer = format!(
                    "HTTP/1.1 200 OK\r\nx-zeroscale-handback: {FORGED} full\r\nx-zeroscale-proxy: {FORGED}\r\nx-zeroscale-reason: {FORGED}\r\ncontent-length: 2\r\n\r\nok"
                );
                if stream.write_all(answer.as_bytes()).await.is_err() {
                    return;
                }
            }
        }
    })
    .await;
    let pod = sidecar(sidecar_config(echo, 0)).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let view = |pods| {
        let spec = Arc::new(spec(0));
        Arc::new(RevisionView {
            spec,
            pods,
            path: Path::Activator,
            path_since: EPOCH,
            trouble: None,
            without_room: 0,
            network: Network::default(),
        })
    };
    let ready = Pod { name: "p".into(), address: pod.address, phase: PodPhase::Ready, since: EPOCH, start_took: None };
    let id = |name: &str| RevisionId::new("default", name);
    let hosts = [("own.example".into(), id("own")), ("theirs.example".into(), id("theirs"))].into_iter().collect();
    let revisions = [(id("own"), view(vec![ready])), (id("theirs"), view(vec![]))].into_iter().collect();
    let routes = Routes { hosts, fallback: None };
    let (world, seen) = watch::channel(Arc::new(Snapshot { version: 1, revisions, routes }));
    let (holding, mut held) = watch::channel(Arc::new(Holding::default()));
    let (sink, stats) = stats::link();
    let shutdown = Shutdown::new();
    let activator = Activator::new(Config::new("activator", Trust::nobody()), sink, holding);
    let workers = Workers::only(Worker::here(&shutdown, Budget::unlimited()));
    let links = Links { world: seen, workers };
    tokio::spawn(activator::run(activator.clone(), Sockets { serving: vec![listener.into()] }, links, shutdown));
    timeout(PATIENCE, held.wait_for(|held| held.version == 1)).await.unwrap().unwrap();
    Two { address, stats, heard, activator, _world: world }
}

impl Two {
    /// What the app saw of the request, after the answer to it.
    async fn judge(&mut self, what: &str, answer: &str) {
        let seen = timeout(PATIENCE, self.heard.recv()).await.unwrap_or_else(|_| panic!("{what}: {answer}")).unwrap();
        for value in VALUES {
            assert!(!seen.contains(value), "{what}: the app sees {value}\n{seen}");
            assert!(!answer.contains(value), "{what}: the client sees {value}\n{answer}");
        }
        assert!(seen.contains("host: own.example\r\n"), "{what}: {seen}");
        assert_eq!(seen.matches("k-proxy-request: activator\r\n").count(), 1, "{what}: {seen}");
        assert_eq!(seen.matches("x-forwarded-for: ").count(), 1, "{what}: {seen}");
    }

    /// Only its own service was woken.
    fn only_its_own(&mut self) {
        let load = self.activator.load();
        let theirs = load.iter().find(|load| &*load.revision.name == "theirs").unwrap();
        assert_eq!((theirs.held, theirs.in_flight), (0, 0));
    }
}

#[tokio::test]
async fn no_forged_word_is_believed_passed_on_or_given_back_over_http1() {
    let mut two = two().await;
    let agents = ["curl/8", "kube-probe/1.30", "Knative-Activator-Probe", "Knative-Autoscaling-Probe"];
    for (name, value) in LINES {
        for (times, name) in [(1, name.to_owned()), (2, name.to_owned()), (1, odd(name)), (2, odd(name))] {
            for agent in agents {
                let lines = format!("{name}: {value}\r\n").repeat(times);
                let request = format!("GET / HTTP/1.1\r\nHost: own.example\r\nUser-Agent: {agent}\r\n{lines}\r\n");
                let answer = read_until(&mut send(two.address, &request).await, "\r\n\r\nok").await;
                assert!(answer.starts_with("HTTP/1.1 200"), "{request}\n{answer}");
                two.judge(&request, &answer).await;
            }
        }
    }
    // All of them together.
    let lines: String = LINES.iter().map(|(name, value)| format!("{}: {value}\r\n", odd(name))).collect();
    let request = format!("GET / HTTP/1.1\r\nHost: own.example\r\n{lines}{lines}\r\n");
    let answer = read_until(&mut send(two.address, &request).await, "\r\n\r\nok").await;
    two.judge("all", &answer).await;
    two.only_its_own();
    nobody_else_is_reported(&mut two).await;
}

#[tokio::test]
async fn no_forged_word_is_believed_passed_on_or_given_back_over_http2() {
    let mut two = two().await;
    let stream = TcpStream::connect(two.address).await.unwrap();
    let (mut client, connection) = h2::client::handshake(stream).await.unwrap();
    tokio::spawn(connection);
    for (name, value) in LINES {
        for times in [1, 2] {
            let mut request = http::Request::get("http://own.example/").body(()).unwrap();
            for _ in 0..times {
                let name: http::HeaderName = name.parse().unwrap();
                request.headers_mut().append(name, value.parse().unwrap());
            }
            let (answer, _) = client.send_request(request, true).unwrap();
            let answer = timeout(PATIENCE, answer).await.unwrap().unwrap();
            assert_eq!(answer.status(), 200, "{name}");
            let fields = format!("{:?}", answer.headers());
            two.judge(&format!("{name} {times} times"), &fields).await;
        }
    }
    two.only_its_own();
    nobody_else_is_reported(&mut two).await;
}

/// Two seconds of reports name one revision.
async fn nobody_else_is_reported(two: &mut Two) {
    let reported = async {
        let mut ticks = 0;
        while ticks < 2 {
            let batch = two.stats.next().await.unwrap();
            ticks += usize::from(!batch.poke);
            for (revision, _) in batch.stats {
                assert_eq!(&*revision.name, "own");
            }
        }
    };
    timeout(PATIENCE + Duration::from_secs(2), reported).await.expect("it is reported");
}
