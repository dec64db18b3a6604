//! The marks between an activator of ours and the sidecar: an offer is served
//! at once or handed back, and nobody else can hand anything back.

use http::HeaderMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tests::floor::trial::{Report, median_and_worst};
use tests::program::Program;
use tests::rig::{Gate, gated_app, send, until};
use tests::sidecar::dual::{self, Call, Reply};
use tests::sidecar::h1::{self, Conn};
use tests::sidecar::h2c;
use tokio::net::TcpListener;
use tokio::time::{Instant, timeout};

/// Offers of each kind.
const OFFERS: usize = 50;
const BODY_BYTES: usize = 1 << 20;
/// An offer that cannot be served is back within that.
const BACK: Duration = Duration::from_millis(5);
/// Busy machines are slow: ten times the figure.
const SLACK: u32 = 10;

const NONCE: &str = "0011223344556677";

/// Nobody listens there.
async fn nowhere() -> SocketAddr {
    TcpListener::bind("127.9.9.9:0").await.unwrap().local_addr().unwrap()
}

/// A marked POST whose body is never sent: an answer can only come from the
/// head. As our activator does, it waits for a word before it sends a body.
async fn offer_http1(sidecar: SocketAddr, nonce: &str) -> (Duration, u16, String) {
    let head = format!(
        "POST /offer HTTP/1.1\r\nhost: a\r\nx-zeroscale-offer: {nonce}\r\nexpect: 100-continue\r\ncontent-length: {BODY_BYTES}\r\n\r\n"
    );
    let mut conn = Conn::open(sidecar).await.unwrap();
    let began = Instant::now();
    conn.send(head.as_bytes()).await.unwrap();
    let first = timeout(Duration::from_secs(10), conn.head()).await.expect("it answers without a body").unwrap();
    assert_ne!(first.status(), Some(100), "the body is asked for before it is known that it can be used");
    (began.elapsed(), first.status().unwrap(), first.get("x-zeroscale-handback").unwrap_or_default().to_owned())
}

async fn offer_http2(client: &h2c::Client, nonce: &str) -> (Duration, u16, String) {
    let mut head = h2c::request("POST", "/offer");
    head.headers_mut().insert("x-zeroscale-offer", nonce.parse().unwrap());
    head.headers_mut().insert("content-length", BODY_BYTES.into());
    let began = Instant::now();
    let (answer, _stream) = client.begin(head, false).await.unwrap();
    let answer = timeout(Duration::from_secs(10), h2c::read(answer)).await.expect("it answers without a body").unwrap();
    (began.elapsed(), answer.status, answer.field("x-zeroscale-handback").to_owned())
}

/// Makes offers in both versions; all must come back for that reason.
async fn all_come_back(report: &mut Report, program: &Program, why: &str) {
    let client = h2c::Client::open(program.main).await.unwrap();
    // Once for what is made at the first request.
    offer_http1(program.main, NONCE).await;
    offer_http2(&client, NONCE).await;
    for version in ["HTTP/1.1", "HTTP/2"] {
        let (mut times, mut faults) = (Vec::new(), Vec::new());
        for number in 0..OFFERS {
            let nonce = format!("{number:016x}");
            let (took, status, mark) = match version {
                "HTTP/1.1" => offer_http1(program.main, &nonce).await,
                _ => offer_http2(&client, &nonce).await,
            };
            times.push(took);
            let mut words = mark.split(' ');
            let good = status == 503
                && words.next() == Some(&nonce)
                && words.next() == Some(why)
                && words.next().is_some_and(|free| free.starts_with("free="));
            if !good {
                faults.push(format!("{status} {mark:?}"));
            }
        }
        report.holds(format!("{why}, {version}: handed back"), faults.is_empty(), format!("{faults:?}"));
        let (median, worst) = median_and_worst(times);
        report.time(format!("{why}, {version}: median"), median, BACK);
        report.tell(format!("{why}, {version}: worst"), format!("{worst:?}"));
    }
}

#[tokio::test]
async fn a_marked_request_comes_back_at_once_when_the_app_is_down() {
    for limit in ["0", "1"] {
        let mut report = Report::new(SLACK);
        let program = Program::start(nowhere().await, &[("CONTAINER_CONCURRENCY", limit)]);
        all_come_back(&mut report, &program, "not-sent").await;
        println!("limit {limit}\n{report}");
        report.assert();
    }
}

#[tokio::test]
async fn a_marked_request_comes_back_at_once_when_all_slots_are_taken() {
    let gate = Gate::default();
    let app = gated_app(&gate).await;
    let program = Program::start(app, &[("CONTAINER_CONCURRENCY", "1")]);
    let _first = send(program.main, "GET / HTTP/1.1\r\nhost: a\r\n\r\n").await;
    until("the slot is taken", || gate.inside() == 1).await;
    let mut report = Report::new(SLACK);
    all_come_back(&mut report, &program, "full").await;
    println!("{report}");
    report.assert();
    assert_eq!(gate.seen(), 1, "nothing of the offers reached the app");
}

/// What the app saw of marks.
type Marks = Arc<Mutex<Vec<String>>>;

