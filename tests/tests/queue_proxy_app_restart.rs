//! The app dies, and comes back or does not.

use std::net::SocketAddr;
use std::time::Duration;
use tests::program::Program;
use tests::rig::{GET, read_until, send};
use tests::sidecar::{h1, h2c, restart};
use tokio::net::TcpListener;
use tokio::time::Instant;

#[tokio::test]
async fn an_app_that_comes_back_within_two_seconds_costs_only_what_it_took_along() {
    let (without, with) = tokio::join!(restart::run(0), restart::run(20));
    without.unwrap().assert();
    with.unwrap().assert();
}

/// Nobody listens there.
async fn nowhere() -> SocketAddr {
    let listener = TcpListener::bind("127.9.9.9:0").await.unwrap();
    listener.local_addr().unwrap()
}

/// How long a request to an app that is not there took.
async fn given_up(program: &Program, request: &str) -> Duration {
    let began = Instant::now();
    let answer = h1::ask(program.main, request.as_bytes()).await.unwrap();
    assert_eq!((answer.status, answer.field("x-zeroscale-reason")), (502, "connect_failed"));
    began.elapsed()
}

#[tokio::test]
async fn an_app_that_does_not_come_back_is_tried_again_for_as_long_as_is_set() {
    let post = "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\n\r\nhello";
    let with_default = Program::start(nowhere().await, &[]);
    let short = Program::start(nowhere().await, &[("ZEROSCALE_CONNECT_RETRY", "500ms")]);
    let strict = Program::start(nowhere().await, &[("ZEROSCALE_COMPAT", "strict")]);
    let off = Program::start(nowhere().await, &[("ZEROSCALE_CONNECT_RETRY", "0s")]);
    let (long, half, none) = tokio::join!(given_up(&with_default, post), given_up(&short, GET), given_up(&off, post),);
    let near = |took: Duration, from: u64, to: u64| (u128::from(from)..u128::from(to)).contains(&took.as_millis());
    assert!(near(long, 2500, 4500), "by default for 3 s: {long:?}");
    assert!(near(half, 400, 1500), "{half:?}");
    assert!(near(none, 0, 300), "{none:?}");
    let began = Instant::now();
    let answer = read_until(&mut send(strict.main, GET).await, "\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 502"), "{answer}");
    assert!(near(began.elapsed(), 0, 300), "not in strict mode: {:?}", began.elapsed());
}

#[tokio::test]
async fn over_http2_the_app_is_tried_again_as_well() {
    let program = Program::start(nowhere().await, &[("ZEROSCALE_CONNECT_RETRY", "500ms")]);
    let client = h2c::Client::open(program.main).await.unwrap();
    let began = Instant::now();
    let answer = client.ask(h2c::request("GET", "/")).await.unwrap();
    assert_eq!((answer.status, answer.field("x-zeroscale-reason")), (502, "connect_failed"));
    assert!((400..1500).contains(&began.elapsed().as_millis()), "{:?}", began.elapsed());
}

#[tokio::test]
async fn a_client_that_leaves_while_the_app_is_tried_gives_its_slot_back() {
    let changes = [("CONTAINER_CONCURRENCY", "1"), ("ZEROSCALE_CONNECT_RETRY", "10s")];
    let program = Program::start(nowhere().await, &changes);
    let first = send(program.main, GET).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    // It has the only slot: an offer finds none free ...
    let offer = "GET / HTTP/1.1\r\nhost: a\r\nx-zeroscale-offer: 0011223344556677\r\n\r\n";
    let answer = h1::ask(program.main, offer.as_bytes()).await.unwrap();
    assert!(answer.field("x-zeroscale-handback").starts_with("0011223344556677 full"), "{answer:?}");
    drop(first);
    // ... until it has left.
    let began = Instant::now();
    loop {
        let answer = h1::ask(program.main, offer.as_bytes()).await.unwrap();
        if answer.field("x-zeroscale-handback").starts_with("0011223344556677 not-sent") {
            break;
        }
        assert!(began.elapsed() < Duration::from_secs(3), "{answer:?}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
