//! The activator's link to the autoscaler, against another implementation of
//! the protocol, and against servers that misbehave.

mod server;

use activator::link::{self, Reach};
use plumbing::clock;
use plumbing::shutdown::Shutdown;
use plumbing::stats::{self, StatSink};
use policy::compat::Compat;
use policy::revision::RevisionId;
use policy::stat::{Stat, StatBatch};
use proto::stats::WireStatMessages;
use server::{Heard, Manner, Server};
use std::net::TcpListener;
use std::time::Duration;
use tests::rig::PATIENCE;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};

struct Link {
    stats: StatSink,
    reach: watch::Receiver<Reach>,
    shutdown: Shutdown,
    ended: JoinHandle<()>,
}

impl Link {
    fn to(address: std::net::SocketAddr, compat: Compat) -> Link {
        let (stats, source) = stats::link();
        let (told, reach) = watch::channel(Reach::NeverYet);
        let shutdown = Shutdown::new();
        let settings = link::Settings { autoscaler: address.to_string(), compat };
        let ended = tokio::spawn(link::run(settings, source, told, shutdown.clone()));
        Link { stats, reach, shutdown, ended }
    }

    async fn is(&mut self, reach: Reach) {
        timeout(PATIENCE, self.reach.wait_for(|now| *now == reach)).await.expect("it never is").unwrap();
    }

    fn report(&self, revision: &str, count: f64) {
        self.send(revision, count, false);
    }

    fn poke(&self, revision: &str) {
        self.send(revision, 1.0, true);
    }

    fn send(&self, revision: &str, count: f64, poke: bool) {
        let stat = Stat {
            pod_name: "activator-1".into(),
            average_concurrency: 1.0,
            average_proxied_concurrency: 0.0,
            request_count: count,
            proxied_request_count: 0.0,
        };
        self.stats.send(StatBatch { at: clock::now(), stats: vec![(RevisionId::new("ns", revision), stat)], poke });
    }
}

/// Revision and count of a message with one entry.
fn one(messages: &WireStatMessages) -> (String, f64) {
    let [message] = &messages.messages[..] else { panic!("several entries: {messages:?}") };
    (message.revision().name.to_string(), message.stat.as_ref().unwrap().request_count)
}

#[tokio::test]
async fn each_batch_is_one_message_in_order_on_one_connection() {
    let mut server = Server::start(&[Manner::Serve]);
    let mut link = Link::to(server.address, Compat::Better);
    link.is(Reach::Up).await;
    assert_eq!(server.next().await, Heard::Connected("/".into()));
    for n in 0..500 {
        if n % 10 == 0 { link.poke(&format!("rev-{n}")) } else { link.report("rev", f64::from(n)) }
    }
    for n in 0..500 {
        let stats = server.stats().await;
        let expected = if n % 10 == 0 { (format!("rev-{n}"), 1.0) } else { ("rev".into(), f64::from(n)) };
        assert_eq!(one(&stats), expected);
        assert_eq!(stats.messages[0].stat.as_ref().unwrap().timestamp, 0, "it is of now");
    }
}

#[tokio::test]
async fn what_is_told_while_nobody_listens_arrives_in_order_when_somebody_does() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let link = Link::to(address, Compat::Better);
    for n in 0..1000 {
        link.poke(&format!("rev-{n}"));
        link.report("rev", f64::from(n));
    }
    // Long enough for reports to be told apart from those of now.
    tokio::time::sleep(Duration::from_millis(2100)).await;
    assert_eq!(*link.reach.borrow(), Reach::NeverYet);
    let mut server = Server::on(TcpListener::bind(address).unwrap(), &[Manner::Serve]);
    let (mut pokes, mut reports) = (Vec::new(), Vec::new());
    while pokes.len() < 1000 || reports.last() != Some(&999.0) {
        let stats = server.stats().await;
        let (revision, count) = one(&stats);
        let stamp = stats.messages[0].stat.as_ref().unwrap().timestamp;
        if revision == "rev" {
            reports.push(count);
            assert!(stamp > 0, "it says when it was");
        } else {
            pokes.push(revision);
            assert_eq!(stamp, 0, "whoever waits, waits now");
        }
    }
    assert_eq!(pokes, (0..1000).map(|n| format!("rev-{n}")).collect::<Vec<_>>());
    assert!(reports.is_sorted() && reports.len() < 200, "{} reports were kept", reports.len());
}

#[tokio::test]
async fn a_server_that_restarts_is_answered_and_come_back_to() {
    let mut server = Server::start(&[Manner::CloseAfter(2, 1012), Manner::Serve]);
    let mut link = Link::to(server.address, Compat::Better);
    link.is(Reach::Up).await;
    link.poke("a");
    link.report("a", 5.0);
    assert_eq!(server.next().await, Heard::Connected("/".into()));
    assert_eq!([one(&server.stats().await).0, one(&server.stats().await).0], ["a", "a"]);
    link.is(Reach::Lost).await;
    link.poke("b");
    assert_eq!(server.next().await, Heard::Closed(Some(1012)), "the close is answered with its code");
    let mut came = Vec::new();
    while !came.contains(&"b".to_owned()) {
        came.push(one(&server.stats().await).0);
    }
    link.is(Reach::Up).await;
}