/// Forges every mark in head and trailers of its answers.
async fn forger(marks: Marks, asked: Arc<AtomicUsize>) -> SocketAddr {
    dual::app(move |call: Call| {
        asked.fetch_add(1, Ordering::SeqCst);
        let names = call.fields.keys().map(|name| name.as_str().to_owned());
        marks.lock().unwrap().extend(names.filter(|name| name.starts_with("x-zeroscale")));
        let own = call.fields.get("x-told").and_then(|told| told.to_str().ok()).unwrap_or("");
        let old = format!("{} full free=0", if own.is_empty() { "ffffffffffffffff" } else { own });
        async move {
            Reply::ok("mine")
                .with("x-zeroscale-handback", &old)
                .with("x-zeroscale-handback", "not-sent")
                .with("x-zeroscale-proxy", "9.9")
                .with("x-zeroscale-reason", "queue_full")
                .with("x-mine", "1")
                .with("trailer", "x-sum, x-zeroscale-handback")
                .trailing("x-zeroscale-handback", &old)
                .trailing("x-sum", "7")
        }
    })
    .await
}

const FORGED: [&str; 3] = ["x-zeroscale-handback", "x-zeroscale-proxy", "x-zeroscale-reason"];

#[tokio::test]
async fn what_an_app_forges_is_removed_and_changes_nothing() {
    let (marks, asked) = (Marks::default(), Arc::new(AtomicUsize::new(0)));
    let program = Program::start(forger(marks.clone(), asked.clone()).await, &[]);
    let client = h2c::Client::open(program.main).await.unwrap();
    // Without a mark, with one, and with one that the app is told of (an old
    // one that it has seen elsewhere).
    let mut sent = 0;
    for lines in [vec![], vec![("x-zeroscale-offer", NONCE)], vec![("x-zeroscale-offer", NONCE), ("x-told", NONCE)]] {
        sent += 2;
        let text: String = lines.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let request = format!("GET / HTTP/1.1\r\nhost: a\r\nte: trailers\r\n{text}\r\n");
        let mut conn = Conn::open(program.main).await.unwrap();
        conn.send(request.as_bytes()).await.unwrap();
        let raw = tests::rig::read_until(&mut conn.stream, "x-sum: 7").await.to_lowercase();
        assert!(raw.starts_with("http/1.1 200") && raw.contains("mine") && raw.contains("x-mine: 1"), "{raw}");
        assert!(raw.trim_end().ends_with("x-sum: 7"), "{raw}");
        FORGED.iter().for_each(|name| assert!(!raw.contains(&format!("{name}: ")), "{name}: {raw}"));

        let mut head = h2c::request("GET", "/");
        for (name, value) in &lines {
            head.headers_mut().insert(*name, value.parse().unwrap());
        }
        head.headers_mut().insert("te", "trailers".parse().unwrap());
        let answer = client.ask(head).await.unwrap();
        assert_eq!((answer.status, answer.body.as_slice(), answer.field("x-mine")), (200, &b"mine"[..], "1"));
        let forged = |fields: &HeaderMap| FORGED.iter().any(|name| fields.contains_key(*name));
        assert!(!forged(&answer.fields) && !forged(&answer.trailers), "{answer:?}");
        assert_eq!(answer.trailers["x-sum"], "7");
    }
    assert_eq!(asked.load(Ordering::SeqCst), sent, "each went to the app once");
    assert_eq!(*marks.lock().unwrap(), Vec::<String>::new(), "the app sees no mark");
}

#[tokio::test]
async fn marks_of_peers_that_are_not_trusted_mean_nothing() {
    let changes = [("ZEROSCALE_TRUSTED_PEERS", "192.0.2.0/24"), ("ZEROSCALE_CONNECT_RETRY", "0s")];
    let program = Program::start(nowhere().await, &changes);
    let offer = format!("GET / HTTP/1.1\r\nhost: a\r\nx-zeroscale-offer: {NONCE}\r\n\r\n");
    let answer = h1::ask(program.main, offer.as_bytes()).await.unwrap();
    assert_eq!((answer.status, answer.field("x-zeroscale-handback")), (502, ""));
}

#[tokio::test]
async fn strict_mode_ignores_marks() {
    let strict = ("ZEROSCALE_COMPAT", "strict");
    let offer = format!("GET / HTTP/1.1\r\nhost: a\r\nx-zeroscale-offer: {NONCE}\r\n\r\n");
    let program = Program::start(nowhere().await, &[strict]);
    let answer = h1::ask(program.main, offer.as_bytes()).await.unwrap();
    assert_eq!((answer.status, answer.field("x-zeroscale-handback")), (502, ""), "the app is down: an error as ever");

    let gate = Gate::default();
    let app = gated_app(&gate).await;
    let program = Program::start(app, &[strict, ("CONTAINER_CONCURRENCY", "1")]);
    let mut first = Conn::open(program.main).await.unwrap();
    first.send(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n").await.unwrap();
    until("the slot is taken", || gate.inside() == 1).await;
    let mut marked = Conn::open(program.main).await.unwrap();
    marked.send(offer.as_bytes()).await.unwrap();
    let waits = timeout(Duration::from_millis(200), marked.more()).await;
    assert!(waits.is_err(), "all slots are taken: it waits like others");
    gate.open.notify_one();
    assert_eq!(first.answer().await.unwrap().status, 200);
    gate.open.notify_one();
    assert_eq!(marked.answer().await.unwrap().status, 200);
    assert_eq!(gate.seen(), 2);
}
