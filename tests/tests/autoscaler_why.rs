//! `why`, asked of the autoscaler's program: now, at a time, and over a restart
//! with `--state`.

use autoscaler::state;
use autoscaler::why::time::rfc3339;
use policy::active::{Active, Activity};
use policy::decider::Status;
use policy::moment::Moment;
use policy::revision::RevisionId;
use policy::saved::{Saved, SavedLoad};
use policy::scale::SavedMemory;
use policy::world;
use serde_json::Value;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};
use tests::filehost::daemon::Daemon;
use tests::filehost::world::{Line, put, text};
use tests::floor::binaries;

const PATIENCE: Duration = Duration::from_secs(60);

const FREE: [(&str, &str); 2] = [("ZEROSCALE_STATS_LISTEN", "127.0.0.1:0"), ("ZEROSCALE_ADMIN_LISTEN", "127.0.0.1:0")];

/// `zeroscale why ARGUMENTS --admin ADDRESS`: exit code, and both outputs.
fn why(admin: SocketAddr, arguments: &[&str]) -> (Option<i32>, String, String) {
    let mut command = Command::new(binaries::zeroscale().unwrap());
    let done = command.arg("why").args(arguments).args(["--admin", &admin.to_string()]).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (done.status.code(), text(done.stdout), text(done.stderr))
}

fn json(admin: SocketAddr, arguments: &[&str]) -> Value {
    let arguments: Vec<&str> = arguments.iter().copied().chain(["--json"]).collect();
    let (code, shown, faults) = why(admin, &arguments);
    assert_eq!(code, Some(0), "{faults}");
    serde_json::from_str::<Value>(&shown).unwrap()[0].take()
}

/// What is told once so many pods are ordered.
fn when_wanted(admin: SocketAddr, pods: u32) -> Value {
    let began = Instant::now();
    loop {
        let told = json(admin, &["rev"]);
        if told["decision"]["wanted"] == pods {
            return told;
        }
        assert!(began.elapsed() < PATIENCE, "{told:#}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn moment(seconds: &Value) -> Moment {
    Moment::from_unix_millis((seconds.as_f64().unwrap() * 1000.0).ceil() as i64)
}

/// Three ready pods of target 10, at most `max`.
fn put_world(path: &Path, max: u32) {
    let pod = |name: &str| Line { name: name.into(), address: ([127, 0, 0, 1], 1).into(), phase: "ready" };
    let settings = format!("  scale: {{target: 10, targetUtilizationPercentage: 100, max: {max}}}\n");
    put(path, &text(&settings, &["p1", "p2", "p3"].map(pod)));
}

/// As if 25 requests had been in progress for a minute.
fn put_state(path: &Path) {
    let now = plumbing::clock::now();
    let saved = Saved {
        at: now,
        load: SavedLoad { seconds: vec![(25.0, 50.0); 60], silent: 0 },
        memory: SavedMemory::default(),
        status: Status { desired: 3, excess_burst_capacity: -1 },
        activity: Activity::restore(Active::Yes, now - Duration::from_secs(500), true),
        ordered: Some(3),
        path: world::Path::Activator,
    };
    let all = BTreeMap::from([(RevisionId::new("default", "rev"), saved)]);
    std::fs::write(path, state::text(&all).unwrap()).unwrap();
}

#[tokio::test]
async fn why_is_told_now_and_of_then_also_over_restarts() {
    let binary = binaries::autoscaler().unwrap();
    // Built before the clock runs.
    binaries::zeroscale().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    put_world(&path("world.yaml"), 0);
    put_state(&path("state.json"));
    let of = |name: &str| path(name).to_str().unwrap().to_owned();
    let names = [of("world.yaml"), of("orders.yaml"), of("state.json")];
    let arguments = ["--snapshots", &names[0], "--orders", &names[1], "--state", &names[2], "--history-mib-max", "8"];

    let mut autoscaler = Daemon::start(&binary, &arguments, &FREE);
    let admin = autoscaler.address("listening for admin");
    let began = Instant::now();
    while why(admin, &["rev"]).0 != Some(0) {
        assert!(began.elapsed() < PATIENCE, "{:#?}", autoscaler.lines());
    }
    let three = when_wanted(admin, 3);
    let samples = three["inputs"]["stable"]["samples"].as_array().unwrap();
    assert!(samples.len() == 60 && samples.contains(&Value::from(25.0)), "{three:#}");
    assert_eq!(
        (&three["decision"]["load"]["wish_stable"], &three["decision"]["load"]["target"]),
        (&3.0.into(), &10.0.into())
    );
    assert!(!three["changes"]["list"].as_array().unwrap().is_empty(), "{three:#}");
    let then = rfc3339(moment(&three["decision"]["from"]));

    // A limit, and the setting behind it by name.
    put_world(&path("world.yaml"), 2);
    let two = when_wanted(admin, 2);
    let limits = two["decision"]["limits"].as_array().unwrap();
    let limit = limits.iter().find(|limit| limit["limit"] == "max-scale").unwrap_or_else(|| panic!("{two:#}"));
    assert_eq!((&limit["from"], &limit["to"], &limit["setting"]["value"]), (&3.into(), &2.into(), &"2".into()));
    let (_, shown, _) = why(admin, &["rev"]);
    assert!(
        shown.contains(
            "max-scale 3 -> 2: never more [max-scale = 2: annotation, config-autoscaler, --max-scale, scale.max]"
        ),
        "{shown}"
    );

    // Killed once that is in the file.
    let history = state::history_of(&path("state.json"));
    let began = Instant::now();
    while !std::fs::read_to_string(&history).is_ok_and(|text| text.contains("\"max-scale\",3,2")) {
        assert!(began.elapsed() < PATIENCE, "{:?} {:#?}", std::fs::read_to_string(&history), autoscaler.lines());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    drop(autoscaler);
    // Then ended in order.
    for round in 0..2 {
        let mut autoscaler = Daemon::start(&binary, &arguments, &FREE);
        let admin = autoscaler.address("listening for admin");
        let began = Instant::now();
        while why(admin, &["rev"]).0 != Some(0) {
            assert!(began.elapsed() < PATIENCE, "{:#?}", autoscaler.lines());
        }
        let old = json(admin, &["default/rev", "--at", &then]);
        assert_eq!((&old["decision"]["wanted"], &old["after"]["wanted"]), (&3.into(), &2.into()), "{round}: {old:#}");
        assert_eq!(old["history_since"], three["history_since"], "{round}");
        assert_eq!(when_wanted(admin, 2)["history_since"], three["history_since"], "{round}");

        let (code, _, faults) = why(admin, &["rev", "--at", "-3h"]);
        assert!(code == Some(1) && faults.contains("the history of default/rev begins at "), "{faults}");
        let (code, _, faults) = why(admin, &["ref"]);
        assert!(code == Some(1) && faults.contains("is called `ref`; there is rev"), "{faults}");
        let (code, lines) = autoscaler.terminate().await;
        assert_eq!(code, 0, "{lines:#?}");
    }

    std::fs::write(&history, "{}").unwrap();
    let mut autoscaler = Daemon::start(&binary, &arguments, &FREE);
    autoscaler.address("listening for admin");
    autoscaler.says("the history is of no use").await;
    assert_eq!(autoscaler.terminate().await.0, 0);
    assert!(std::fs::read_to_string(&history).unwrap().starts_with("{\"zeroscale_history\":1}\n"));
}
