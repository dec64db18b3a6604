//! The stat server: its bounds, its end, and our own activator as its client.

use activator::link::{self, Reach};
use autoscaler::forward::Owners;
use autoscaler::stat_server::{self, Limits, Settings, Sinks};
use plumbing::clock;
use plumbing::shutdown::Shutdown;
use plumbing::stats::{self, StatSource};
use policy::compat::Compat;
use policy::moment::Moment;
use policy::revision::RevisionId;
use policy::stat::{Stat, StatBatch};
use proto::stats::{WireStatMessage, WireStatMessages};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tests::rig::PATIENCE;
use tests::websocket::{BINARY, CLOSE, PING, PONG, Socket, TEXT};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};

struct Server {
    address: SocketAddr,
    stats: StatSource,
    shutdown: Shutdown,
}

impl Server {
    fn start(limits: Limits) -> Server {
        Server::at("127.0.0.1:0", limits, Compat::Better)
    }

    fn at(address: &str, limits: Limits, compat: Compat) -> Server {
        let listener = plumbing::listen::listen(address.parse().unwrap()).unwrap();
        let address = listener.local_addr().unwrap();
        let (sink, stats) = stats::link();
        let (_, owners) = watch::channel(Arc::new(Owners::default()));
        let shutdown = Shutdown::new();
        let sinks = Sinks { direct: sink.clone(), forwarded: sink };
        tokio::spawn(stat_server::serve(listener, sinks, Settings { limits, compat, owners }, shutdown.clone()));
        Server { address, stats, shutdown }
    }

    async fn open(&self) -> Socket {
        timeout(PATIENCE, Socket::open(self.address, "/")).await.expect("in time").expect("a websocket")
    }

    async fn next(&mut self) -> StatBatch {
        timeout(PATIENCE, self.stats.next()).await.expect("a batch").expect("it serves")
    }

    /// The requests of the next stat, by which tests tell stats apart.
    async fn count(&mut self) -> f64 {
        self.next().await.stats[0].1.request_count
    }

    async fn kill(self) {
        self.shutdown.stop();
        self.shutdown.finished().await;
        while TcpStream::connect(self.address).await.is_ok() {
            sleep(Duration::from_millis(1)).await;
        }
    }
}

fn message(count: f64, timestamp: i64) -> Vec<u8> {
    let stat = proto::stats::Stat { request_count: count, timestamp, ..proto::stats::Stat::of_pod("activator") };
    let message = WireStatMessage { namespace: b"ns".to_vec(), name: b"rev".to_vec(), stat: Some(stat) };
    proto::encode(&WireStatMessages { messages: vec![message] })
}

/// The code of the close that comes next, whatever comes before.
async fn closed(socket: &mut Socket) -> Option<u16> {
    let closing = async {
        while let Ok(Some(frame)) = socket.reader.next().await {
            if frame.opcode == CLOSE {
                return frame.code();
            }
        }
        None
    };
    timeout(PATIENCE, closing).await.expect("it ends")
}

