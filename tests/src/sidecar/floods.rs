//! Clients that ask for too much: memory stays bounded, and others are served
//! as if they were alone; of the sidecar, and of an activator before it.

use super::dual::{self, Call, Reply};
use super::frames::{self, ACK, END_HEADERS, END_STREAM, Frame, fields, frame, kind};
use super::h1::{self, Conn};
use super::h2c;
use crate::floor::processes::{peak_resident_bytes, resident_bytes};
use crate::floor::trial::median_and_worst;
use crate::front::{Chain, Through};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
/// A flood has to be over by then.
const PATIENCE: Duration = Duration::from_secs(30);
/// The worst that another client may wait for its answer: far below what a
/// sidecar that is choked makes of it, far above what a busy machine does.
/// Without optimisation all that is parsed takes ten times as long.
const UNHURT: Duration = Duration::from_secs(if cfg!(debug_assertions) { 10 } else { 2 });

/// What is under a flood, and somebody else who goes on asking meanwhile.
struct Flood {
    chain: Chain,
    before: Vec<u64>,
    over: Arc<AtomicBool>,
    others: JoinHandle<Vec<Duration>>,
    _app: Apart,
    app: Arc<AppSeen>,
}

#[derive(Default)]
struct AppSeen {
    inside: AtomicUsize,
    most: AtomicUsize,
    seen: AtomicUsize,
}

/// Leaves when it is dropped, whyever that is.
struct Inside(Arc<AppSeen>);

impl Drop for Inside {
    fn drop(&mut self) {
        self.0.inside.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Flood {
    async fn prepare(through: Through, changes: &[(&str, &str)]) -> Flood {
        let app = Arc::new(AppSeen::default());
        let (address, own) = apart(serve(app.clone()));
        let chain = Chain::start(through, address, changes);
        // What is made at the first request is no part of it.
        for _ in 0..3 {
            h1::ask(chain.main, b"GET / HTTP/1.1\r\nhost: a\r\n\r\n").await.unwrap();
            h2c::Client::open(chain.main).await.unwrap().ask(h2c::request("GET", "/")).await.unwrap();
        }
        let before = chain.pids().into_iter().map(|pid| resident_bytes(pid).expect("it runs")).collect();
        let over = Arc::new(AtomicBool::new(false));
        let (sidecar, until) = (chain.main, over.clone());
        let others = std::thread::spawn(move || runtime().block_on(others(sidecar, until)));
        Flood { chain, before, over, others, app, _app: own }
    }

    fn address(&self) -> SocketAddr {
        self.chain.main
    }

    /// Judges what the flood has done.
    async fn over(mut self, what: &str, memory: u64) {
        // The others see the time after it as well.
        sleep(Duration::from_millis(100)).await;
        self.over.store(true, Ordering::SeqCst);
        let (median, worst) = median_and_worst(self.others.join().unwrap());
        println!("{what}: others: median {median:?}, worst {worst:?}");
        // Each of them by itself may take so much.
        for (pid, before) in self.chain.pids().into_iter().zip(self.before) {
            let grown = peak_resident_bytes(pid).expect("it runs").saturating_sub(before);
            println!("{what}: {} KiB before, at most {} KiB more", before / KIB, grown / KIB);
            assert!(grown <= memory, "{what}: {} KiB more, and {} may be", grown / KIB, memory / KIB);
        }
        assert!(self.chain.is_running());
        assert!(worst < UNHURT, "{what}: somebody else waited {worst:?}");
        assert!(h1::ask(self.chain.main, b"GET / HTTP/1.1\r\nhost: a\r\n\r\n").await.unwrap().status == 200);
    }
}

/// The app and the others are on threads of their own: what is measured is the
/// sidecar, not how busy the flood itself makes its thread.
fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

/// Ends what it runs when it is dropped.
struct Apart {
    _alive: tokio::sync::oneshot::Sender<()>,
}

/// Starts an app on a thread of its own.
fn apart(app: impl Future<Output = SocketAddr> + Send + 'static) -> (SocketAddr, Apart) {
    let (alive, ended) = tokio::sync::oneshot::channel();
    let (tell, told) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        runtime().block_on(async move {
            tell.send(app.await).unwrap();
            let _ = ended.await;
        });
    });
    (told.recv().unwrap(), Apart { _alive: alive })
}

