//! The admin socket of a running instance, and `zeroscale status`.

mod support;

use rustix::process::Signal;
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use support::{World, finish, get, run, signal};

fn status(world: &World, arguments: &[&str]) -> (Option<i32>, String, String) {
    let arguments: Vec<&str> = ["status"].into_iter().chain(arguments.iter().copied()).collect();
    let (status, shown, faults) = finish(world.command(&arguments).spawn().unwrap());
    (status.code(), shown, faults)
}

#[test]
fn status_shows_each_instance_and_finds_one_by_name() {
    let world = World::new();
    let (shop, blog) = (run(&world, "shop"), run(&world, "blog"));
    assert_eq!(get(TcpStream::connect(&shop.address).unwrap(), "GET", "/").0, 200);

    let (code, shown, faults) = status(&world, &[]);
    assert_eq!((code, faults.as_str()), (Some(0), ""), "{shown}");
    for part in [&shop.address, &blog.address, "shop (default/shop-00001)", "1 wanted, 1 ready", "blog (", "0 wanted"] {
        assert!(shown.contains(part), "{part:?} is not in\n{shown}");
    }
    let (code, shown, _) = status(&world, &["shop"]);
    assert_eq!(code, Some(0));
    assert!(shown.contains("shop (") && !shown.contains("blog"), "{shown}");
    let (code, shown, faults) = status(&world, &["nobody"]);
    assert_eq!((code, shown.as_str()), (Some(1), ""));
    assert!(faults.contains("`nobody`"), "{faults}");

    let (code, shown, _) = status(&world, &["--json"]);
    assert_eq!(code, Some(0));
    let all: serde_json::Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(all.as_array().unwrap().len(), 2);
    let (_, shown, _) = status(&world, &["--json", "shop"]);
    let one: serde_json::Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(one[0]["revisions"][0]["ready"], 1);
    assert_eq!(one[0]["revisions"][0]["pods"][0]["phase"], "ready");

    for running in [shop, blog] {
        signal(&running.child, Signal::TERM);
        let (ended, _, log) = finish(running.child);
        assert!(ended.success(), "{ended}\n{log}");
        assert!(!running.socket.exists());
    }
    world.assert_no_process();
}

#[test]
fn without_an_instance_status_says_so_and_removes_what_is_stale() {
    let world = World::new();
    let said = |arguments: &[&str]| status(&world, arguments);
    let nothing = (Some(1), String::new(), "zeroscale: no instance is running\n".to_owned());
    assert_eq!(said(&[]), nothing);
    std::fs::create_dir(world.sockets()).unwrap();
    std::fs::set_permissions(world.sockets(), std::fs::Permissions::from_mode(0o700)).unwrap();
    let stale = world.sockets().join("1.sock");
    drop(UnixListener::bind(&stale).unwrap());
    assert_eq!(said(&["--json"]), (Some(1), "[]\n".to_owned(), nothing.2));
    assert!(!stale.exists());

    std::fs::set_permissions(world.sockets(), std::fs::Permissions::from_mode(0o777)).unwrap();
    let (code, _, faults) = said(&[]);
    assert_eq!(code, Some(1));
    assert!(faults.contains("can be opened by others"), "{faults}");
}

#[test]
fn the_socket_is_the_owners_and_tells_metrics_and_health() {
    let world = World::new();
    let running = run(&world, "shop");
    assert_eq!(get(TcpStream::connect(&running.address).unwrap(), "GET", "/").0, 200);
    assert_eq!(running.socket.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(world.sockets().metadata().unwrap().permissions().mode() & 0o777, 0o700);

    let ask = |method: &str, path: &str| get(UnixStream::connect(&running.socket).unwrap(), method, path);
    let (code, health) = ask("GET", "/healthz");
    assert_eq!(code, 200);
    assert!(health.ends_with("{\"ok\":true,\"wrong\":[]}\n"), "{health}");
    let (code, metrics) = ask("GET", "/metrics");
    assert_eq!(code, 200);
    for line in [
        "zeroscale_activator_wakes_total 1",
        "zeroscale_activator_cold_start_seconds_count{phase=\"total\"} 1",
        "zeroscale_activator_refusals_total{reason=\"no_route\"} 0",
        "phase=\"ready\"} 1",
        "zeroscale_oldest_held_age_seconds{revision=\"default/shop-00001\"} 0",
        "zeroscale_autoscaler_decisions_total{revision=\"default/shop-00001\"}",
    ] {
        assert!(metrics.contains(line), "{line:?} is not in\n{metrics}");
    }
    assert_eq!(ask("GET", "/nothing").0, 404);
    assert_eq!(ask("POST", "/status").0, 405);
    assert_eq!(ask("GET", "/status?x").0, 200);

    signal(&running.child, Signal::TERM);
    finish(running.child);
    world.assert_no_process();
}
