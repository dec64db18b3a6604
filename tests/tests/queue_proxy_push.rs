//! Stats that the sidecar pushes: to a real tonic server, which goes, comes
//! back, and hangs.

use proto::push::{PUSH, PushReply};
use proto::stats::{Stat, WireStatMessage, WireStatMessages};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;
use tests::floor::binaries;
use tests::program::Program;
use tests::replay::cases::env::BASE;
use tests::rig::{self, GET, Gate, read_until, send, until};
use tokio::net::TcpListener;
use tokio::runtime::Builder;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep};
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use tonic_prost::ProstCodec;

const SHORT: (&str, &str) = ("ZEROSCALE_DRAIN_SETTLE", "200ms");
/// The sidecar's longest pause between two tries, and what they may take.
const BACK_OFF_MAX: Duration = Duration::from_secs(20);
const ADDR: &str = "ZEROSCALE_STATS_ADDR";

/// What a receiver has seen, over all its lives.
#[derive(Default)]
struct Seen {
    calls: Mutex<Vec<WireStatMessages>>,
    /// Calls in the handler.
    inside: AtomicUsize,
    inside_most: AtomicUsize,
    /// While true no call is answered.
    hangs: AtomicBool,
}

impl Seen {
    fn count(&self) -> usize {
        self.calls.lock().unwrap().len()
    }

    /// The one stat of a call.
    fn of_call(&self, index: usize) -> WireStatMessage {
        let calls = self.calls.lock().unwrap();
        let [message] = &calls[index].messages[..] else { panic!("one stat a call: {calls:?}") };
        message.clone()
    }

    async fn take(self: Arc<Self>, messages: WireStatMessages) -> PushReply {
        let inside = Inside::of(&self);
        self.calls.lock().unwrap().push(messages);
        while self.hangs.load(Ordering::SeqCst) {
            sleep(Duration::from_millis(5)).await;
        }
        drop(inside);
        PushReply {}
    }
}

/// Counts a call, also one that is called off.
struct Inside(Arc<Seen>);

impl Inside {
    fn of(seen: &Arc<Seen>) -> Inside {
        let now = seen.inside.fetch_add(1, Ordering::SeqCst) + 1;
        seen.inside_most.fetch_max(now, Ordering::SeqCst);
        Inside(seen.clone())
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        self.0.inside.fetch_sub(1, Ordering::SeqCst);
    }
}

/// A tonic server on a thread of its own, which dies with it, connections
/// included.
struct Receiver {
    kill: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
    address: SocketAddr,
}

impl Receiver {
    fn start(address: &str, seen: &Arc<Seen>) -> Receiver {
        let listener = std::net::TcpListener::bind(address).unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let (kill, killed) = oneshot::channel();
        let seen = seen.clone();
        let thread = std::thread::spawn(move || {
            let runtime = Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                tokio::select! {
                    served = serve(listener, seen) => panic!("the server ended: {served:?}"),
                    _ = killed => {}
                }
            });
        });
        Receiver { kill: Some(kill), thread: Some(thread), address }
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        drop(self.kill.take());
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

async fn serve(listener: std::net::TcpListener, seen: Arc<Seen>) -> Result<(), tonic::transport::Error> {
    let service = tower::service_fn(move |request: http::Request<tonic::body::Body>| {
        let seen = seen.clone();
        async move {
            assert_eq!(request.uri().path(), PUSH);
            let taken = tower::service_fn(move |request: tonic::Request<WireStatMessages>| {
                let seen = seen.clone();
                async move { Ok::<_, tonic::Status>(tonic::Response::new(seen.take(request.into_inner()).await)) }
            });
            let mut grpc = tonic::server::Grpc::new(ProstCodec::<PushReply, WireStatMessages>::default());
            Ok::<_, Infallible>(grpc.unary(taken, request).await)
        }
    });
    let incoming = TcpIncoming::from(TcpListener::from_std(listener).unwrap());
    Server::builder().serve_with_incoming(service, incoming).await
}

/// A sidecar that pushes to `address`, and the gate of its app.
async fn pushing(address: SocketAddr, changes: &[(&str, &str)]) -> (Program, Gate) {
    let gate = Gate::default();
    let address = address.to_string();
    let all: Vec<_> = [(ADDR, address.as_str()), SHORT].into_iter().chain(changes.iter().copied()).collect();
    (Program::start(rig::gated_app(&gate).await, &all), gate)
}

