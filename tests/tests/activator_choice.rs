//! Which pod a request goes to, and where it goes when that pod fails.

use activator::Cluster;
use plumbing::trust::Trust;
use policy::compat::Compat;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tests::bench::bench;
use tests::rig::{
    GET, Gate, OK, PATIENCE, Running, app, gated_app, read_head, read_until, send, sidecar, sidecar_config, until,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::time::timeout;

const POST: &str = "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 2\r\n\r\nhi";

/// An address that nobody listens on.
async fn nobody() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap()
}

/// An app that answers at once and counts.
async fn quick(seen: &Arc<AtomicUsize>) -> SocketAddr {
    let seen = seen.clone();
    app(move |mut stream| {
        let seen = seen.clone();
        async move {
            loop {
                let head = read_head(&mut stream).await;
                if head.is_empty() {
                    return;
                }
                if head.contains("content-length: 2") {
                    stream.read_exact(&mut [0; 2]).await.unwrap();
                }
                seen.fetch_add(1, Ordering::SeqCst);
                if stream.write_all(OK).await.is_err() {
                    return;
                }
            }
        }
    })
    .await
}

async fn quick_pod(seen: &Arc<AtomicUsize>, limit: u32) -> Running {
    sidecar(sidecar_config(quick(seen).await, limit)).await
}

#[tokio::test]
async fn what_a_pod_did_not_get_goes_to_another_whatever_it_is_and_the_pod_is_passed_over() {
    let seen = Arc::new(AtomicUsize::new(0));
    let pod = quick_pod(&seen, 10).await;
    // Its sidecar is gone; the first pod in the order, and so chosen first.
    let bench = bench(2, |_| {}).await;
    let gone = quick_pod(&Arc::default(), 10).await;
    bench.ready(&[("gone", gone.address), ("there", pod.address)]).await;
    gone.shutdown.stop();
    gone.ended.await.unwrap();
    for n in 1..=20 {
        let answer = read_until(&mut send(bench.address, POST).await, "\r\n\r\nok").await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        assert_eq!(seen.load(Ordering::SeqCst), n, "each is served once");
    }
}

#[tokio::test]
async fn a_pod_that_nobody_listens_at_gets_no_request_until_somebody_does() {
    let bench = bench(1, |_| {}).await;
    let address = nobody().await;
    bench.ready(&[("late", address)]).await;
    let mut client = send(bench.address, POST).await;
    until("it waits", || bench.held() == 1).await;
    let gate = Gate::default();
    gate.open.notify_one();
    let behind = sidecar(sidecar_config(quick(&gate.seen).await, 1)).await;
    // The pod appears at the address that it had said.
    let front = TcpListener::bind(address).await.unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = front.accept().await {
            tokio::spawn(async move {
                let mut pod = tokio::net::TcpStream::connect(behind.address).await.unwrap();
                let _ = tokio::io::copy_bidirectional(&mut stream, &mut pod).await;
            });
        }
    });
    let answer = read_until(&mut client, "\r\n\r\nok").await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}

#[tokio::test]
async fn in_strict_mode_a_pod_that_cannot_be_reached_is_told_as_the_reference_does() {
    let bench = bench(1, |config| config.compat = Compat::Strict).await;
    bench.ready(&[("gone", nobody().await)]).await;
    let answer = read_until(&mut send(bench.address, GET).await, "\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 502") && answer.contains("connect_failed"), "{answer}");
}

/// An app that takes one request, and then is gone with all its connections.
async fn dies_with_one(seen: &Arc<AtomicUsize>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let seen = seen.clone();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            // A probe connects, and says nothing.
            if !read_head(&mut stream).await.is_empty() {
                seen.fetch_add(1, Ordering::SeqCst);
                return;
            }
        }
    });
    address
}

#[tokio::test]
async fn a_request_that_lost_its_pod_is_sent_again_once_if_that_does_no_harm() {
    for (request, status) in [(GET, "HTTP/1.1 200"), (POST, "HTTP/1.1 502")] {
        let (dead, seen) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let dying = sidecar(sidecar_config(dies_with_one(&dead).await, 1)).await;
        let bench = bench(1, |_| {}).await;
        bench.ready(&[("dying", dying.address)]).await;
        until("it is greeted", || bench.activator.load()[0].held == 0).await;
        let mut client = send(bench.address, request).await;
        until("the app has it", || dead.load(Ordering::SeqCst) == 1).await;
        let other = quick_pod(&seen, 1).await;
        bench.ready(&[("dying", dying.address), ("other", other.address)]).await;
        let answer = read_until(&mut client, "\r\n\r\n").await;
        assert!(answer.starts_with(status), "{request}: {answer}");
        let again = usize::from(request == GET);
        assert_eq!(seen.load(Ordering::SeqCst), again, "{request}");
        // The next ones find the pod that is there.
        let next = read_until(&mut send(bench.address, POST).await, "\r\n\r\nok").await;
        assert!(next.starts_with("HTTP/1.1 200"), "{next}");
    }
}