#[tokio::test]
async fn connections_beyond_the_bound_are_closed_and_their_places_come_back() {
    let mut server = Server::start(Limits { connections: 3, ..Limits::default() });
    let mut open = vec![server.open().await, server.open().await, server.open().await];
    let mut beyond = TcpStream::connect(server.address).await.unwrap();
    let _ = beyond.write_all(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n").await;
    assert_eq!(timeout(PATIENCE, beyond.read(&mut [0; 8])).await.unwrap().unwrap_or(0), 0);
    for (n, socket) in open.iter_mut().enumerate() {
        socket.writer.send(BINARY, &message(n as f64, 0)).await.unwrap();
        assert_eq!(server.count().await, n as f64);
    }
    open.pop();
    // Its place is free once the server has seen that it left.
    let again = async {
        loop {
            if let Ok(mut socket) = Socket::open(server.address, "/").await {
                return socket.exchange(PING, b"here").await.unwrap();
            }
            sleep(Duration::from_millis(5)).await;
        }
    };
    assert_eq!(timeout(PATIENCE, again).await.expect("room").opcode, PONG);
}

#[tokio::test]
async fn who_breaks_a_rule_is_told_why_and_nobody_else_notices() {
    let mut server = Server::start(Limits { message_bytes: 1000, ..Limits::default() });
    let mut good = server.open().await;
    // A length is known by the head: nothing of the message has to come.
    let announced = [0x82, 0xff, 0x10, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4];
    let piece = [0x02, 0xfe, 0x02, 0x58, 0, 0, 0, 0].into_iter().chain([0; 600]).collect::<Vec<u8>>();
    let more = [0x80, 0xfe, 0x02, 0x58, 0, 0, 0, 0].into_iter().chain([0; 600]).collect::<Vec<u8>>();
    for (n, (bytes, code)) in [
        (&announced[..], 1009),
        (&[piece, more].concat(), 1009),
        (&[0x82, 0x01, 0][..], 1002),
        (&[0xc2, 0x80, 0, 0, 0, 0], 1002),
        (&[0x80, 0x80, 0, 0, 0, 0], 1002),
        (&[0x83, 0x80, 0, 0, 0, 0], 1002),
        (&[0x09, 0x80, 0, 0, 0, 0], 1002),
    ]
    .into_iter()
    .enumerate()
    {
        let mut bad = server.open().await;
        bad.writer.send_raw(bytes).await.unwrap();
        assert_eq!(closed(&mut bad).await, Some(code), "number {n}");
        good.writer.send(BINARY, &message(n as f64, 0)).await.unwrap();
        assert_eq!(server.count().await, n as f64);
    }
    // What is only of no use is passed over.
    for (opcode, payload) in [(TEXT, &b"hello"[..]), (BINARY, b"\xff\xff"), (BINARY, b""), (PONG, b"x")] {
        good.writer.send(opcode, payload).await.unwrap();
    }
    good.writer.send(BINARY, &message(77.0, 0)).await.unwrap();
    assert_eq!(server.count().await, 77.0);
    let answer = good.exchange(CLOSE, &1000_u16.to_be_bytes()).await.unwrap();
    assert_eq!((answer.opcode, answer.code()), (CLOSE, Some(1000)));
}

#[tokio::test]
async fn what_all_together_have_on_its_way_is_bounded() {
    let mut server = Server::start(Limits { message_bytes: 800, bytes: 1000, ..Limits::default() });
    // 600 bytes of a message of 800.
    let part = [&[0x82, 0xfe, 0x03, 0x20, 0, 0, 0, 0][..], &[0; 600]].concat();
    let (mut one, mut other) = (server.open().await, server.open().await);
    one.writer.send_raw(&part).await.unwrap();
    other.writer.send_raw(&part).await.unwrap();
    let late = tokio::select! {
        code = closed(&mut one) => (code, &mut other),
        code = closed(&mut other) => (code, &mut one),
    };
    assert_eq!(late.0, Some(1013));
    // The other's message is whole in the end, and there is room again.
    late.1.writer.send_raw(&[0; 200]).await.unwrap();
    late.1.writer.send(BINARY, &message(5.0, 0)).await.unwrap();
    assert_eq!(server.count().await, 5.0);
    let mut third = server.open().await;
    third.writer.send_raw(&part).await.unwrap();
    third.writer.send_raw(&[0; 200]).await.unwrap();
    third.writer.send(BINARY, &message(6.0, 0)).await.unwrap();
    assert_eq!(server.count().await, 6.0);
}

#[tokio::test]
async fn a_sender_that_is_too_quick_is_slowed_down_and_loses_nothing() {
    let mut server = Server::start(Limits { rate: 200, ..Limits::default() });
    let mut socket = server.open().await;
    let began = Instant::now();
    for n in 0..400 {
        socket.writer.send(BINARY, &message(f64::from(n), 0)).await.unwrap();
    }
    for n in 0..400 {
        assert_eq!(server.count().await, f64::from(n));
    }
    // 200 at once, and the rest at 200 a second.
    assert!(began.elapsed() > Duration::from_millis(900), "{:?}", began.elapsed());
}

#[tokio::test]
async fn while_the_decisions_stand_still_senders_are_held_back_and_nothing_is_lost() {
    let mut server = Server::start(Limits { rate: 1_000_000, ..Limits::default() });
    let mut socket = server.open().await;
    const ALL: u32 = 3000;
    for n in 0..ALL {
        socket.writer.send(BINARY, &message(f64::from(n), 0)).await.unwrap();
    }
    for n in 0..ALL {
        assert_eq!(server.count().await, f64::from(n));
    }
    assert_eq!(server.stats.dropped(), 0);
}

#[tokio::test]
async fn a_connection_that_says_nothing_is_given_up_and_one_that_pings_is_not() {
    let server = Server::start(Limits { silence: Duration::from_millis(1500), ..Limits::default() });
    let (mut silent, mut here) = (server.open().await, server.open().await);
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(3) {
        assert_eq!(here.exchange(PING, b"p").await.unwrap().payload, b"p");
        sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(closed(&mut silent).await, Some(1001));
}

#[tokio::test]
async fn times_are_the_senders_but_none_is_of_the_future() {
    let now = clock::now();
    let (past, future) = (now.unix_seconds() - 30, now.unix_seconds() + 86_400);
    for compat in [Compat::Better, Compat::Strict] {
        let mut server = Server::at("127.0.0.1:0", Limits::default(), compat);
        let mut socket = server.open().await;
        socket.writer.send(BINARY, &message(1.0, past)).await.unwrap();
        assert_eq!(server.next().await.at.unix_seconds(), past);
        socket.writer.send(BINARY, &message(1.0, future)).await.unwrap();
        let at = server.next().await.at;
        match compat {
            Compat::Strict => assert_eq!(at.unix_seconds(), future),
            Compat::Better => assert!(at <= clock::now() && at >= now - Duration::from_secs(1)),
        }
    }
}

#[tokio::test]
async fn in_the_end_all_are_told_to_come_back_and_who_does_not_listen_holds_up_nothing_for_long() {
    let server = Server::start(Limits::default());
    let mut polite = Vec::new();
    for _ in 0..20 {
        polite.push(server.open().await);
    }
    let _deaf = server.open().await;
    let began = Instant::now();
    server.shutdown.drain();
    for socket in &mut polite {
        let frame = timeout(PATIENCE, socket.reader.next()).await.expect("in time").unwrap().expect("a frame");
        assert_eq!((frame.code(), &frame.payload[2..]), (Some(1012), &b"Restarting"[..]));
        socket.writer.send(CLOSE, &frame.payload).await.unwrap();
        assert!(timeout(PATIENCE, socket.reader.next()).await.expect("in time").unwrap().is_none());
    }
    let answered = began.elapsed();
    timeout(3 * PATIENCE, server.shutdown.finished()).await.expect("it ends");
    println!("all were told within {answered:?}, the end took {:?}", began.elapsed());
    assert!(TcpStream::connect(server.address).await.is_err());
}

fn batch(count: f64, revision: &str, poke: bool) -> StatBatch {
    let stat = Stat {
        pod_name: "activator-1".into(),
        average_concurrency: 1.0,
        average_proxied_concurrency: 0.0,
        request_count: count,
        proxied_request_count: 0.0,
    };
    StatBatch { at: clock::now(), stats: vec![(RevisionId::new("default", revision), stat)], poke }
}

#[tokio::test]
async fn our_activators_link_loses_no_poke_over_restarts_of_our_server() {
    // An address of its own, so that nobody takes the port meanwhile.
    let mut server = Server::at("127.0.0.83:0", Limits::default(), Compat::Better);
    let address = server.address;
    let (sink, source) = stats::link();
    let (reach, mut reached) = watch::channel(Reach::NeverYet);
    let end = Shutdown::new();
    let settings = link::Settings { autoscaler: address.to_string(), compat: Compat::Better };
    let linked = tokio::spawn(link::run(settings, source, reach, end.clone()));
    for round in 0..3 {
        timeout(PATIENCE, reached.wait_for(|reach| *reach == Reach::Up)).await.expect("in time").expect("it runs");
        for n in 0..50 {
            sink.send(batch(f64::from(n), "steady", false));
            let got = server.next().await;
            assert_eq!(got.stats[0].1.request_count, f64::from(n), "round {round}");
            assert!(got.at > Moment::default());
        }
        server.kill().await;
        timeout(PATIENCE, reached.wait_for(|reach| *reach == Reach::Lost)).await.expect("in time").expect("it runs");
        for n in 0..100 {
            sink.send(batch(f64::from(n), &format!("r{n}"), true));
        }
        server = Server::at(&address.to_string(), Limits::default(), Compat::Better);
        let mut poked = Vec::new();
        while poked.len() < 100 {
            poked.extend(server.next().await.stats.iter().map(|(revision, _)| revision.name.to_string()));
        }
        let expected: Vec<String> = (0..100).map(|n| format!("r{n}")).collect();
        assert_eq!(poked, expected, "round {round}: each once, in order");
    }
    end.drain();
    timeout(PATIENCE, linked).await.expect("it ends").unwrap();
}