/// Waits for so many more calls.
async fn got(seen: &Seen, more: usize) {
    let (before, began) = (seen.count(), Instant::now());
    while seen.count() < before + more {
        assert!(began.elapsed() < BACK_OFF_MAX + rig::PATIENCE, "{} of {more} stats", seen.count() - before);
        sleep(Duration::from_millis(5)).await;
    }
}

/// True when some line of the log says so.
fn says(program: &Program, what: &str) -> bool {
    program.lines().iter().any(|line| line.contains(what))
}

/// It ends sooner than it would have given a call up; all that it has written.
async fn ends_soon(mut program: Program) -> Vec<String> {
    let began = Instant::now();
    program.terminate();
    assert_eq!(program.ended().await, 0);
    assert!(began.elapsed() < Duration::from_millis(1900), "{:?}", began.elapsed());
    program.lines()
}

#[tokio::test]
async fn each_second_the_stat_that_is_scraped_is_pushed_too() {
    for mode in ["better", "strict"] {
        let seen = Arc::new(Seen::default());
        let receiver = Receiver::start("127.0.0.1:0", &seen);
        let (program, gate) =
            pushing(receiver.address, &[("ZEROSCALE_COMPAT", mode), ("SERVING_REVISION", "rev-7")]).await;
        let _running = send(program.main, GET).await;
        until("the request is at the app", || gate.inside() == 1).await;
        let began = Instant::now();
        got(&seen, 4).await;
        let took = began.elapsed();
        assert!((2_500..9_000).contains(&took.as_millis()), "one a second: four in {took:?}");
        let message = seen.of_call(seen.count() - 1);
        assert_eq!(message.revision().name.as_ref(), "rev-7");
        let stat = message.stat.expect("a stat");
        assert_eq!((stat.average_concurrent_requests, stat.timestamp), (1.0, 0), "{stat:?}");
        assert_eq!(stat.observed().pod_name.as_ref(), "pod-1");
        // The receiver may have got the next one meanwhile, but some scrape is like some push.
        let scraped: Stat = program.stat().await;
        until("that one is pushed", || {
            let calls = seen.calls.lock().unwrap();
            calls.iter().any(|call| call.messages[0].stat.as_ref() == Some(&scraped))
        })
        .await;
        gate.open.notify_one();
        ends_soon(program).await;
    }
}

#[tokio::test]
async fn a_receiver_that_was_killed_is_found_again_and_nothing_is_made_up_for() {
    let seen = Arc::new(Seen::default());
    // An address of its own, so that nobody takes the port meanwhile.
    let receiver = Receiver::start("127.0.0.77:0", &seen);
    let (program, gate) = pushing(receiver.address, &[]).await;
    got(&seen, 2).await;
    let address = receiver.address.to_string();
    drop(receiver);
    until("it is told", || says(&program, "stats cannot be pushed")).await;
    // The request path does not notice.
    for _ in 0..50 {
        let mut stream = send(program.main, GET).await;
        gate.open.notify_one();
        assert!(read_until(&mut stream, "ok").await.starts_with("HTTP/1.1 200"));
    }
    let before = seen.count();
    sleep(Duration::from_millis(2500)).await;
    assert_eq!(seen.count(), before);
    let newest = program.stat().await;
    let back = Receiver::start(&address, &seen);
    got(&seen, 3).await;
    let first = seen.of_call(before).stat.expect("a stat");
    assert!(first.process_uptime >= newest.process_uptime, "{first:?}, not older than {newest:?}");
    let lines = ends_soon(program).await;
    assert_eq!(lines.iter().filter(|line| line.contains("stats cannot be pushed")).count(), 1, "{lines:#?}");
    drop(back);
}

