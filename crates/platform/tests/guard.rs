//! Nothing outlives us.

mod support;

use platform::process::Config;
use std::process::{Command, Stdio};
use std::time::Duration;
use support::{Floor, apps};

/// Listens, and has left behind a process with a session of its own.
const WITH_DAEMON: &str = r#"
note_pid("pid")
daemon("daemon")
serve(listen())
"#;

/// Daemons that ignore TERM are given little time.
fn brief(config: &mut Config) {
    config.services[0].stop_timeout = Duration::from_millis(200);
}

#[tokio::test]
async fn a_daemon_of_the_app_ends_with_its_pod() {
    let floor = Floor::with(apps::python(WITH_DAEMON), brief);
    floor.hold(&[]);
    floor.want(1).await;
    floor.until_ready(1).await;
    let pids = [floor.pid_in("pid").await, floor.pid_in("daemon").await];
    floor.want(0).await;
    floor.until_ready(0).await;
    assert!(!pids.iter().any(|pid| apps::exists(*pid)), "not even zombies");
    floor.end().await;
}

#[tokio::test]
async fn a_daemon_of_one_pod_outlives_the_end_of_another() {
    let app = apps::python(
        r#"
daemon("daemon-" + os.environ["ZEROSCALE_POD"])
serve(listen())
"#,
    );
    let floor = Floor::with(app, brief);
    floor.hold(&[]);
    floor.want(2).await;
    let pods = floor.until_ready(2).await;
    let stays = floor.pid_in(&format!("daemon-{}", pods[0].name)).await;
    let goes = floor.pid_in(&format!("daemon-{}", pods[1].name)).await;
    floor.want(1).await;
    floor.until_ready(1).await;
    assert!(!apps::exists(goes));
    assert!(apps::runs(stays));
    floor.end().await;
    assert!(!apps::exists(stays));
}

#[tokio::test]
async fn what_a_crashed_app_left_behind_is_killed_before_it_starts_again() {
    let app = apps::python(
        r#"
note_pid("pid")
if os.path.exists("daemon"):
    os.rename("daemon", "daemon-before")
daemon("daemon")
serve(listen())
"#,
    );
    let floor = Floor::with(app, brief);
    floor.want(1).await;
    floor.until_ready(1).await;
    let daemon = floor.pid_in("daemon").await;
    apps::signal(floor.pid_in("pid").await, "KILL");
    floor.pid_in("daemon-before").await;
    assert!(!apps::exists(daemon));
    floor.until_ready(1).await;
    floor.end().await;
}

/// The guard of the platform whose pod has this process.
fn guard_of(pid: i32) -> i32 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    stat.rsplit_once(") ").unwrap().1.split(' ').nth(1).unwrap().parse().unwrap()
}

#[tokio::test]
async fn a_killed_guard_leaves_nothing_and_the_pods_come_back() {
    let before = r#"
if os.path.exists("daemon"):
    os.rename("daemon", "daemon-before")
"#;
    let floor = Floor::with(apps::python(&format!("{before}{WITH_DAEMON}")), brief);
    floor.want(1).await;
    let before = floor.until_ready(1).await.remove(0);
    let pids = [floor.pid_in("pid").await, floor.pid_in("daemon").await];
    let guard = guard_of(pids[0]);
    apps::signal(guard, "KILL");
    apps::until_gone(&[pids[0], pids[1], guard]).await;
    floor.pid_in("daemon-before").await;
    let after = floor.until_ready(1).await.remove(0);
    assert_eq!(after.name, before.name);
    assert_eq!(floor.view().trouble, None, "it was not the app's doing");
    assert_ne!(guard_of(floor.pid_in("pid").await), guard);
    floor.end().await;
}

/// As in a container that is entered from without, where process group and
/// session have the number 0.
#[test]
fn a_killed_guard_is_no_trouble_in_a_pid_namespace_of_its_own() {
    const NAMESPACE: [&str; 3] = ["--pid", "--fork", "--mount-proc"];
    let allowed = Command::new("unshare").args(NAMESPACE).arg("true").output();
    if !allowed.is_ok_and(|tried| tried.status.success()) {
        eprintln!("SKIPPED: no PID namespaces here");
        return;
    }
    let run = Command::new("unshare")
        .args(NAMESPACE)
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "a_killed_guard_leaves_nothing_and_the_pods_come_back"])
        .output()
        .unwrap();
    let said = format!("{}{}", String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr));
    assert!(run.status.success() && said.contains("1 passed") && !said.contains("panicked"), "{said}");
}

