//! gRPC through the sidecar, with a stack that is not ours at both ends.

use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::process::{Child, Stdio};
use tests::apps::{RealApp, grpc_client};
use tests::lags::{Lags, tell};
use tests::program::Program;

/// What it takes until an app sees that a call is over: far below any limit of
/// a request, far above what a busy machine adds.
const SOON_MS: u64 = 5_000;

/// The sidecar in front of a gRPC app, as for a container port named `h2c`.
fn proxied(changes: &[(&str, &str)]) -> Option<(RealApp, Program)> {
    let app = RealApp::grpc()?;
    let program = Program::start(app.address, changes);
    Some((app, program))
}

fn client(address: SocketAddr, scenario: &str) -> Child {
    let mut command = grpc_client(address, scenario).expect("what runs the app runs the client");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts")
}

/// What a client has seen.
fn seen(address: SocketAddr, scenario: &str) -> Value {
    report(client(address, scenario), scenario)
}

fn report(client: Child, scenario: &str) -> Value {
    let output = client.wait_with_output().expect("it ends");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{scenario}: {text}");
    tell(&format!("grpc {scenario}: {}", text.trim()));
    serde_json::from_str(text.trim()).expect("it says what it saw")
}

fn lags(seen: &Value, which: &str) -> Lags {
    let mut lags = Lags::default();
    seen[which].as_array().expect("a list").iter().for_each(|lag| lags.add(lag.as_u64().unwrap_or(0)));
    lags
}

#[test]
fn unary_calls_and_streams_of_a_client() {
    let Some((_app, program)) = proxied(&[]) else { return };
    let unary = seen(program.main, "unary");
    assert_eq!((unary["good"].as_u64(), &unary["large"], &unary["empty"]), (Some(200), &true.into(), &true.into()));
    assert_eq!(seen(program.main, "parallel")["good"], 500);
    assert_eq!(seen(program.main, "client_stream")["sum"], 199 * 200 / 2);
}

#[test]
fn each_message_of_a_stream_is_passed_on_at_once() {
    let Some((_app, program)) = proxied(&[]) else { return };
    let stream = seen(program.main, "server_stream");
    assert_eq!(stream["code"], "OK");
    lags(&stream, "lags").judge("grpc, to the client", 10);
    let both = seen(program.main, "both_ways");
    assert_eq!(both["code"], "OK");
    lags(&both, "there").judge("grpc both ways, to the app", 10);
    lags(&both, "back").judge("grpc both ways, to the client", 10);
}

#[test]
fn a_status_of_the_app_arrives_with_and_without_messages_before_it() {
    let Some((_app, program)) = proxied(&[]) else { return };
    let refused = seen(program.main, "refused");
    assert_eq!(refused["code"], "FAILED_PRECONDITION");
    assert_eq!(refused["details"], "no: 100 % sure, señor");
    assert_eq!(refused["why"], "tests");
    let half = seen(program.main, "half");
    assert_eq!(half["messages"], serde_json::json!(["one", "two"]));
    assert_eq!((&half["code"], &half["details"]), (&"DATA_LOSS".into(), &"the rest is lost".into()));
}

#[test]
fn a_deadline_is_told_to_the_app_and_ends_the_call_there_too() {
    let Some((_app, program)) = proxied(&[("CONTAINER_CONCURRENCY", "2")]) else { return };
    let ended = seen(program.main, "deadline");
    assert_eq!(ended["code"], "DEADLINE_EXCEEDED");
    let told = ended["told"][0].as_u64().expect("the app knows the deadline");
    assert!(told <= 700, "{told}");
    assert!(ended["app_saw_after_ms"].as_u64().is_some_and(|ms| ms < SOON_MS), "{ended}");
}