#[tokio::test]
async fn a_receiver_that_hangs_has_one_call_and_then_the_newest_stat() {
    let seen = Arc::new(Seen::default());
    let receiver = Receiver::start("127.0.0.1:0", &seen);
    let (program, gate) = pushing(receiver.address, &[]).await;
    got(&seen, 1).await;
    seen.hangs.store(true, Ordering::SeqCst);
    until("it is told", || says(&program, "no answer within 2s")).await;
    let mut stream = send(program.main, GET).await;
    gate.open.notify_one();
    assert!(read_until(&mut stream, "ok").await.starts_with("HTTP/1.1 200"));
    sleep(Duration::from_millis(1500)).await;
    seen.hangs.store(false, Ordering::SeqCst);
    until("what hung is gone", || seen.inside.load(Ordering::SeqCst) == 0).await;
    let (newest, before) = (program.stat().await, seen.count());
    got(&seen, 3).await;
    assert_eq!(seen.inside_most.load(Ordering::SeqCst), 1, "one call at a time");
    // One may have been on its way while that one was made.
    let next = seen.of_call(before).stat.expect("a stat");
    assert!(next.process_uptime > newest.process_uptime - 1.5, "{next:?}, {newest:?}");
    ends_soon(program).await;
    drop(receiver);
}

#[tokio::test]
async fn whatever_the_receiver_is_the_end_does_not_wait_for_it() {
    // One that hangs in its call.
    let seen = Arc::new(Seen::default());
    let hanging = Receiver::start("127.0.0.1:0", &seen);
    seen.hangs.store(true, Ordering::SeqCst);
    let (program, _gate) = pushing(hanging.address, &[]).await;
    got(&seen, 1).await;
    ends_soon(program).await;
    // One that never reads, one that is no gRPC server, and one that is not there.
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let web = rig::app(|mut stream| async move {
        use tokio::io::AsyncWriteExt;
        let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
    })
    .await;
    let nobody = TcpListener::bind("127.0.0.78:0").await.unwrap().local_addr().unwrap();
    for address in [silent.local_addr().unwrap(), web, nobody] {
        let (program, gate) = pushing(address, &[]).await;
        sleep(Duration::from_millis(1200)).await;
        let mut stream = send(program.main, GET).await;
        gate.open.notify_one();
        assert!(read_until(&mut stream, "ok").await.starts_with("HTTP/1.1 200"));
        assert_eq!(program.stat().await.observed().pod_name.as_ref(), "pod-1", "the scrape goes on");
        ends_soon(program).await;
    }
}

/// In namespaces of its own: a nameserver that never answers, then the sidecar
/// until it has been told to end. 77 where that cannot be set up.
const UNDER_A_SILENT_NAMESERVER: &str = r#"
mount --bind "$RESOLV" /etc/resolv.conf && ip link set lo up &&
    ip link add near type veth peer name far && ip addr add 10.99.0.2/24 dev near &&
    ip link set near up && ip link set far up &&
    ip neigh add 10.99.0.1 lladdr 02:00:00:00:00:01 dev near nud permanent || exit 77
timeout 2 getent hosts stats.example
[ $? = 124 ] || exit 77
"$BINARY" &
pid=$!
sleep 1
began=$(date +%s%N)
kill -TERM $pid
wait $pid || exit 1
echo "took $((($(date +%s%N) - began) / 1000000)) ms"
"#;

#[test]
fn a_name_that_is_being_looked_up_does_not_hold_the_end() {
    let resolv = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(resolv.path(), "nameserver 10.99.0.1\noptions timeout:15\n").unwrap();
    let mut command = std::process::Command::new("unshare");
    command.args([
        "--net",
        "--mount",
        "--pid",
        "--fork",
        "--kill-child=KILL",
        "--",
        "sh",
        "-c",
        UNDER_A_SILENT_NAMESERVER,
    ]);
    command.env("RESOLV", resolv.path()).env("BINARY", binaries::queue_proxy().unwrap());
    command.envs(BASE.iter().copied()).envs([(ADDR, "stats.example:1"), SHORT]);
    let Ok(output) = command.output() else {
        eprintln!("SKIPPED: there is no unshare (util-linux)");
        return;
    };
    let (said, wrong) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let took = said.lines().find_map(|line| line.strip_prefix("took ")?.strip_suffix(" ms")?.parse::<u64>().ok());
    match (output.status.code(), took) {
        // The lookup would go on for 14 s.
        (Some(0), Some(took)) => assert!(took < 5_000, "{took} ms\n{wrong}"),
        (Some(1), None) if wrong.contains("unshare failed") => eprintln!("SKIPPED: no namespaces here: {wrong}"),
        (Some(77), None) => eprintln!("SKIPPED: no nameserver can be made up here: {wrong}"),
        odd => panic!("{odd:?}\n{said}{wrong}"),
    }
}