#[tokio::test]
async fn the_guard_does_not_follow_the_signals_of_a_terminal() {
    let app = apps::python(r#"note_pid("pid"); serve(listen())"#);
    let floor = Floor::start(app);
    floor.want(1).await;
    floor.until_ready(1).await;
    let pid = floor.pid_in("pid").await;
    for signal in ["INT", "TERM", "HUP"] {
        apps::signal(guard_of(pid), signal);
    }
    // It still does what it is asked.
    floor.want(2).await;
    floor.until_ready(2).await;
    assert!(apps::runs(pid));
    floor.end().await;
}

#[tokio::test]
async fn the_apps_take_term_although_the_guard_does_not() {
    let app = apps::python(
        r#"
say("dispositions: %s" % [signal.getsignal(s) == signal.SIG_DFL
    for s in (signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD)])
say("blocked: %d" % len(signal.pthread_sigmask(signal.SIG_BLOCK, [])))
import resource
say("files: %d" % resource.getrlimit(resource.RLIMIT_NOFILE)[0])
say("open: " + " ".join(sorted(n for n in os.listdir("/proc/self/fd") if os.path.exists("/proc/self/fd/" + n))))
serve(listen())
"#,
    );
    let floor = Floor::with(app, |config| config.guard.soft_nofile = Some(77));
    floor.want(1).await;
    floor.until_ready(1).await;
    floor.until_told("open").await;
    let told = floor.told();
    // What we inherited ourselves, a child has too; nothing of ours comes on top.
    let list = Command::new("sh").args(["-c", "ls /proc/$$/fd"]).stdin(Stdio::null()).output();
    let list = String::from_utf8(list.unwrap().stdout).unwrap();
    let open = list.split_ascii_whitespace().filter(|fd| fd.parse::<u32>().is_ok());
    let mut open: Vec<&str> = open.collect();
    open.sort_unstable();
    for line in [
        "out: dispositions: [True, True, True]".to_owned(),
        "out: blocked: 0".to_owned(),
        "out: files: 77".to_owned(),
        format!("out: open: {}", open.join(" ")),
    ] {
        assert!(told.contains(&line), "{line} not in {told:#?}");
    }
    floor.end().await;
}

#[tokio::test]
async fn nothing_outlives_a_killed_zeroscale() {
    let dir = tempfile::tempdir().unwrap();
    let mut host = Command::new(env!("CARGO_BIN_EXE_platform-host"))
        .args(apps::python(WITH_DAEMON))
        .current_dir(dir.path())
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    let pid = apps::pid_in(&dir.path().join("pid")).await;
    let daemon = apps::pid_in(&dir.path().join("daemon")).await;
    let guard = guard_of(pid);
    assert!(apps::runs(guard) && apps::runs(pid) && apps::runs(daemon));
    host.kill().unwrap();
    host.wait().unwrap();
    support::eventually("the end of all", || ![guard, pid, daemon].into_iter().any(apps::runs)).await;
}

#[test]
fn nothing_outlives_a_dropped_runtime() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (pids, dir) = runtime.block_on(async {
        let floor = Floor::start(apps::python(WITH_DAEMON));
        floor.want(1).await;
        floor.until_ready(1).await;
        ([floor.pid_in("pid").await, floor.pid_in("daemon").await], floor.dir)
    });
    let guard = guard_of(pids[0]);
    drop(runtime);
    let other = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    other.block_on(support::eventually("the end of all", || ![pids[0], pids[1], guard].into_iter().any(apps::runs)));
    drop(dir);
}

#[tokio::test]
async fn a_guard_that_is_none_is_told() {
    let floor = Floor::with(apps::plain(), |config| {
        config.guard.program = "true".into();
    });
    floor.want(1).await;
    let view = floor.until("trouble", |view| view.trouble.is_some()).await;
    let text = &view.trouble.as_ref().unwrap().text;
    assert!(text.contains("guard"), "{text}");
    floor.end().await;
}
