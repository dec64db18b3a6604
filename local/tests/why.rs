//! `zeroscale why`, asked of running instances.

mod support;

use autoscaler::why::time;
use policy::moment::Moment;
use rustix::process::Signal;
use std::net::TcpStream;
use support::{World, finish, get, run, signal, until};

fn why(world: &World, arguments: &[&str]) -> (Option<i32>, String, String) {
    let arguments: Vec<&str> = ["why"].into_iter().chain(arguments.iter().copied()).collect();
    let (status, shown, faults) = finish(world.command(&arguments).spawn().unwrap());
    (status.code(), shown, faults)
}

fn json(world: &World, arguments: &[&str]) -> serde_json::Value {
    let arguments: Vec<&str> = arguments.iter().copied().chain(["--json"]).collect();
    let (code, shown, faults) = why(world, &arguments);
    assert_eq!(code, Some(0), "{faults}");
    serde_json::from_str(&shown).unwrap()
}

#[test]
fn why_tells_what_stands_and_what_stood() {
    let world = World::new();
    let (shop, blog) = (run(&world, "shop"), run(&world, "blog"));
    // The first decision of all: nothing is wanted.
    until("it has decided", || json(&world, &["shop"])[0]["decision"]["wanted"] == 0);
    let at_zero = json(&world, &["shop"]);
    assert_eq!(at_zero[0]["changes"]["list"][0]["words"], "the first request, at once: 1 pod");
    let began = at_zero[0]["history_since"].as_f64().unwrap();
    assert_eq!(get(TcpStream::connect(&shop.address).unwrap(), "GET", "/").0, 200);
    until("a pod is ordered", || json(&world, &["default/shop-00001"])[0]["decision"]["wanted"] == 1);

    let (code, shown, faults) = why(&world, &["shop"]);
    assert_eq!((code, faults.as_str()), (Some(0), ""), "{shown}");
    for part in [
        "shop (default/shop-00001), ",
        ": 1 pod, through the activator",
        "a pod should carry 70 (70 % of 100)",
        " over 60 s / 70 = ",
    ] {
        assert!(shown.contains(part), "{part:?} is not in\n{shown}");
    }
    for row in ["decided", "mode", "pods", "wish", "limits", "order", "changes", "before", "history"] {
        assert!(shown.lines().any(|line| line.trim_start().starts_with(row)), "{row:?} is not in\n{shown}");
    }
    assert!(!shown.contains("blog"), "{shown}");

    // What stood when it began: nothing, and then a pod.
    let then = time::rfc3339(Moment::from_unix_millis((began * 1000.0) as i64));
    let stood = json(&world, &["shop", "--at", &then]);
    assert_eq!(stood[0]["decision"]["wanted"], 0);
    assert_eq!(stood[0]["inputs"], serde_json::Value::Null);
    assert!(stood[0]["after"]["from"].as_f64().unwrap() > began);

    let (code, shown, faults) = why(&world, &["shpo"]);
    assert_eq!((code, shown.as_str()), (Some(1), ""));
    assert!(faults.contains("no service or revision is called `shpo`; there is shop"), "{faults}");
    let (code, _, faults) = why(&world, &["shop", "--at", "-2h"]);
    assert_eq!(code, Some(1));
    assert!(faults.contains(&format!("the history of default/shop-00001 begins at {then}")), "{faults}");
    let (code, _, faults) = why(&world, &["shop", "--at", "soon"]);
    assert_eq!(code, Some(64));
    assert!(faults.contains("--at: `soon` is no time: give "), "{faults}");

    for running in [shop, blog] {
        signal(&running.child, Signal::TERM);
        assert!(finish(running.child).0.success());
    }
    let (code, _, faults) = why(&world, &["shop"]);
    assert_eq!(code, Some(1));
    assert!(faults.contains("no instance is running"), "{faults}");
    let (code, _, faults) = why(&world, &["shop", "--admin", "127.0.0.1:1"]);
    assert_eq!(code, Some(1));
    assert!(faults.contains("127.0.0.1:1: cannot be reached"), "{faults}");
    world.assert_no_process();
}
