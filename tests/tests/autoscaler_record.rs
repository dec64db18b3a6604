//! A recording of the autoscaler's program: pods that are asked, an activator's
//! websocket, a snapshot that changes, a restart with its state; and its end.

use std::path::Path;
use std::process::{Command, Output};
use std::time::{Duration, Instant};
use tests::filehost::daemon::Daemon;
use tests::filehost::world::{self, Line};
use tests::floor::binaries;
use tests::scraped::pods::{Pods, well};
use tests::websocket::{BINARY, Socket};
use tokio::time::sleep;

const FREE: [(&str, &str); 4] = [
    ("ZEROSCALE_STATS_LISTEN", "127.0.0.1:0"),
    ("ZEROSCALE_ADMIN_LISTEN", "127.0.0.1:0"),
    ("ZEROSCALE_WEBSOCKET_LISTEN", "127.0.0.1:0"),
    ("PROFILING_PORT", "0"),
];

/// Whatever takes longer than this is broken.
const PATIENCE: Duration = Duration::from_secs(60);

/// 5 requests at an activator, of `default/rev`.
const STAT: &[u8] = b"\x0a\x1e\x0a\x07default\x12\x03rev\x1a\x0e\x0a\x03act\x11\0\0\0\0\0\0\x14\x40";

fn explain(arguments: &[&str]) -> (Option<i32>, String) {
    let Output { status, stdout, stderr } =
        Command::new(binaries::zeroscale().unwrap()).arg("explain").args(arguments).output().unwrap();
    (status.code(), String::from_utf8_lossy(&[stdout, stderr].concat()).into_owned())
}

fn text(folder: &Path) -> String {
    let entries = std::fs::read_dir(folder).into_iter().flatten();
    entries.map(|entry| std::fs::read_to_string(entry.unwrap().path()).unwrap()).collect()
}

async fn until(what: &str, holds: impl Fn() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < PATIENCE, "not so: {what}");
        sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn a_recording_of_the_program_is_decided_alike_before_and_after_a_restart() {
    let here = tempfile::tempdir().unwrap();
    let path = |name: &str| here.path().join(name).to_str().unwrap().to_owned();
    let (world_file, schedules) = (path("world.yaml"), path("schedules.json"));
    let floor = r#"{"revision":"default/rev","from":"0 0 1 1 *","to":"0 0 31 12 *","zone":"Europe/Berlin","pods":9}"#;
    std::fs::write(&schedules, format!("{{\"schedules\":[{floor}]}}")).unwrap();
    let pods = Pods::start();
    pods.carry(3.0);
    let pod = |n: u8| Line { name: format!("well-{n}"), address: (well(n.into()), 8012).into(), phase: "ready" };
    let (short, target) = ("  containerConcurrency: 10\n", "  scale: {window: 6s, target: 2}\n");
    world::put(here.path().join("world.yaml").as_path(), &world::text(short, &[pod(0)]));
    let (state, orders, port) = (path("state.json"), path("orders.yaml"), pods.port.to_string());
    let flags = ["--snapshots", &world_file, "--orders", &orders, "--state", &state, "--schedules", &schedules];
    for round in 0..2 {
        let mut autoscaler = Daemon::start(
            &binaries::autoscaler().unwrap(),
            &flags,
            &[&FREE[..], &[("ZEROSCALE_SCRAPE_PORT", &port)]].concat(),
        );
        let (admin, websockets) =
            (autoscaler.address("listening for admin"), autoscaler.address("listening for websockets"));
        let folder = here.path().join(format!("recording-{round}"));
        let (admin, out) = (admin.to_string(), folder.to_str().unwrap());
        let arguments = ["record", "--admin", &admin, "--out", out];
        let recorder = Daemon::start(&binaries::zeroscale().unwrap(), &arguments, &[]);
        let mut socket = Socket::open(websockets, "/").await.unwrap();
        until("pods are asked", || text(&folder).contains("service-scraper")).await;
        socket.writer.send(BINARY, STAT).await.unwrap();
        until("the activator is heard", || text(&folder).contains("\"pod\":\"act\"")).await;
        let more = if round == 0 { [short, target].concat() } else { short.to_owned() };
        world::put(here.path().join("world.yaml").as_path(), &world::text(&more, &[pod(0), pod(1)]));
        until("the snapshot is followed", || text(&folder).contains("\"got\":{\"view\"")).await;
        until("some decisions are made", || text(&folder).matches("\"got\":\"due\"").count() > 3).await;

        drop(socket);
        let began = Instant::now();
        let (code, lines) = autoscaler.terminate().await;
        assert_eq!(code, 0, "{lines:#?}");
        let mut recorder = recorder;
        let (code, said) = recorder.ended().await;
        assert_eq!(code, 0, "{said:#?}");
        assert!(said.iter().any(|line| line.contains("without a gap")), "{said:#?}");
        println!("both ended after {:?}", began.elapsed());
        let (code, shown) = explain(&[out]);
        assert_eq!(code, Some(0), "{round}: {shown}");
        assert!(shown.contains("none differs") && shown.contains("override"), "{round}: {shown}");
        // Above the floor of the schedule, which stands in each of them.
        let (code, shown) = explain(&[out, "--set", "min-scale=12"]);
        assert_eq!(code, Some(1), "{round}: {shown}");
    }
}
