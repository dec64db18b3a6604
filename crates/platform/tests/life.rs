//! Pods come, crash, come back and go.

mod support;

use platform::process::Readiness;
use policy::world::{Path, PodPhase, Snapshot};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};
use support::{Floor, apps};

#[tokio::test]
async fn pods_come_and_go_as_they_are_wanted() {
    let floor = Floor::start(apps::plain());
    assert_eq!(floor.snapshot().version, 1);
    assert!(floor.view().pods.is_empty());
    floor.hold(&[]);

    floor.want(1).await;
    let first = floor.until_ready(1).await.remove(0);
    assert!(first.name.starts_with("web-"));
    assert!(first.start_took.is_some_and(|took| took > Duration::ZERO));

    floor.want(3).await;
    let three = floor.until_ready(3).await;
    assert_eq!(three[0], first);
    let ports: BTreeSet<u16> = three.iter().map(|pod| pod.address.port()).collect();
    assert_eq!(ports.len(), 3, "each has its own port");

    // The one that is named goes before the youngest.
    floor.order(2, Path::Activator, &[&first]).await;
    assert_eq!(floor.until_ready(2).await, three[1..]);
    floor.want(1).await;
    assert_eq!(floor.until_ready(1).await, three[1..2]);
    floor.want(0).await;
    floor.until_ready(0).await;
    floor.end().await;
}

#[tokio::test]
async fn a_terminating_pod_never_comes_back() {
    let floor = Floor::start(apps::plain());
    floor.want(1).await;
    let first = floor.until_ready(1).await.remove(0);
    floor.want(0).await;
    floor.until("it leaves", |view| view.pods[0].phase == PodPhase::Terminating).await;
    floor.want(1).await;
    let both = floor
        .until("another one beside it", |view| view.pods.len() == 2 && view.pods[1].phase == PodPhase::Ready)
        .await;
    assert_eq!(both.pods[0].name, first.name);
    assert_eq!(both.pods[0].phase, PodPhase::Terminating);
    assert_ne!(both.pods[1].name, first.name);
    floor.end().await;
}

#[tokio::test]
async fn the_path_is_switched_with_the_next_snapshot() {
    let floor = Floor::start(apps::plain());
    let before = floor.view();
    assert_eq!(before.path, Path::Activator);
    floor.order(0, Path::Direct, &[]).await;
    let after = floor.until("the direct path", |view| view.path == Path::Direct).await;
    assert!(after.path_since > before.path_since);
    let version = floor.snapshot().version;
    // The same order again changes nothing, so nothing is published.
    floor.order(0, Path::Direct, &[]).await;
    floor.order(0, Path::Activator, &[]).await;
    floor.until("the first path", |view| view.path == Path::Activator).await;
    assert_eq!(floor.snapshot().version, version + 1);
    floor.end().await;
}

#[tokio::test]
async fn the_app_gets_its_port_and_its_names() {
    let app = apps::python(
        r#"
names = ["PORT", "K_SERVICE", "K_REVISION", "K_CONFIGURATION", "EXTRA", "ZEROSCALE_POD"]
say("seen: " + " ".join(os.environ[name] for name in names))
say("stdin: %d" % len(sys.stdin.read()))
say("group: %s" % (os.getpgid(0) == os.getpid()))
say("inherited: %s" % ("PATH" in os.environ))
say("mine: " + sys.argv[2] + " in " + os.getcwd())
serve(listen())
"#,
    );
    let mut app = app;
    app.push("--bind=127.0.0.1:{port}/{port}".into());
    let floor = Floor::with(app, |config| {
        let env = &mut config.services[0].env;
        env.push(("EXTRA".into(), "more".into()));
        env.push(("PORT".into(), "1".into()));
    });
    floor.want(1).await;
    let pod = floor.until_ready(1).await.remove(0);
    let port = pod.address.port();
    floor.until_told("mine: ").await;
    let told = floor.told();
    let has = |line: String| assert!(told.contains(&line), "{line} not in {told:#?}");
    has(format!("out: seen: {port} web web web-config more {}", pod.name));
    has("out: stdin: 0".into());
    has("out: group: True".into());
    has("out: inherited: True".into());
    let dir = floor.dir.path().display();
    has(format!("out: mine: --bind=127.0.0.1:{port}/{port} in {dir}"));
    floor.end().await;
}

