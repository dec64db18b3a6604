//! `zeroscale demo`, as a person without a terminal sees it.

mod support;

use rustix::process::Signal;
use support::{World, finish, signal, until};

#[test]
fn the_demo_goes_from_zero_up_and_back_to_zero_and_loses_nothing() {
    let world = World::new();
    let child = world.command(&["demo", "--load", "6s"]).spawn().unwrap();
    let (status, shown, faults) = finish(child);
    let last = shown.lines().last().unwrap_or_default();
    assert!(status.success(), "{status}\n{shown}\n{faults}");
    assert_eq!(faults, "");
    let words: Vec<&str> = last.split([' ', ',']).filter(|word| !word.is_empty()).collect();
    let ["1170", "requests", "0", "lost", "peak", peak, "pods", "zero", "again", "after", seconds, "s"] = words[..]
    else {
        panic!("the last line is {last:?} after\n{shown}");
    };
    assert!(peak.parse::<u32>().unwrap() >= 2, "{last}");
    assert!(seconds.parse::<f64>().unwrap() < 20.0, "{last}");
    // A line a second, and no way to move a cursor that is not there.
    assert!(shown.lines().filter(|line| line.contains("/s offered")).count() >= 8, "{shown}");
    assert!(!shown.contains('\x1b'));
    assert!(shown.contains("first wake "), "{shown}");
    world.assert_no_process();
    assert_eq!(std::fs::read_dir(world.sockets()).unwrap().count(), 0, "the admin socket is gone");
}

#[test]
fn an_interrupted_demo_leaves_no_process_and_exits_130() {
    let world = World::new();
    let child = world.command(&["demo", "--load", "60s"]).spawn().unwrap();
    until("a sample app runs", || world.processes().iter().any(|words| words.contains("__sample-app")));
    signal(&child, Signal::INT);
    let (status, shown, _) = finish(child);
    assert_eq!(status.code(), Some(130), "{shown}");
    world.assert_no_process();
}

#[test]
fn a_load_of_no_time_is_refused() {
    let world = World::new();
    let child = world.command(&["demo", "--load", "0s"]).spawn().unwrap();
    let (status, _, faults) = finish(child);
    assert_eq!(status.code(), Some(64));
    assert!(faults.contains("--load"), "{faults}");
}
