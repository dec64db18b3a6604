//! Stats between processes: the activator's stream, the autoscaler's ingest,
//! and what happens when the link breaks or somebody goes beyond a bound.

use activator::uplink;
use autoscaler::ingest::{self, Limits};
use plumbing::clock;
use plumbing::grpc::stream::{Event, Opening, Stream};
use plumbing::grpc::{Call, CallError, unary};
use plumbing::shutdown::Shutdown;
use plumbing::stats::{self, StatSink, StatSource};
use policy::revision::RevisionId;
use policy::stat::{Stat, StatBatch};
use proto::push::PUSH;
use proto::report::{Batch, REPORT};
use std::net::SocketAddr;
use std::time::Duration;
use tests::rig::PATIENCE;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::timeout;

/// An ingest; it dies with this, connections included.
struct Ingest {
    address: SocketAddr,
    stats: StatSource,
    shutdown: Shutdown,
}

impl Ingest {
    async fn start(address: &str, limits: Limits) -> Ingest {
        let listener = plumbing::listen::listen(address.parse().unwrap()).unwrap();
        let address = listener.local_addr().unwrap();
        let (sink, stats) = stats::link();
        let shutdown = Shutdown::new();
        tokio::spawn(ingest::serve(listener, sink, limits, shutdown.clone()));
        Ingest { address, stats, shutdown }
    }

    async fn next(&mut self) -> StatBatch {
        timeout(PATIENCE, self.stats.next()).await.expect("a batch").expect("it serves")
    }

    async fn kill(self) {
        self.shutdown.stop();
        self.shutdown.finished().await;
        // The listener closes with its task.
        while TcpStream::connect(self.address).await.is_ok() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}

struct Uplink {
    sink: StatSink,
    connected: watch::Receiver<bool>,
    end: Shutdown,
    task: tokio::task::JoinHandle<()>,
}

impl Uplink {
    fn start(receiver: SocketAddr) -> Uplink {
        let (sink, source) = stats::link();
        let (told, connected) = watch::channel(false);
        let end = Shutdown::new();
        let over = end.clone();
        let task = tokio::spawn(uplink::run(receiver.to_string(), source, told, async move { over.draining().await }));
        Uplink { sink, connected, end, task }
    }

