//! The shipped binary's manners: exit codes, messages, signals (rules,
//! sections 7 and 8).

use rustix::process::Signal;
use std::net::TcpListener;
use tests::floor::client::Ask;
use tests::floor::instance::{Ended, run_to_end};
use tests::floor::{Instance, TestApp, until};
use tokio::task::JoinHandle;

/// Lines of our own, without what the log says.
fn lines(ended: &Ended) -> Vec<&str> {
    ended.stderr.lines().filter(|line| line.starts_with("zeroscale: ")).collect()
}

#[tokio::test]
async fn all_faults_of_the_flags_are_told_together_each_naming_its_flag() {
    let faulty = ["run", "--min-scale", "5", "--max-scale", "2", "--window", "1s", "--name", "No Name", "--", "true"];
    let ended = run_to_end(&faulty).await.unwrap();
    assert_eq!(ended.code, Some(64), "{}", ended.stderr);
    let told = lines(&ended);
    for flag in ["--min-scale: ", "--window: ", "--name: "] {
        assert_eq!(told.iter().filter(|line| line.contains(flag)).count(), 1, "{flag} in {}", ended.stderr);
    }
    assert_eq!(told.len(), ended.stderr.lines().count(), "and nothing else: {}", ended.stderr);
}

#[tokio::test]
async fn each_bad_flag_is_a_usage_error_that_names_it() {
    let cases: [(&str, &[&str]); 8] = [
        ("--window", &["run", "--window", "soon", "--", "true"]),
        ("--listen", &["run", "--listen", "nowhere", "--", "true"]),
        ("--target", &["run", "--container-concurrency", "1", "--target", "2", "--", "true"]),
        ("--target", &["run", "--target", "NaN", "--", "true"]),
        ("--readiness-path", &["run", "--readiness-path", "ready", "--", "true"]),
        ("--log-level", &["run", "--log-level", "loud", "--", "true"]),
        ("--nonsense", &["run", "--nonsense", "--", "true"]),
        ("COMMAND", &["run", "--window", "6s"]),
    ];
    for (flag, arguments) in cases {
        let ended = run_to_end(arguments).await.unwrap();
        assert_eq!(ended.code, Some(64), "{arguments:?}: {}", ended.stderr);
        assert!(ended.stderr.contains(flag), "{arguments:?}: {}", ended.stderr);
    }
}

#[tokio::test]
async fn a_taken_port_is_named_and_nothing_is_started() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let app = TestApp::new("").unwrap();
    let program = app.command[0].to_str().unwrap();
    let journal = app.command[2].to_str().unwrap();
    // With a lower bound, a pod would be started before any request.
    let ended =
        run_to_end(&["run", "--listen", &address, "--min-scale", "1", "--", program, "--log", journal]).await.unwrap();
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    let told = lines(&ended);
    assert!(told.len() == 1 && told[0].contains(&address) && told[0].contains("in use"), "{}", ended.stderr);
    assert_eq!(app.sightings().0, [], "no app was started");
}

/// An instance with a request inside its app.
async fn busy() -> (Instance, TestApp, JoinHandle<bool>) {
    let app = TestApp::new("").unwrap();
    let instance = Instance::start("--window 6s", &app.command).await.unwrap();
    let address = instance.address;
    let request = tokio::spawn(async move {
        let ask = Ask::get("long").path("/stream/1500");
        ask.send(address).await.is_ok_and(|answer| answer.is_good())
    });
    until("the app has it", async || app.sightings().of("begin").count() == 1).await.unwrap();
    (instance, app, request)
}

#[tokio::test]
async fn term_lets_requests_finish_and_ends_with_0() {
    let (mut instance, _app, request) = busy().await;
    instance.signal(Signal::TERM).unwrap();
    let ended = instance.ended().await.unwrap();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(request.await.unwrap(), "the request ended whole: {}", ended.stderr);
    assert_eq!(instance.processes(), []);
    assert!(TcpListener::bind(instance.address).is_ok(), "its port is free");
    assert!(!instance.file("zeroscale").join(format!("{}.sock", instance.pid())).exists(), "its socket is gone");
}

#[tokio::test]
async fn int_ends_with_130_and_a_second_one_at_once() {
    let (mut instance, _app, request) = busy().await;
    instance.signal(Signal::INT).unwrap();
    let ended = instance.ended().await.unwrap();
    assert_eq!(ended.code, Some(130), "{}", ended.stderr);
    assert!(request.await.unwrap(), "the request ended whole: {}", ended.stderr);
    assert_eq!(instance.processes(), []);

    let (mut instance, _app, request) = busy().await;
    instance.signal(Signal::INT).unwrap();
    until("it ends", async || std::net::TcpStream::connect(instance.address).is_err()).await.unwrap();
    instance.signal(Signal::INT).unwrap();
    let ended = instance.ended().await.unwrap();
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    assert!(!request.await.unwrap(), "the request was cut off");
    instance.until_nothing_is_left().await.unwrap();
}

#[tokio::test]
async fn requests_are_not_waited_for_beyond_the_shutdown_timeout() {
    let app = TestApp::new("").unwrap();
    let mut instance = Instance::start("--window 6s --shutdown-timeout 200ms", &app.command).await.unwrap();
    let address = instance.address;
    let request = tokio::spawn(async move { Ask::get("long").path("/stream/60000").send(address).await });
    until("the app has it", async || app.sightings().of("begin").count() == 1).await.unwrap();
    instance.signal(Signal::TERM).unwrap();
    let ended = instance.ended().await.unwrap();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(!request.await.unwrap().is_ok_and(|answer| answer.is_good()), "the request was cut off, and shows it");
    assert_eq!(instance.processes(), []);
}