#[test]
fn a_cancelled_call_is_cancelled_at_the_app() {
    let Some((_app, program)) = proxied(&[("CONTAINER_CONCURRENCY", "2")]) else { return };
    let ended = seen(program.main, "cancel");
    for when in ["silent_ms", "streaming_ms"] {
        assert!(ended[when].as_u64().is_some_and(|ms| ms < SOON_MS), "{ended}");
    }
}

#[test]
fn a_call_without_a_place_is_told_so_in_the_words_of_grpc() {
    let changes = [("CONTAINER_CONCURRENCY", "1"), ("ZEROSCALE_QUEUE_DEPTH", "1")];
    let Some((_app, program)) = proxied(&changes) else { return };
    let ended = seen(program.main, "crowd");
    assert_eq!(ended["code"], "UNAVAILABLE");
    assert_eq!(ended["details"], "pending request queue full");
    assert_eq!((&ended["reason"], &ended["retry_after"]), (&"queue_full".into(), &"1".into()));
    assert_eq!(ended["others"], serde_json::json!(["CANCELLED", "CANCELLED"]), "the others were unhurt");
}

#[test]
fn a_passed_limit_is_an_exceeded_deadline_and_an_app_that_is_down_is_unavailable() {
    let Some((_app, program)) = proxied(&[("REVISION_TIMEOUT_SECONDS", "1")]) else { return };
    let ended = seen(program.main, "hang");
    assert_eq!((&ended["code"], &ended["reason"]), (&"DEADLINE_EXCEEDED".into(), &"total_timeout".into()), "{ended}");
    assert_eq!(ended["details"], "request timeout");
    let down = Program::start((Ipv4Addr::LOCALHOST, 1).into(), &[("ZEROSCALE_CONNECT_RETRY", "0s")]);
    let ended = seen(down.main, "refused");
    assert_eq!((&ended["code"], &ended["reason"]), (&"UNAVAILABLE".into(), &"connect_failed".into()), "{ended}");
}

#[test]
fn a_stream_that_is_cut_does_not_look_whole() {
    let Some((_app, program)) = proxied(&[("REVISION_TIMEOUT_SECONDS", "1")]) else { return };
    let cut = seen(program.main, "stream_until_cut");
    assert_eq!((&cut["code"], &cut["reason"]), (&"DEADLINE_EXCEEDED".into(), &"total_timeout".into()), "{cut}");
    assert_eq!(cut["lengths"], serde_json::json!([50]), "whole messages and nothing of ours among them");
    assert!(cut["messages"].as_u64().is_some_and(|messages| messages >= 3), "{cut}");
}

#[tokio::test]
async fn a_stream_that_runs_outlives_the_drain_and_later_calls_are_served_or_may_be_tried_again() {
    let Some((_app, mut program)) = proxied(&[("ZEROSCALE_DRAIN_SETTLE", "700ms")]) else { return };
    let mut client = client(program.main, "drain");
    let mut output = BufReader::new(client.stdout.take().expect("a pipe"));
    let mut line = String::new();
    output.read_line(&mut line).expect("it says when it runs");
    program.terminate();
    client.stdin.take().expect("a pipe").write_all(b"\n").expect("it reads");
    line.clear();
    // The program must be waited for meanwhile: on a thread of its own.
    let reading = tokio::task::spawn_blocking(move || {
        output.read_line(&mut line).expect("it reports");
        line
    });
    assert_eq!(program.ended().await, 0);
    let line = reading.await.expect("it reports");
    tell(&format!("grpc drain: {}", line.trim()));
    assert!(client.wait().expect("it ends").success());
    let seen: Value = serde_json::from_str(&line).expect("it says what it saw");
    assert_eq!((&seen["stream"]["code"], &seen["stream"]["messages"]), (&"OK".into(), &10.into()));
    let late: Vec<&str> = seen["late"].as_array().expect("a list").iter().filter_map(Value::as_str).collect();
    assert!(late.contains(&"OK"), "served in the quiet time: {late:?}");
    assert!(late.iter().all(|&code| code == "OK" || code == "UNAVAILABLE"), "{late:?}");
}