/// Asks again and again; how long each answer took.
async fn others(sidecar: SocketAddr, over: Arc<AtomicBool>) -> Vec<Duration> {
    let mut times = Vec::new();
    while !over.load(Ordering::SeqCst) {
        let began = Instant::now();
        let answer = h1::ask(sidecar, b"GET / HTTP/1.1\r\nhost: a\r\n\r\n").await.unwrap();
        assert_eq!((answer.status, answer.body.as_slice()), (200, &b"ok"[..]));
        times.push(began.elapsed());
        sleep(Duration::from_millis(5)).await;
    }
    times
}

/// `/large` is 1 MiB, `/slow` takes 200 ms, `/count` tells the bytes of the
/// fields; all else is quick.
async fn serve(seen: Arc<AppSeen>) -> SocketAddr {
    let large = bytes::Bytes::from(vec![b'x'; MIB as usize]);
    dual::app(move |call: Call| {
        let now = seen.inside.fetch_add(1, Ordering::SeqCst) + 1;
        seen.most.fetch_max(now, Ordering::SeqCst);
        seen.seen.fetch_add(1, Ordering::SeqCst);
        let (inside, large) = (Inside(seen.clone()), large.clone());
        async move {
            let _inside = inside;
            match call.path.as_str() {
                "/large" => Reply::ok(large),
                "/slow" => {
                    sleep(Duration::from_millis(200)).await;
                    Reply::ok("slow")
                }
                "/count" => {
                    let own = call.fields.iter().filter(|(name, _)| name.as_str().starts_with("x-field"));
                    Reply::ok(own.map(|(_, value)| value.len()).sum::<usize>().to_string())
                }
                _ => Reply::ok("ok"),
            }
        }
    })
    .await
}

/// Reads frames away until the connection ends; the code of its GOAWAY.
async fn read_away(mut stream: impl tokio::io::AsyncRead + Unpin) -> Option<u32> {
    let (mut seen, mut code) = (Vec::new(), None);
    while let Some(Frame { kind, payload, .. }) = frames::next(&mut stream, &mut seen).await {
        if kind == frames::kind::GOAWAY {
            code = payload.get(4..8).and_then(|code| Some(u32::from_be_bytes(code.try_into().ok()?)));
        }
    }
    code
}

/// Writes pieces until all are written, or the other side has had enough.
async fn pour(stream: &mut (impl AsyncWriteExt + Unpin), pieces: impl Iterator<Item = Vec<u8>>) -> bool {
    for piece in pieces {
        match timeout(Duration::from_secs(2), stream.write_all(&piece)).await {
            Ok(Ok(())) => {}
            // It closed, or it reads no more.
            Ok(Err(_)) | Err(_) => return false,
        }
    }
    true
}

/// Half heads, half bodies, and a preface with nothing behind it.
///
/// # Panics
/// When it does not hold.
pub async fn slow_senders_cost_little_each(through: Through) {
    const SENDERS: u64 = 300;
    let flood = Flood::prepare(through, &[]).await;
    let mut slow = Vec::new();
    for number in 0..SENDERS {
        let mut stream = TcpStream::connect(flood.address()).await.unwrap();
        let begins: &[u8] = match number % 3 {
            0 => b"GET / HTTP/1.1\r\nhost: a\r\nx: ",
            1 => b"POST /slow HTTP/1.1\r\nhost: a\r\ncontent-length: 1000000\r\n\r\n",
            _ => frames::PREFACE,
        };
        stream.write_all(begins).await.unwrap();
        slow.push(stream);
    }
    // A byte each, from time to time.
    for _ in 0..20 {
        for (number, stream) in slow.iter_mut().enumerate() {
            if number % 3 < 2 {
                stream.write_all(b"x").await.unwrap();
            }
        }
        sleep(Duration::from_millis(50)).await;
    }
    flood.over("slow senders", 4 * MIB + SENDERS * 48 * KIB).await;
}

