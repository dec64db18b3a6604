//! The autoscaler as a program: its ports, as those who know Knative's find
//! them, and its end.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;
use tests::filehost::daemon::Daemon;
use tests::filehost::world::{self, Line};
use tests::floor::binaries;
use tests::rig::{PATIENCE, read_to_end, send};
use tests::scraped::pods::{Pods, well};
use tests::websocket::{BINARY, CLOSE, Socket};
use tokio::time::{sleep, timeout};

const FREE: [(&str, &str); 4] = [
    ("ZEROSCALE_STATS_LISTEN", "127.0.0.1:0"),
    ("ZEROSCALE_ADMIN_LISTEN", "127.0.0.1:0"),
    ("ZEROSCALE_WEBSOCKET_LISTEN", "127.0.0.1:0"),
    ("PROFILING_PORT", "0"),
];

fn start(folder: &Path, changes: &[(&str, &str)]) -> Daemon {
    let (snapshots, orders) = (folder.join("world.yaml"), folder.join("orders.yaml"));
    let arguments = ["--snapshots", snapshots.to_str().unwrap(), "--orders", orders.to_str().unwrap()];
    Daemon::start(&binaries::autoscaler().unwrap(), &arguments, &[&FREE, changes].concat())
}

async fn ask(address: SocketAddr, path: &str, fields: &str) -> String {
    let request = format!("GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n{fields}\r\n");
    read_to_end(&mut send(address, &request).await).await.0
}

#[tokio::test]
async fn its_ports_answer_as_the_references_and_its_end_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let pods = Pods::start();
    pods.carry(3.0);
    let pod = Line { name: "well-0".into(), address: (well(0), 8012).into(), phase: "ready" };
    world::put(&folder.path().join("world.yaml"), &world::text("  containerConcurrency: 10\n", &[pod]));
    let mut autoscaler = start(folder.path(), &[("ZEROSCALE_SCRAPE_PORT", &pods.port.to_string())]);
    let websockets = autoscaler.address("listening for websockets");
    let (profiling, admin) = (autoscaler.address("listening for profiling"), autoscaler.address("listening for admin"));
    for (address, path, fields, answer) in [
        (websockets, "/", "user-agent: kube-probe/1.30\r\n", "HTTP/1.1 200"),
        (websockets, "/healthz", "k-kubelet-probe: autoscaler\r\n", "HTTP/1.1 200"),
        (websockets, "/", "", "HTTP/1.1 400"),
        (profiling, "/debug/pprof/", "", "HTTP/1.1 404"),
        (admin, "/livez", "", "HTTP/1.1 200"),
    ] {
        let got = ask(address, path, fields).await;
        assert!(got.starts_with(answer), "{path} {fields}: {got}");
    }
    // A stat of an activator: 5 requests, of a pod that carries 3 itself.
    let mut socket = Socket::open(websockets, "/").await.unwrap();
    let stat = b"\x0a\x1e\x0a\x07default\x12\x03rev\x1a\x0e\x0a\x03act\x11\0\0\0\0\0\0\x14\x40";
    let labels = "k8s_namespace_name=\"default\",kn_configuration_name=\"rev\",kn_revision_name=\"rev\"";
    let known = async {
        loop {
            socket.writer.send(BINARY, stat).await.unwrap();
            let page = ask(admin, "/metrics", "").await;
            let line = page.lines().find(|line| line.starts_with("kn_revision_concurrency_stable{"));
            let value = line.and_then(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok());
            // Asking alone gives 3 at most, and the activator alone no round.
            if value.is_some_and(|value| value > 3.0) && page.contains("kn_autoscaler_scrape_duration_seconds_count{") {
                assert!(line.is_some_and(|line| line.contains(labels)), "{line:?}");
                return page;
            }
            sleep(Duration::from_millis(500)).await;
        }
    };
    let page = timeout(3 * PATIENCE, known).await.expect("both count");
    for name in [
        "kn_revision_pods_desired{",
        "kn_revision_pods_requested{",
        "kn_revision_pods_count{",
        "kn_revision_capacity_excess{",
        "kn_revision_panic_mode{",
        "kn_revision_concurrency_target{",
        "kn_autoscaler_scrape_duration_seconds_bucket{",
        "zeroscale_autoscaler_scrapes_total{outcome=\"good\"}",
        "zeroscale_autoscaler_websockets 1",
    ] {
        assert!(page.contains(name), "{name}: {page}");
    }
    let ending = tokio::spawn(autoscaler.terminate());
    let frame = timeout(PATIENCE, socket.reader.next()).await.expect("in time").unwrap().expect("a frame");
    assert_eq!((frame.opcode, frame.code()), (CLOSE, Some(1012)));
    socket.writer.send(CLOSE, &frame.payload).await.unwrap();
    let (code, lines) = timeout(3 * PATIENCE, ending).await.expect("it ends").unwrap();
    assert_eq!(code, 0, "{lines:#?}");
}

#[tokio::test]
async fn what_it_must_know_in_strict_mode_it_asks_for_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let (code, lines) = start(folder.path(), &[("ZEROSCALE_COMPAT", "strict")]).ended().await;
    let text = lines.join("\n");
    assert_eq!(code, 1);
    for name in ["POD_NAME", "POD_IP"] {
        assert!(text.contains(&format!("required key {name} missing value")), "{text}");
    }
}
