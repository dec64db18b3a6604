//! Starts that fail: told truly, tried again, and healed.

mod support;

use platform::process::{Config, Readiness};
use policy::world::{PodPhase, Trouble, TroubleKind};
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};
use support::{Floor, apps, command};

async fn trouble(floor: &Floor) -> Trouble {
    let view = floor.until("trouble", |view| view.trouble.is_some()).await;
    view.trouble.clone().unwrap()
}

fn quick(config: &mut Config) {
    config.backoff.first = Duration::from_millis(5);
    config.backoff.cap = Duration::from_millis(40);
}

#[tokio::test]
async fn a_missing_command_is_told_at_once() {
    let floor = Floor::start(command(&["no-such-command-here", "--port={port}"]));
    let mut took = Vec::new();
    for _ in 0..5 {
        let asked = Instant::now();
        floor.want(1).await;
        let trouble = trouble(&floor).await;
        took.push(asked.elapsed());
        assert_eq!(trouble.kind, TroubleKind::StartFailed);
        assert!(trouble.text.contains("`no-such-command-here --port="), "{}", trouble.text);
        assert!(trouble.text.contains("No such file"), "{}", trouble.text);
        assert_eq!(floor.view().pods[0].phase, PodPhase::Starting);
        floor.want(0).await;
        let after = floor.until("no trouble at zero", |view| view.trouble.is_none()).await;
        assert_eq!(after.ready_pods().count(), 0);
        floor.until_ready(0).await;
    }
    took.sort();
    println!("told after {took:?}");
    assert!(took[2] < Duration::from_millis(100), "{took:?}");
    floor.end().await;
}

#[tokio::test]
async fn what_cannot_be_run_is_told_by_its_reason() {
    let dir = tempfile::tempdir().unwrap();
    let script = |name: &str, text: &str, mode: u32| {
        let file = dir.path().join(name);
        std::fs::write(&file, text).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
        file.to_str().unwrap().to_owned()
    };
    let plain = script("plain", "#!/bin/sh\n", 0o644);
    let headless = script("headless", "#!/no/such/interpreter\n", 0o755);
    let cases = [(plain, "Permission denied"), (headless, "the interpreter that it names is not")];
    for (program, reason) in cases {
        let floor = Floor::start(command(&[&program]));
        floor.want(1).await;
        let text = trouble(&floor).await.text;
        assert!(text.contains(&program) && text.contains(reason), "{text}");
        floor.end().await;
    }
    let floor = Floor::with(command(&["true"]), |config| {
        config.services[0].cwd = Some("/no/such/folder".into());
    });
    floor.want(1).await;
    let text = trouble(&floor).await.text;
    assert!(text.contains("no directory /no/such/folder"), "{text}");
    floor.end().await;
    let long = "x".repeat(200_000);
    let floor = Floor::start(command(&["true", &long]));
    floor.want(1).await;
    let text = trouble(&floor).await.text;
    assert!(text.contains("more than 131072"), "{text}");
    floor.end().await;
}

#[tokio::test]
async fn three_crashes_in_a_row_are_trouble_with_the_last_words() {
    let app = command(&["sh", "-c", "echo first >&2; echo cannot find my database >&2; exit 7"]);
    let floor = Floor::with(app, quick);
    floor.want(1).await;
    let trouble = trouble(&floor).await;
    println!("{}", trouble.text);
    assert_eq!(trouble.kind, TroubleKind::StartFailed);
    for part in ["`sh -c ", "ended with code 7", "cannot find my database", "3 times in a row"] {
        assert!(trouble.text.contains(part), "{part} not in {}", trouble.text);
    }
    let later = floor
        .until("further attempts", |view| {
            view.trouble.as_ref().is_some_and(|trouble| trouble.text.contains("(5 times"))
        })
        .await;
    assert_eq!(later.trouble.as_ref().map(|later| later.since), Some(trouble.since));
    floor.end().await;
}

#[tokio::test]
async fn a_signal_is_told_by_its_name() {
    let floor = Floor::with(command(&["sh", "-c", "kill -SEGV $$"]), quick);
    floor.want(1).await;
    let text = trouble(&floor).await.text;
    assert!(text.contains("signal 11 (SEGV)"), "{text}");
    floor.end().await;
}