#[tokio::test]
async fn a_poke_that_was_sent_to_nobody_is_sent_again() {
    let mut server = Server::start(&[Manner::Swallow, Manner::Swallow, Manner::Serve]);
    let mut link = Link::to(server.address, Compat::Better);
    link.is(Reach::Up).await;
    link.poke("a");
    assert_eq!(one(&server.stats().await), ("a".into(), 1.0));
}

#[tokio::test]
async fn a_poke_that_has_arrived_is_not_sent_again() {
    let mut server = Server::start(&[Manner::CloseAfter(2, 1001), Manner::Serve]);
    let mut link = Link::to(server.address, Compat::Better);
    link.is(Reach::Up).await;
    link.poke("a");
    assert_eq!(one(&server.stats().await).0, "a");
    // Its ping has been heard, and answered before anything else was.
    while !matches!(server.any().await, Heard::Ping(_)) {}
    tokio::time::sleep(Duration::from_millis(200)).await;
    link.report("b", 1.0);
    assert_eq!(one(&server.stats().await).0, "b");
    link.is(Reach::Lost).await;
    link.report("c", 1.0);
    assert_eq!(one(&server.stats().await).0, "c");
}

#[tokio::test]
async fn whoever_does_not_shake_hands_is_tried_again() {
    let other = "HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\n\
                 sec-websocket-accept: AAAAAAAAAAAAAAAAAAAAAAAAAAA=\r\n\r\n";
    let mut server = Server::start(&[
        Manner::Answer("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"),
        Manner::Answer("what?"),
        Manner::Answer(""),
        Manner::Answer(other),
        Manner::Serve,
    ]);
    let link = Link::to(server.address, Compat::Better);
    link.poke("a");
    assert_eq!(one(&server.stats().await).0, "a");
}

#[tokio::test]
async fn a_server_that_does_not_read_holds_nobody_up_and_misses_no_poke() {
    let mut server = Server::start(&[Manner::Stall(Duration::from_secs(2)), Manner::Serve]);
    let mut link = Link::to(server.address, Compat::Better);
    link.is(Reach::Up).await;
    let long = "x".repeat(60_000);
    for n in 0..300 {
        link.report(&long, f64::from(n));
        link.poke(&format!("rev-{n}"));
        tokio::task::yield_now().await;
    }
    let mut pokes = Vec::new();
    while pokes.len() < 300 {
        let revision = one(&server.stats().await).0;
        if revision != long {
            pokes.push(revision);
        }
    }
    assert_eq!(pokes, (0..300).map(|n| format!("rev-{n}")).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_server_that_never_answers_a_ping_is_given_up_after_ten_seconds() {
    let mut server = Server::start(&[Manner::Mute, Manner::Serve]);
    let mut link = Link::to(server.address, Compat::Strict);
    link.is(Reach::Up).await;
    let began = Instant::now();
    let mut pings = 0;
    loop {
        match server.any().await {
            // Final, empty, and masked.
            Heard::Ping(bytes) => {
                assert_eq!(bytes[..2], [0x89, 0x80]);
                pings += 1;
            }
            Heard::Connected(_) => {}
            _ => break,
        }
    }
    let held = began.elapsed();
    assert!(pings >= 2 && held >= Duration::from_secs(9) && held < 2 * PATIENCE, "{pings} pings in {held:?}");
    link.is(Reach::Up).await;
}

#[tokio::test]
async fn in_strict_mode_what_cannot_be_sent_at_once_is_lost() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let mut link = Link::to(address, Compat::Strict);
    link.poke("lost");
    link.report("lost", 1.0);
    tokio::time::sleep(Duration::from_millis(100)).await;
    let mut server = Server::on(TcpListener::bind(address).unwrap(), &[Manner::Serve]);
    link.is(Reach::Up).await;
    link.poke("heard");
    assert_eq!(one(&server.stats().await).0, "heard");
}

#[tokio::test]
async fn at_the_end_what_is_left_is_sent_and_a_close_frame_after_it() {
    let mut server = Server::start(&[Manner::Serve]);
    let mut link = Link::to(server.address, Compat::Better);
    link.is(Reach::Up).await;
    link.report("last", 1.0);
    link.shutdown.drain();
    assert_eq!(one(&server.stats().await).0, "last");
    assert_eq!(server.next().await, Heard::Closed(Some(1001)));
    timeout(PATIENCE, link.ended).await.expect("it ends").unwrap();
    assert!(server.next().await == Heard::Gone && server.is_silent(Duration::from_millis(300)).await);
}

#[tokio::test]
async fn the_end_does_not_wait_for_an_autoscaler_that_is_not_there() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let link = Link::to(address, Compat::Better);
    link.poke("a");
    tokio::time::sleep(Duration::from_millis(50)).await;
    link.shutdown.drain();
    timeout(Duration::from_secs(2), link.ended).await.expect("it ends at once").unwrap();
}