/// Heads at both sides of the limit.
///
/// # Panics
/// When it does not hold.
pub async fn heads_of_100_000_bytes_pass_and_of_more_than_a_mebibyte_do_not(through: Through) {
    const CLIENTS: usize = 20;
    let flood = Flood::prepare(through, &[]).await;
    let mut asked = JoinSet::new();
    for number in 0..CLIENTS {
        let address = flood.address();
        asked.spawn(async move {
            let lines = match number % 2 {
                0 => format!("x-field: {}\r\n", "y".repeat(100_000)),
                _ => format!("x-field: {}\r\n", "y".repeat(100)).repeat(1000),
            };
            let request = format!("GET /count HTTP/1.1\r\nhost: a\r\n{lines}\r\n");
            let answer = h1::ask(address, request.as_bytes()).await.unwrap();
            assert_eq!((answer.status, String::from_utf8_lossy(&answer.body).as_ref()), (200, "100000"), "{number}");
            let client = h2c::Client::open(address).await.unwrap();
            let mut head = h2c::request("GET", "/count");
            // As many as HTTP/2's own count of 32 bytes a field leaves room for.
            for _ in 0..100 {
                head.headers_mut().append("x-field", "y".repeat(1000).parse().unwrap());
            }
            let answer = client.ask(head).await.unwrap();
            assert_eq!((answer.status, answer.body.as_slice()), (200, &b"100000"[..]));
        });
    }
    asked.join_all().await;
    for _ in 0..5 {
        let mut conn = Conn::open(flood.address()).await.unwrap();
        let head = format!("GET / HTTP/1.1\r\nhost: a\r\nx: {}\r\n\r\n", "y".repeat(2 << 20));
        let _ = timeout(PATIENCE, conn.send(head.as_bytes())).await.expect("it is read or refused");
        let status = conn.answer().await.map(|answer| answer.status);
        assert!(matches!(status, Ok(431) | Err(_)), "{status:?}");
    }
    flood.over("large heads", 32 * MIB).await;
}

/// When a stream is reset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Resets {
    /// In the breath in which it is opened.
    AtOnce,
    /// When its request has had the time to reach the app.
    Later,
}

/// Opens streams and resets them, a hundred at a time.
async fn rapid_resets(sidecar: SocketAddr, method: &'static str, streams: u32, when: Resets) {
    let head = fields(&[(":method", method), (":scheme", "http"), (":authority", "a"), (":path", "/slow")]);
    let stream = frames::open(sidecar, &[]).await.unwrap();
    let (read, mut write) = stream.into_split();
    let reading = tokio::spawn(read_away(read));
    let ended = if method == "GET" { END_STREAM } else { 0 };
    for hundred in 0..streams / 100 {
        let ids = (0..100).map(|n| 2 * (hundred * 100 + n) + 1);
        let opened = ids.clone().map(|id| frame(kind::HEADERS, END_HEADERS | ended, id, &head));
        let reset = ids.map(|id| frame(kind::RST_STREAM, 0, id, &8u32.to_be_bytes()));
        let goes_on = match when {
            Resets::AtOnce => pour(&mut write, opened.zip(reset).map(|(opened, reset)| [opened, reset].concat())).await,
            Resets::Later => {
                let opened = pour(&mut write, opened).await;
                sleep(Duration::from_millis(5)).await;
                opened && pour(&mut write, reset).await
            }
        };
        if !goes_on {
            break;
        }
    }
    drop(write);
    let _ = timeout(PATIENCE, reading).await.expect("the connection ends");
}

/// Rapid reset.
///
/// # Panics
/// When it does not hold.
pub async fn ten_thousand_streams_opened_and_reset_leave_nothing_behind(through: Through) {
    let flood = Flood::prepare(through, &[("CONTAINER_CONCURRENCY", "10")]).await;
    let app = flood.app.clone();
    for when in [Resets::AtOnce, Resets::Later] {
        for method in ["GET", "POST"] {
            // One that comes back when it is told to go, as an attacker does.
            for _ in 0..10 {
                rapid_resets(flood.address(), method, 500, when).await;
            }
        }
    }
    let most = app.most.load(Ordering::SeqCst);
    println!("the app saw {} requests, at most {most} at once", app.seen.load(Ordering::SeqCst));
    // The app may not have heard yet that one was given up when the next comes.
    assert!(most <= 2 * 10 + 2, "{most} at the app at once");
    let began = Instant::now();
    while app.inside.load(Ordering::SeqCst) > 1 {
        assert!(began.elapsed() < PATIENCE, "requests are left at the app");
        sleep(Duration::from_millis(5)).await;
    }
    flood.over("rapid resets", 16 * MIB).await;
}

