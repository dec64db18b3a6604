//! What bounds a request that waits, which limit fires, and what is said.

use policy::compat::Compat;
use policy::world::{Path, PodPhase, Trouble, TroubleKind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tests::bench::{Bench, EPOCH, bench};
use tests::rig::{
    GET, Gate, OK, PATIENCE, Running, app, gated_app, read_head, read_until, send, sidecar, sidecar_config, until,
};
use tokio::io::AsyncWriteExt;
use tokio::time::{Instant, sleep, timeout};

/// The seconds, a fifth as long.
const SECOND: Duration = Duration::from_millis(200);

/// An app that takes 2 s to answer; its sidecar's first-byte limit is 3 s.
async fn slow_pod(compat: Compat) -> Running {
    let slow = app(|mut stream| async move {
        if !read_head(&mut stream).await.is_empty() {
            sleep(2 * SECOND).await;
            let _ = stream.write_all(OK).await;
        }
    })
    .await;
    let mut config = sidecar_config(slow, 1);
    config.timeouts.response_start = Some(3 * SECOND);
    config.compat = compat;
    sidecar(config).await
}

async fn started_late(change: impl FnOnce(&mut activator::Config), compat: Compat) -> (String, Duration, Bench) {
    let pod = slow_pod(compat).await;
    let mut bench = bench(1, change).await;
    bench.spec.timeouts.response_start = Some(3 * SECOND);
    bench.publish(&[], Path::Activator, None).await;
    let began = Instant::now();
    let mut client = send(bench.address, GET).await;
    until("it is held", || bench.held() == 1).await;
    sleep(2 * SECOND).await;
    bench.ready(&[("p", pod.address)]).await;
    let answer = read_until(&mut client, "\r\n\r\n").await;
    (answer, began.elapsed(), bench)
}

#[tokio::test]
async fn the_wait_for_a_start_is_not_charged_to_the_apps_limits() {
    let (answer, took, _bench) = started_late(|_| {}, Compat::Better).await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(took >= 4 * SECOND, "{took:?}");
    let timing = answer.lines().find_map(|line| line.strip_prefix("server-timing: ")).expect("phases are shown");
    let phases: Vec<(&str, f64)> = timing
        .split(", ")
        .map(|part| part.split_once(";dur=").map(|(name, span)| (name, span.parse().unwrap())).unwrap())
        .collect();
    let names: Vec<&str> = phases.iter().map(|phase| phase.0).collect();
    let all = ["wake_signal", "wake_order", "wake_start", "wake_ready", "wake_connect", "wake_first_byte"];
    assert_eq!(names, all);
    let answered = phases[5].1;
    assert!((2.0 * 200.0..2.0 * 200.0 + 5000.0).contains(&answered), "the app took two seconds: {timing}");
    let total: f64 = phases.iter().map(|phase| phase.1).sum();
    assert!(total / 1000.0 <= took.as_secs_f64(), "no more than the client saw: {timing}, {took:?}");
}

#[tokio::test]
async fn in_strict_mode_or_by_its_own_setting_the_wait_is_charged_and_the_limit_named() {
    let strict = started_late(|config| config.compat = Compat::Strict, Compat::Strict).await;
    let alone = started_late(|config| config.charge_wait = true, Compat::Better).await;
    for (answer, took, _bench) in [&strict, &alone] {
        assert!(answer.starts_with("HTTP/1.1 504"), "{answer}");
        assert!(answer.contains("x-zeroscale-reason: first_byte_timeout"), "{answer}");
        assert!(*took >= 3 * SECOND, "{took:?}");
    }
    assert!(read_to_text(&strict.0).is_some_and(|text| text.starts_with("activator request timeout")), "{}", strict.0);
}

fn read_to_text(answer: &str) -> Option<&str> {
    answer.split_once("\r\n\r\n").map(|parts| parts.1)
}

#[tokio::test]
async fn each_limit_has_its_name() {
    let gate = Gate::default();
    let pod = sidecar(sidecar_config(gated_app(&gate).await, 1)).await;
    let mut bench = bench(1, |config| config.wait_max = SECOND).await;
    let wait = read_until(&mut send(bench.address, GET).await, "wait limit\n").await;
    assert!(wait.contains("wait_timeout") && wait.contains("no instance became ready within"), "{wait}");
    // The sidecar in this test has none of these limits: ours fire, a little later.
    for name in ["first_byte_timeout", "total_timeout", "idle_timeout"] {
        bench.spec.timeouts = tests::rig::long_timeouts();
        match name {
            "first_byte_timeout" => bench.spec.timeouts.response_start = Some(SECOND),
            "idle_timeout" => bench.spec.timeouts.idle = Some(SECOND),
            _ => bench.spec.timeouts.total = SECOND,
        }
        bench.ready(&[("p", pod.address)]).await;
        let answer = read_until(&mut send(bench.address, GET).await, "timeout").await;
        assert!(answer.starts_with("HTTP/1.1 504") && answer.contains(name), "{name}: {answer}");
        until("the slot is free", || bench.in_flight() == 0).await;
    }
}

#[tokio::test]
async fn those_who_are_refused_are_told_when_it_is_likely_to_be_up() {
    let gate = Gate::default();
    let pod = sidecar(sidecar_config(gated_app(&gate).await, 1)).await;
    let bench = bench(1, |config| config.held_per_revision_max = 1).await;
    let refused = async || read_until(&mut send(bench.address, GET).await, "full\n").await;
    // A first wake-up of more than a second.
    let mut first = send(bench.address, GET).await;
    until("it is held", || bench.held() == 1).await;
    assert!(refused().await.contains("retry-after: 1\r\n"));
    sleep(Duration::from_millis(1500)).await;
    assert!(refused().await.contains("retry-after: 2\r\n"), "longer than ever: as long again");
    gate.open.notify_one();
    bench.ready(&[("p", pod.address)]).await;
    assert!(read_until(&mut first, "ok").await.starts_with("HTTP/1.1 200"));
    // The next one is expected to take as long.
    bench.publish(&[], Path::Activator, None).await;
    let _second = send(bench.address, GET).await;
    until("it is held", || bench.held() == 1).await;
    let answer = refused().await;
    assert!(answer.starts_with("HTTP/1.1 503") && answer.contains("queue_full"), "{answer}");
    assert!(answer.contains("retry-after: 2\r\n"), "{answer}");
}

#[tokio::test]
async fn bodies_of_one_revision_have_a_bound_of_their_own() {
    let bench = bench(1, |config| config.held_bytes_per_revision_max = 20_000).await;
    let request = format!("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 12000\r\n\r\n{}", "x".repeat(12_000));
    let mut first = send(bench.address, &request).await;
    until("it is held", || bench.held() == 1).await;
    let refused = read_until(&mut send(bench.address, &request).await, "\r\n\r\n").await;
    assert!(refused.starts_with("HTTP/1.1 503") && refused.contains("held_bytes_full"), "{refused}");
    assert_eq!(bench.held(), 1);
    assert!(timeout(Duration::from_millis(50), tokio::io::AsyncReadExt::read(&mut first, &mut [0])).await.is_err());
}

fn trouble(text: &str) -> Option<Trouble> {
    Some(Trouble { kind: TroubleKind::StartFailed, text: text.into(), since: EPOCH })
}

#[tokio::test]
async fn while_starts_fail_one_request_at_a_time_tries_again() {
    let gate = Gate::default();
    let pod = sidecar(sidecar_config(gated_app(&gate).await, 1)).await;
    let bench = bench(1, |_| {}).await;
    bench.publish(&[], Path::Activator, trouble("first")).await;
    let refused = async |text: &str| {
        let answer = read_until(&mut send(bench.address, GET).await, text).await;
        assert!(answer.starts_with("HTTP/1.1 503") && answer.contains("start_failed"), "{answer}");
        assert!(answer.contains(text), "{answer}");
    };
    refused("first").await;
    let try_again = async || {
        let began = Instant::now();
        loop {
            assert!(began.elapsed() < PATIENCE, "somebody may try again");
            let mut client = send(bench.address, GET).await;
            match timeout(Duration::from_millis(300), read_until(&mut client, "\r\n\r\n")).await {
                Ok(answer) => assert!(answer.contains("start_failed"), "{answer}"),
                Err(_) => return client,
            }
        }
    };
    let mut held = try_again().await;
    assert_eq!(bench.held(), 1);
    refused("first").await;
    bench.publish(&[("p", pod.address, PodPhase::Starting)], Path::Activator, trouble("first")).await;
    assert_eq!(bench.held(), 1, "the same again is no news");
    bench.publish(&[], Path::Activator, trouble("second")).await;
    assert!(read_until(&mut held, "second").await.starts_with("HTTP/1.1 503"));
    refused("second").await;
    let mut held = try_again().await;
    gate.open.notify_one();
    bench.ready(&[("p", pod.address)]).await;
    assert!(read_until(&mut held, "\r\n\r\nok").await.starts_with("HTTP/1.1 200"));
}

#[tokio::test]
async fn a_caller_wakes_no_more_than_it_may() {
    let seen = Arc::new(AtomicUsize::new(0));
    let count = seen.clone();
    let quick = app(move |mut stream| {
        let count = count.clone();
        async move {
            while !read_head(&mut stream).await.is_empty() {
                count.fetch_add(1, Ordering::SeqCst);
                stream.write_all(OK).await.unwrap();
            }
        }
    })
    .await;
    let pod = sidecar(sidecar_config(quick, 0)).await;
    let bench = bench(0, |config| config.wakes_per_caller_max = Some(3)).await;
    let (mut served, mut limited) = (0, 0);
    for _ in 0..8 {
        bench.publish(&[], Path::Activator, None).await;
        let mut client = send(bench.address, GET).await;
        let wakes = async { until("it is held", || bench.held() == 1).await };
        tokio::select! {
            () = wakes => {
                bench.ready(&[("p", pod.address)]).await;
                assert!(read_until(&mut client, "ok").await.starts_with("HTTP/1.1 200"));
                // Awake: as many as they like.
                for _ in 0..10 {
                    assert!(read_until(&mut send(bench.address, GET).await, "ok").await.starts_with("HTTP/1.1 200"));
                }
                served += 1;
            }
            answer = read_head(&mut client) => {
                let ours = answer.starts_with("HTTP/1.1 429") && answer.contains("wake_limited");
                assert!(ours && answer.contains("retry-after: "), "{answer}");
                limited += 1;
            }
        }
    }
    assert!(served >= 3 && limited >= 1, "{served} served, {limited} refused");
}
