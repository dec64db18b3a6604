//! How pods are stopped: after their last request, politely, then not.

mod support;

use policy::world::PodPhase;
use std::time::{Duration, Instant};
use support::{Floor, apps};

/// Says when it gets TERM, and ends.
fn polite() -> Vec<std::ffi::OsString> {
    apps::python(
        r#"
def leave(*_):
    say("got TERM")
    sys.exit(0)
on_term(leave)
server = listen()
note_pid("pid")
serve(server)
"#,
    )
}

#[tokio::test]
async fn a_pod_in_somebodys_hands_is_not_stopped_until_let_go() {
    let floor = Floor::start(polite());
    floor.want(1).await;
    let pod = floor.until_ready(1).await.remove(0);
    let pid = floor.pid_in("pid").await;
    floor.hold(&[&pod]);
    floor.want(0).await;
    floor.until("it leaves", |view| view.pods[0].phase == PodPhase::Terminating).await;
    // A whole other start and stop meanwhile: time enough to stop this one too.
    floor.want(1).await;
    floor.until("another", |view| view.ready_pods().count() == 1).await;
    floor.want(0).await;
    floor.until("the other one gone", |view| view.pods.len() == 1).await;
    assert!(apps::runs(pid));
    assert_eq!(floor.told().iter().filter(|line| line.contains("got TERM")).count(), 1);

    floor.hold(&[]);
    floor.until_ready(0).await;
    apps::until_gone(&[pid]).await;
    let told = floor.told();
    let closed = format!("seat: {} closed", pod.address.port());
    let closed = told.iter().position(|line| *line == closed).unwrap();
    let term = told.iter().rposition(|line| line.contains("got TERM")).unwrap();
    assert!(closed < term, "the sidecar closes before the app: {told:#?}");
    floor.end().await;
}

#[tokio::test]
async fn what_holds_a_pod_for_too_long_is_not_waited_for() {
    let floor = Floor::with(polite(), |config| {
        let mut spec = (*support::spec()).clone();
        spec.timeouts.total = Duration::from_millis(50);
        spec.timeouts.upgrade = Some(Duration::from_millis(100));
        config.services[0].spec = spec.into();
    });
    floor.want(1).await;
    let pod = floor.until_ready(1).await.remove(0);
    floor.hold(&[&pod]);
    let began = Instant::now();
    floor.want(0).await;
    floor.until_ready(0).await;
    assert!(began.elapsed() >= Duration::from_millis(100), "tunnels have the longer limit");
    floor.end().await;
}

#[tokio::test]
async fn an_app_that_ignores_term_is_killed() {
    let app = apps::python(r#"on_term(signal.SIG_IGN); server = listen(); note_pid("pid"); serve(server)"#);
    let stop_timeout = Duration::from_millis(200);
    let floor = Floor::with(app, |config| config.services[0].stop_timeout = stop_timeout);
    floor.hold(&[]);
    floor.want(1).await;
    floor.until_ready(1).await;
    let pid = floor.pid_in("pid").await;
    let began = Instant::now();
    floor.want(0).await;
    floor.until_ready(0).await;
    let took = began.elapsed();
    assert!(took >= stop_timeout && took < Duration::from_secs(5), "{took:?}");
    assert!(!apps::exists(pid));
    floor.end().await;
}

#[tokio::test]
async fn the_group_has_its_time_after_the_first_process_ended() {
    // The shell ends at TERM; its child takes a moment longer to end well.
    let app = apps::python(
        r#"
def leave(*_):
    on_term(lambda *_: say("told twice"))
    time.sleep(0.15)
    say("tidied up")
    os._exit(0)
if os.fork() == 0:
    on_term(leave)
    note_pid("child")
    while True:
        time.sleep(1000)
server = listen()
while not os.path.exists("child"):
    time.sleep(0.002)
serve(server)
"#,
    );
    let floor = Floor::start(app);
    floor.hold(&[]);
    floor.want(1).await;
    floor.until_ready(1).await;
    let child = floor.pid_in("child").await;
    floor.want(0).await;
    floor.until_ready(0).await;
    floor.until_told("tidied up").await;
    apps::until_gone(&[child]).await;
    assert!(!floor.told().iter().any(|line| line.contains("told twice")));
    floor.end().await;
}

#[tokio::test]
async fn a_starting_pod_that_is_not_wanted_any_more_ends_at_once() {
    let app = apps::python(r#"note_pid("pid"); time.sleep(1000)"#);
    let floor = Floor::start(app);
    floor.want(1).await;
    let pid = floor.pid_in("pid").await;
    // Nobody publishes what it holds: a pod without requests needs no word.
    floor.want(0).await;
    floor.until_ready(0).await;
    assert!(!apps::exists(pid));
    floor.end().await;
}

#[tokio::test]
async fn the_shutdown_stops_all_pods_whoever_holds_them() {
    let floor = Floor::start(polite());
    floor.want(3).await;
    let pods = floor.until_ready(3).await;
    floor.hold(&pods.iter().collect::<Vec<_>>());
    let story = std::sync::Arc::clone(&floor.story);
    floor.end().await;
    let told = story.lock().unwrap();
    assert_eq!(told.iter().filter(|line| line.contains("got TERM")).count(), 3, "{told:#?}");
    assert_eq!(told.iter().filter(|line| line.ends_with("closed")).count(), 3, "{told:#?}");
}