/// A flood of CONTINUATION.
///
/// # Panics
/// When it does not hold.
pub async fn a_head_that_never_ends_is_cut_off(through: Through) {
    let flood = Flood::prepare(through, &[]).await;
    let mut clients = JoinSet::new();
    for _ in 0..5 {
        let stream = frames::open(flood.address(), &[]).await.unwrap();
        clients.spawn(async move {
            let (read, mut write) = stream.into_split();
            let reading = tokio::spawn(read_away(read));
            let name = fields(&[("x-more", &"y".repeat(1000))]);
            let first = std::iter::once(frame(kind::HEADERS, 0, 1, &fields(frames::GET)));
            let rest = std::iter::repeat_n(frame(kind::CONTINUATION, 0, 1, &name), 20_000);
            let whole = pour(&mut write, first.chain(rest)).await;
            // Also with nothing in the frames.
            let whole =
                whole && pour(&mut write, std::iter::repeat_n(frame(kind::CONTINUATION, 0, 1, &[]), 50_000)).await;
            if whole {
                // All of it was read: then it must have been thrown away.
                write.shutdown().await.unwrap();
            }
            drop(write);
            let _ = timeout(PATIENCE, reading).await.expect("the connection ends");
        });
    }
    clients.join_all().await;
    flood.over("heads without an end", 16 * MIB).await;
}

/// Floods of SETTINGS and PING.
///
/// # Panics
/// When it does not hold.
pub async fn settings_and_pings_that_nobody_reads_the_answers_to_do_not_pile_up(through: Through) {
    let flood = Flood::prepare(through, &[]).await;
    let mut clients = JoinSet::new();
    for number in 0..6 {
        let stream = frames::open(flood.address(), &[]).await.unwrap();
        clients.spawn(async move {
            let (read, mut write) = stream.into_split();
            let one = match number % 3 {
                0 => frame(kind::SETTINGS, 0, 0, &[0, 3, 0, 0, 0, 100]),
                1 => frame(kind::PING, 0, 0, b"12345678"),
                _ => frame(kind::SETTINGS, 0, 0, &[]),
            };
            let block = one.repeat(1000);
            // 300,000 of them, unless it reads no more.
            pour(&mut write, std::iter::repeat_n(block, 300)).await;
            drop((read, write));
        });
    }
    clients.join_all().await;
    flood.over("settings and pings", 16 * MIB).await;
}

/// Windows of 0 and 1 byte, and clients that do not read.
///
/// # Panics
/// When it does not hold.
pub async fn clients_that_open_no_window_do_not_make_it_buffer_whole_answers(through: Through) {
    const STREAMS: u32 = 100;
    let flood = Flood::prepare(through, &[]).await;
    let mut held = Vec::new();
    let mut head = frames::GET.to_vec();
    head[3].1 = "/large";
    let head = fields(&head);
    for window in [0, 1] {
        // The initial window of a stream; none is ever made larger.
        let mut stream = frames::open(flood.address(), &[(4, window)]).await.unwrap();
        stream.write_all(&frame(kind::SETTINGS, ACK, 0, &[])).await.unwrap();
        for number in 0..STREAMS {
            let opened = frame(kind::HEADERS, END_HEADERS | END_STREAM, 2 * number + 1, &head);
            stream.write_all(&opened).await.unwrap();
        }
        held.push(stream);
    }
    // Over HTTP/1: nobody reads.
    for _ in 0..50 {
        let mut conn = Conn::open(flood.address()).await.unwrap();
        conn.send(b"GET /large HTTP/1.1\r\nhost: a\r\n\r\n").await.unwrap();
        held.push(conn.stream);
    }
    let wanted = 2 * STREAMS as usize + 50;
    let began = Instant::now();
    while flood.app.seen.load(Ordering::SeqCst) < wanted {
        assert!(began.elapsed() < PATIENCE, "{} at the app", flood.app.seen.load(Ordering::SeqCst));
        sleep(Duration::from_millis(5)).await;
    }
    sleep(Duration::from_millis(500)).await;
    // 250 MiB of answers.
    flood.over("no window", 32 * MIB).await;
}