#[tokio::test]
async fn a_crashed_app_is_started_again_under_its_pods_name() {
    let app = apps::python(r#"note_pid("pid"); serve(listen())"#);
    let floor = Floor::start(app);
    floor.want(1).await;
    let before = floor.until_ready(1).await.remove(0);
    let pid = floor.pid_in("pid").await;
    apps::signal(pid, "KILL");
    floor.until("no ready pod", |view| view.ready_pods().count() == 0).await;
    let after = floor.until_ready(1).await.remove(0);
    assert_eq!(after.name, before.name);
    assert_ne!(after.address, before.address, "a new port at each start");
    assert_ne!(floor.pid_in("pid").await, pid);
    let told = floor.told();
    let closed = format!("seat: {} closed", before.address.port());
    assert!(told.contains(&closed), "{told:#?}");
    assert_eq!(floor.view().trouble, None, "one crash is no trouble");
    floor.end().await;
}

#[tokio::test]
async fn a_pod_that_fails_its_readiness_path_gets_no_new_work_until_it_passes() {
    let app = apps::python(
        r#"
server = listen()
while True:
    connection, _ = server.accept()
    request = connection.recv(4096)
    asked = request.startswith(b"GET /ready?x=1 HTTP/1.1\r\n") and b"\r\nHost: 127.0.0.1" in request
    good = asked and os.path.exists("good")
    line = b"HTTP/1.1 204 Fine" if good else b"HTTP/1.1 503 Not now"
    connection.sendall(line + b"\r\nConnection: close\r\n\r\n")
    connection.close()
"#,
    );
    let floor = Floor::with(app, |config| {
        config.services[0].readiness = Readiness::Http("/ready?x=1".into());
        config.probing.period = Duration::from_millis(20);
    });
    let good = floor.dir.path().join("good");
    floor.want(1).await;
    floor.until_told("opened").await;
    assert_eq!(floor.view().ready_pods().count(), 0);
    std::fs::write(&good, "").unwrap();
    let first = floor.until_ready(1).await.remove(0);
    std::fs::remove_file(&good).unwrap();
    let unready = floor.until("not ready", |view| view.ready_pods().count() == 0).await;
    assert_eq!(unready.pods[0].phase, PodPhase::Starting);
    assert_eq!(unready.pods[0].address, first.address, "the process is the same");
    std::fs::write(&good, "").unwrap();
    let again = floor.until_ready(1).await.remove(0);
    assert_eq!((again.address, again.start_took), (first.address, first.start_took));
    floor.end().await;
}

#[tokio::test]
async fn pods_beyond_the_room_wait_and_start_when_there_is_some() {
    let floor = Floor::with(apps::plain(), |config| config.max_pods = 2);
    floor.hold(&[]);
    floor.want(5).await;
    floor.until_ready(2).await;
    let mut world = floor.platform.world.clone();
    let without_room = |world: &Snapshot| world.revisions[&support::web()].without_room;
    let waiting = world.wait_for(|world| without_room(world) == 3);
    tokio::time::timeout(support::DEADLINE, waiting).await.unwrap().unwrap();
    floor.want(1).await;
    floor.until_ready(1).await;
    let none = world.wait_for(|world| without_room(world) == 0);
    tokio::time::timeout(support::DEADLINE, none).await.unwrap().unwrap();
    floor.end().await;
}

#[tokio::test]
async fn initial_pods_are_there_from_the_first_snapshot_on() {
    let floor = Floor::with(apps::plain(), |config| config.services[0].initial = 2);
    let pods = floor.view().pods.clone();
    assert_eq!(pods.len(), 2);
    assert!(pods.iter().all(|pod| pod.phase == PodPhase::Starting && pod.address.port() == 0));
    floor.until_ready(2).await;
    floor.end().await;
}

#[tokio::test]
async fn a_pod_is_ready_soon_after_its_app_listens() {
    let floor = Floor::start(apps::python(r#"server = listen(); say("up"); serve(server)"#));
    let mut lateness = Vec::new();
    for _ in 0..5 {
        floor.want(1).await;
        floor.until_told("up").await;
        let up = Instant::now();
        floor.until_ready(1).await;
        lateness.push(up.elapsed());
        floor.hold(&[]);
        floor.want(0).await;
        floor.until_ready(0).await;
        floor.story.lock().unwrap().clear();
    }
    lateness.sort();
    println!("ready after the app's own word: {lateness:?}");
    // Ten times the figure, on a machine that others use too.
    assert!(lateness[2] < Duration::from_millis(50), "{lateness:?}");
    floor.end().await;
}