#[tokio::test]
async fn an_app_that_never_listens_is_stopped_and_tried_again() {
    let app =
        apps::python(r#"note_pid("pid"); print("still warming up", file=sys.stderr, flush=True); time.sleep(1000)"#);
    let floor = Floor::with(app, |config| {
        quick(config);
        config.services[0].start_timeout = Duration::from_millis(300);
    });
    floor.want(1).await;
    let pid = floor.pid_in("pid").await;
    let trouble = trouble(&floor).await;
    println!("{}", trouble.text);
    assert_eq!(trouble.kind, TroubleKind::StartTimeout);
    for part in ["did not open port", "within 300ms", "refused", "still warming up"] {
        assert!(trouble.text.contains(part), "{part} not in {}", trouble.text);
    }
    apps::until_gone(&[pid]).await;
    let file = floor.dir.path().join("pid");
    support::eventually("another attempt", || std::fs::read_to_string(&file).is_ok_and(|text| text != pid.to_string()))
        .await;
    floor.end().await;
}

#[tokio::test]
async fn an_app_that_never_answers_well_is_told_by_its_status() {
    let app = apps::python(
        r#"
server = listen()
while True:
    connection, _ = server.accept()
    connection.recv(4096)
    connection.sendall(b"HTTP/1.1 503 Not now\r\n\r\n")
    connection.close()
"#,
    );
    let floor = Floor::with(app, |config| {
        config.services[0].readiness = Readiness::Http("/ready".into());
        config.services[0].start_timeout = Duration::from_millis(500);
    });
    floor.want(1).await;
    let text = trouble(&floor).await.text;
    assert!(text.contains("GET /ready") && text.contains("status 503"), "{text}");
    floor.end().await;
}

#[tokio::test]
async fn a_mended_app_heals_without_being_asked() {
    let floor = Floor::with(command(&["./app", "{port}"]), quick);
    floor.want(1).await;
    trouble(&floor).await;
    let program = apps::plain();
    let quoted: Vec<String> = program[..program.len() - 1]
        .iter()
        .map(|word| format!("'{}'", word.to_str().unwrap().replace('\'', r"'\''")))
        .collect();
    let file = floor.dir.path().join("app.new");
    std::fs::write(&file, format!("#!/bin/sh\nexec {} \"$1\"\n", quoted.join(" "))).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
    std::fs::rename(&file, floor.dir.path().join("app")).unwrap();
    floor.until_ready(1).await;
    assert_eq!(floor.view().trouble, None);
    floor.end().await;
}

#[tokio::test]
async fn a_configuration_of_no_use_is_refused() {
    let cases: [fn(&mut Config); 4] = [
        |config| config.services[0].command.clear(),
        |config| config.services.push(config.services[0].clone()),
        |config| config.services[0].readiness = Readiness::Http("a b".into()),
        |config| config.guard.program = "/no/such/guard".into(),
    ];
    for change in cases {
        let service = platform::process::Service::new(support::web(), support::spec(), command(&["true"]));
        let mut config = Config::new(vec![service], Default::default(), support::guard());
        change(&mut config);
        let links = platform::process::Links {
            seats: tokio::sync::mpsc::channel(1).0,
            holding: tokio::sync::watch::channel(Default::default()).1,
            now: || policy::moment::Moment::MIN,
        };
        let shutdown = tokio_util::sync::CancellationToken::new();
        let error = platform::process::start(config, links, shutdown).unwrap_err();
        println!("{error}");
    }
}

#[tokio::test]
async fn without_sidecars_no_pod_becomes_ready() {
    let service = platform::process::Service::new(support::web(), support::spec(), apps::plain());
    let mut config = Config::new(vec![service], Default::default(), support::guard());
    config.services[0].initial = 1;
    let links = platform::process::Links {
        seats: tokio::sync::mpsc::channel(1).0,
        holding: tokio::sync::watch::channel(Default::default()).1,
        now: || policy::moment::Moment::MIN,
    };
    let shutdown = tokio_util::sync::CancellationToken::new();
    let mut platform = platform::process::start(config, links, shutdown.clone()).unwrap();
    let seen = platform.world.wait_for(|world| world.revisions[&support::web()].trouble.is_some());
    let world = tokio::time::timeout(support::DEADLINE, seen).await.unwrap().unwrap().clone();
    let view = &world.revisions[&support::web()];
    assert!(view.trouble.as_ref().unwrap().text.contains("sidecar"), "{:?}", view.trouble);
    assert_eq!(view.pods[0].phase, PodPhase::Starting);
    shutdown.cancel();
    platform.ended.await.unwrap();
}
