//! The autoscaler's program over a restart: it goes on with what the one
//! before has left, and tells of what is of no use.

use autoscaler::state;
use policy::active::{Active, Activity};
use policy::decider::Status;
use policy::revision::RevisionId;
use policy::saved::{Saved, SavedLoad};
use policy::scale::SavedMemory;
use policy::world::Path;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use tests::filehost::daemon::Daemon;
use tests::filehost::world::{self, Line};
use tests::floor::binaries;
use tests::rig::send;

const PATIENCE: Duration = Duration::from_secs(30);

const FREE: [(&str, &str); 2] = [("ZEROSCALE_STATS_LISTEN", "127.0.0.1:0"), ("ZEROSCALE_ADMIN_LISTEN", "127.0.0.1:0")];

async fn status(admin: SocketAddr) -> String {
    let request = "GET /status HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";
    tests::rig::read_to_end(&mut send(admin, request).await).await.0
}

#[tokio::test]
async fn a_new_autoscaler_goes_on_where_the_old_one_ended() {
    let binary = binaries::autoscaler().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let pod = |name: &str| Line { name: name.into(), address: ([127, 0, 0, 1], 1).into(), phase: "ready" };
    let pods = ["p1", "p2", "p3"].map(pod);
    world::put(&path("world.yaml"), &world::text("  scale: {target: 10, targetUtilizationPercentage: 100}\n", &pods));
    let now = plumbing::clock::now();
    let saved = Saved {
        at: now,
        load: SavedLoad { seconds: vec![(25.0, 50.0); 60], silent: 0 },
        memory: SavedMemory::default(),
        status: Status { desired: 3, excess_burst_capacity: -1 },
        activity: Activity::restore(Active::Yes, now - Duration::from_secs(500), true),
        ordered: Some(3),
        path: Path::Activator,
    };
    let id = RevisionId::new("default", "rev");
    std::fs::write(path("state.json"), state::text(&BTreeMap::from([(id.clone(), saved)])).unwrap()).unwrap();

    let of = |name: &str| path(name).to_str().unwrap().to_owned();
    let names = [of("world.yaml"), of("orders.yaml"), of("state.json")];
    let arguments = ["--snapshots", &names[0], "--orders", &names[1], "--state", &names[2]];
    // Twice: what the first one writes when it ends is of use too.
    for round in 0..2 {
        let mut autoscaler = Daemon::start(&binary, &arguments, &FREE);
        let admin = autoscaler.address("listening for admin");
        let began = Instant::now();
        let told = loop {
            let told = status(admin).await;
            if told.contains("\"wanted\":3") {
                break told;
            }
            assert!(began.elapsed() < PATIENCE, "{round}: {told} {:#?}", autoscaler.lines());
            tokio::time::sleep(Duration::from_millis(20)).await;
        };
        assert!(told.contains("\"mode\":\"stable\"") && told.contains("\"stable\":25.0"), "{round}: {told}");
        let (code, lines) = autoscaler.terminate().await;
        assert_eq!(code, 0, "{lines:#?}");
        let left = state::read(&path("state.json")).unwrap();
        assert_eq!((left[&id].ordered, left[&id].status.desired), (Some(3), 3));
    }

    std::fs::write(path("state.json"), "{\"version\": 1").unwrap();
    let mut autoscaler = Daemon::start(&binary, &arguments, &FREE);
    autoscaler.address("listening for admin");
    autoscaler.says("the state is of no use").await;
    // It writes a good one at its end.
    assert_eq!(autoscaler.terminate().await.0, 0);
    assert!(state::read(&path("state.json")).is_ok());
}