#[tokio::test]
async fn a_request_whose_pod_closed_on_purpose_is_not_sent_again() {
    let seen = Arc::new(AtomicUsize::new(0));
    let count = seen.clone();
    let closing = app(move |mut stream| {
        let count = count.clone();
        async move {
            if !read_head(&mut stream).await.is_empty() {
                count.fetch_add(1, Ordering::SeqCst);
            }
        }
    })
    .await;
    let pods = [sidecar(sidecar_config(closing, 1)).await, sidecar(sidecar_config(closing, 1)).await];
    let bench = bench(1, |_| {}).await;
    bench.ready(&[("a", pods[0].address), ("b", pods[1].address)]).await;
    let answer = read_until(&mut send(bench.address, GET).await, "\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 502") && answer.contains("reset_before_answer"), "{answer}");
    assert_eq!(seen.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_pod_that_breaks_off_each_time_does_not_draw_all_requests_to_itself() {
    let (broken, seen) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let count = broken.clone();
    let breaks = app(move |mut stream| {
        let count = count.clone();
        async move {
            if !read_head(&mut stream).await.is_empty() {
                count.fetch_add(1, Ordering::SeqCst);
            }
        }
    })
    .await;
    let bad = sidecar(sidecar_config(breaks, 3)).await;
    let good = quick_pod(&seen, 3).await;
    let bench = bench(3, |_| {}).await;
    // First in the order: with a limit of 3 it is always chosen first.
    bench.ready(&[("bad", bad.address), ("good", good.address)]).await;
    let mut failed = 0;
    for _ in 0..100 {
        let answer = read_until(&mut send(bench.address, POST).await, "\r\n\r\n").await;
        failed += usize::from(answer.starts_with("HTTP/1.1 502"));
    }
    let (broken, seen) = (broken.load(Ordering::SeqCst), seen.load(Ordering::SeqCst));
    assert_eq!((failed + seen, broken), (100, failed));
    assert!(failed < 50, "{failed} of 100 went to the pod that breaks off");
}

#[tokio::test]
async fn the_only_pod_is_not_taken_out_for_what_one_request_did() {
    let seen = Arc::new(AtomicUsize::new(0));
    let count = seen.clone();
    let picky = app(move |mut stream| {
        let count = count.clone();
        async move {
            loop {
                let head = read_head(&mut stream).await;
                if head.is_empty() || head.starts_with("GET /poison") {
                    return;
                }
                count.fetch_add(1, Ordering::SeqCst);
                stream.write_all(OK).await.unwrap();
            }
        }
    })
    .await;
    let pod = sidecar(sidecar_config(picky, 1)).await;
    let bench = bench(1, |_| {}).await;
    bench.ready(&[("p", pod.address)]).await;
    for _ in 0..5 {
        let poison = "GET /poison HTTP/1.1\r\nhost: a\r\n\r\n";
        let answer = read_until(&mut send(bench.address, poison).await, "\r\n\r\n").await;
        assert!(answer.starts_with("HTTP/1.1 502"), "{answer}");
        let answer = read_until(&mut send(bench.address, GET).await, "\r\n\r\nok").await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
    assert_eq!(seen.load(Ordering::SeqCst), 5);
}

#[tokio::test]
async fn offers_are_made_only_to_sidecars_that_said_that_they_are_ours() {
    let (told, mut heard) = tokio::sync::mpsc::unbounded_channel();
    // What a stock sidecar looks like: it answers probes without our mark.
    let stock = app(move |mut stream| {
        let told = told.clone();
        async move {
            loop {
                let head = read_head(&mut stream).await;
                if head.is_empty() {
                    return;
                }
                told.send(head).unwrap();
                stream.write_all(OK).await.unwrap();
            }
        }
    })
    .await;
    // In a cluster, where pods may have any sidecar.
    let cluster = Cluster { domain: "cluster.local".into(), passthrough: false };
    let bench = bench(1, |config| config.cluster = Some(cluster)).await;
    bench.ready(&[("stock", stock)]).await;
    let asked = timeout(PATIENCE, heard.recv()).await.unwrap().unwrap();
    assert!(asked.contains("k-network-probe: queue"), "{asked}");
    let answer = read_until(&mut send(bench.address, GET).await, "\r\n\r\nok").await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let request = timeout(PATIENCE, heard.recv()).await.unwrap().unwrap();
    assert!(request.contains("k-proxy-request: activator") && !request.contains("x-zeroscale-offer"), "{request}");

    // One of ours, seen through a pipe.
    let gate = Gate::default();
    gate.open.notify_one();
    let mut config = sidecar_config(gated_app(&gate).await, 1);
    config.trust = Trust::loopback();
    let ours = sidecar(config).await;
    let (told, mut heard) = tokio::sync::mpsc::unbounded_channel();
    let piped = app(move |mut stream| {
        let told = told.clone();
        async move {
            let mut pod = tokio::net::TcpStream::connect(ours.address).await.unwrap();
            loop {
                let head = read_head(&mut stream).await;
                if head.is_empty() {
                    return;
                }
                told.send(head.clone()).unwrap();
                pod.write_all(head.as_bytes()).await.unwrap();
                let mut answer = vec![0; 4096];
                let n = pod.read(&mut answer).await.unwrap();
                stream.write_all(&answer[..n]).await.unwrap();
            }
        }
    })
    .await;
    bench.ready(&[("ours", piped)]).await;
    let answer = read_until(&mut send(bench.address, GET).await, "ok").await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let mut offered = false;
    while let Ok(Some(head)) = timeout(Duration::from_millis(500), heard.recv()).await {
        offered |= head.contains("x-zeroscale-offer: ");
    }
    assert!(offered);
}