    async fn connected(&mut self, expected: bool) {
        timeout(PATIENCE, self.connected.wait_for(|now| *now == expected)).await.expect("in time").expect("it runs");
    }
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

fn counts(batch: &StatBatch) -> Vec<f64> {
    batch.stats.iter().map(|(_, stat)| stat.request_count).collect()
}

#[tokio::test]
async fn batches_arrive_in_order_and_a_poke_at_once() {
    let mut ingest = Ingest::start("127.0.0.1:0", Limits::default()).await;
    let mut uplink = Uplink::start(ingest.address);
    uplink.connected(true).await;
    for n in 0..50 {
        uplink.sink.send(batch(f64::from(n), "a", n % 7 == 0));
        let got = ingest.next().await;
        assert_eq!((counts(&got), got.poke), (vec![f64::from(n)], n % 7 == 0));
        assert_eq!(&*got.stats[0].1.pod_name, "activator-1");
        assert!(clock::now().since(got.at) < Duration::from_secs(5));
    }
    // All at once: whatever is given up, nothing overtakes.
    for n in 0..500 {
        uplink.sink.send(batch(f64::from(n), "a", false));
    }
    let mut last = -1.0;
    while last < 499.0 {
        let got = counts(&ingest.next().await)[0];
        assert!(got > last, "{got} after {last}");
        last = got;
    }
}

#[tokio::test]
async fn while_the_link_is_down_no_poke_is_lost_and_of_batches_the_newest_is_kept() {
    // An address of its own, so that nobody takes the port meanwhile.
    let mut ingest = Ingest::start("127.0.0.79:0", Limits::default()).await;
    let address = ingest.address;
    let mut uplink = Uplink::start(address);
    uplink.connected(true).await;
    for round in 0..3 {
        ingest.kill().await;
        for n in 0..200 {
            uplink.sink.send(batch(f64::from(n), &format!("r{n}"), true));
            uplink.sink.send(batch(f64::from(n), "r", false));
            uplink.sink.send(batch(f64::from(n), &format!("r{n}"), true));
        }
        uplink.connected(false).await;
        ingest = Ingest::start(&address.to_string(), Limits::default()).await;
        let mut poked = Vec::new();
        let mut newest = Vec::new();
        while poked.len() < 200 || newest.last() != Some(&199.0) {
            let got = ingest.next().await;
            if got.poke { poked.extend(counts(&got)) } else { newest.extend(counts(&got)) }
        }
        assert_eq!(poked, (0..200).map(f64::from).collect::<Vec<_>>(), "round {round}: each once, in order");
        assert!(newest.len() <= 2, "round {round}: {newest:?}");
    }
}

#[tokio::test]
async fn a_poke_that_was_on_its_way_when_the_link_broke_is_sent_again() {
    // A receiver that reads, never answers, and goes.
    let deaf = TcpListener::bind("127.0.0.80:0").await.unwrap();
    let address = deaf.local_addr().unwrap();
    let uplink = Uplink::start(address);
    let (stream, _) = timeout(PATIENCE, deaf.accept()).await.unwrap().unwrap();
    let mut connection = h2::server::handshake(stream).await.unwrap();
    let (request, _respond) = timeout(PATIENCE, connection.accept()).await.unwrap().unwrap().unwrap();
    assert_eq!(request.uri().path(), REPORT);
    uplink.sink.send(batch(1.0, "a", true));
    let mut body = request.into_body();
    let heard = async {
        tokio::select! {
            chunk = body.data() => chunk.unwrap().unwrap(),
            _ = connection.accept() => panic!("it goes on"),
        }
    };
    assert!(!timeout(PATIENCE, heard).await.unwrap().is_empty());
    drop((connection, body, deaf));
    let mut ingest = Ingest::start(&address.to_string(), Limits::default()).await;
    let got = ingest.next().await;
    assert_eq!((counts(&got), got.poke), (vec![1.0], true));
}

#[tokio::test]
async fn at_its_end_an_activator_says_what_is_left() {
    let mut ingest = Ingest::start("127.0.0.1:0", Limits::default()).await;
    let mut uplink = Uplink::start(ingest.address);
    uplink.connected(true).await;
    uplink.sink.send(batch(7.0, "a", false));
    uplink.end.drain();
    timeout(PATIENCE, uplink.task).await.unwrap().unwrap();
    assert_eq!(counts(&ingest.next().await), [7.0]);
}

async fn push(address: SocketAddr, path: &str, message: &[u8]) -> Result<bytes::Bytes, CallError> {
    let call = Call {
        authority: "autoscaler",
        path,
        user_agent: "test/1",
        fields: &[],
        message,
        timeout: PATIENCE,
        answer_max: 1024,
    };
    unary(TcpStream::connect(address).await.unwrap(), &call).await
}

async fn report(address: SocketAddr) -> Stream<TcpStream> {
    let stream = TcpStream::connect(address).await.unwrap();
    let opening = Opening { authority: "autoscaler", path: REPORT, user_agent: "test/1", message_max: 64 };
    Stream::open(stream, opening).await.unwrap()
}

fn message(number: u64) -> Vec<u8> {
    proto::encode(&Batch { number, stats: None, poke: false, age_millis: 0 })
}

#[track_caller]
fn is_status(answer: Result<impl std::fmt::Debug, CallError>, expected: u32, word: &str) {
    match answer {
        Err(CallError::Status { code, message }) => {
            let message = message.replace("%20", " ");
            assert!(code == expected && message.contains(word), "{code}: {message}");
        }
        other => panic!("{other:?} is no status {expected}"),
    }
}

#[tokio::test]
async fn each_bound_has_its_answer() {
    const RESOURCE_EXHAUSTED: u32 = 8;
    const OUT_OF_RANGE: u32 = 11;
    const UNIMPLEMENTED: u32 = 12;
    const UNAVAILABLE: u32 = 14;
    let limits = Limits { connections: 4, streams: 2, message_bytes: 100, rate: 10 };
    let mut ingest = Ingest::start("127.0.0.1:0", limits).await;
    let address = ingest.address;

    assert!(push(address, PUSH, b"").await.unwrap().is_empty());
    assert!(ingest.next().await.stats.is_empty());
    is_status(push(address, PUSH, &[0; 101]).await, OUT_OF_RANGE, "too large");
    is_status(push(address, "/zeroscale.v1.Stats/Other", b"").await, UNIMPLEMENTED, "Push");

    // The rate ends the stream that goes beyond it.
    let mut one = report(address).await;
    let mut receipts = 0;
    for number in 1..=30 {
        let _ = one.send(&message(number));
    }
    let ended = loop {
        match timeout(PATIENCE, one.next()).await.unwrap() {
            Ok(Event::Message(_)) => receipts += 1,
            Ok(_) => {}
            Err(error) => break error,
        }
    };
    assert!((10..=12).contains(&receipts), "{receipts}");
    is_status(Err::<(), _>(ended), RESOURCE_EXHAUSTED, "10 messages a second");
    drop(one);

    // Two streams may report, a third may not; its place is free again at once.
    let (mut one, mut two) = (report(address).await, report(address).await);
    for stream in [&mut one, &mut two] {
        assert_eq!(timeout(PATIENCE, stream.next()).await.unwrap(), Ok(Event::Accepted));
    }
    is_status(timeout(PATIENCE, report(address).await.next()).await.unwrap(), RESOURCE_EXHAUSTED, "2 streams");
    drop(two);
    let mut three = loop {
        let mut stream = report(address).await;
        if timeout(PATIENCE, stream.next()).await.unwrap() == Ok(Event::Accepted) {
            break stream;
        }
    };

    // The end is told to who reports.
    ingest.shutdown.drain();
    is_status(timeout(PATIENCE, three.next()).await.unwrap(), UNAVAILABLE, "ending");
    timeout(PATIENCE, async { while one.next().await.is_ok() {} }).await.unwrap();
    timeout(PATIENCE, ingest.shutdown.finished()).await.unwrap();
}

#[tokio::test]
async fn connections_beyond_the_bound_are_closed_at_once() {
    let ingest = Ingest::start("127.0.0.1:0", Limits { connections: 2, ..Limits::default() }).await;
    let (mut one, mut two) = (report(ingest.address).await, report(ingest.address).await);
    for stream in [&mut one, &mut two] {
        assert_eq!(timeout(PATIENCE, stream.next()).await.unwrap(), Ok(Event::Accepted));
    }
    assert!(matches!(push(ingest.address, PUSH, b"").await, Err(CallError::Broken(_))));
    drop(one);
    while push(ingest.address, PUSH, b"").await.is_err() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
