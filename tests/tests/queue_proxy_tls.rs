//! The main port over TLS, by the real binary: what is agreed, certificates
//! that change, and the end.

use std::net::SocketAddr;
use std::time::Duration;
use tests::program::Program;
use tests::replay::cases::case::Tls;
use tests::replay::cases::tls::{Mounted, Trust, secure};
use tests::rig::{self, GET, OK, read_head, read_to_end, send};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, timeout};
use tokio_rustls::client::TlsStream;

const UPGRADE: &[u8] = b"GET /up HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: echo\r\n\r\n";

/// `/up` switches to an echo, all else is answered with `ok`.
async fn app() -> SocketAddr {
    rig::app(|mut stream| async move {
        loop {
            let head = read_head(&mut stream).await;
            if head.starts_with("GET /up") {
                let switch = b"HTTP/1.1 101 S\r\nconnection: upgrade\r\nupgrade: echo\r\n\r\n";
                stream.write_all(switch).await.unwrap();
                let (mut read, mut write) = stream.split();
                let _ = tokio::io::copy(&mut read, &mut write).await;
                return;
            }
            if head.is_empty() || stream.write_all(OK).await.is_err() {
                return;
            }
        }
    })
    .await
}

/// The sidecar and its port over TLS.
async fn started(mounted: &Mounted) -> (Program, SocketAddr) {
    let folder = mounted.folder().to_str().expect("a path");
    let changes = [("ZEROSCALE_CERT_DIR", folder), ("ZEROSCALE_DRAIN_SETTLE", "200ms")];
    let mut program = Program::start(app().await, &changes);
    let port = program.port("main-tls");
    (program, port)
}

async fn client(address: SocketAddr, trust: &Trust, alpn: &[&str]) -> std::io::Result<TlsStream<TcpStream>> {
    let stream = TcpStream::connect(address).await?;
    let wanted = Tls { max: None, alpn: alpn.iter().map(|name| (*name).to_owned()).collect() };
    Ok(secure(stream, &wanted, Some(trust)).await?.0)
}

/// Sends, and reads until so many answers have come.
async fn ask(stream: &mut TlsStream<TcpStream>, requests: &[u8], answers: usize) -> String {
    stream.write_all(requests).await.unwrap();
    let mut seen = Vec::new();
    let reading = async {
        let mut chunk = [0; 4096];
        while String::from_utf8_lossy(&seen).matches("\r\n\r\nok").count() < answers {
            let n = stream.read(&mut chunk).await.unwrap();
            assert!(n > 0, "closed after {:?}", String::from_utf8_lossy(&seen));
            seen.extend_from_slice(&chunk[..n]);
        }
    };
    let came = timeout(rig::PATIENCE, reading).await;
    let seen = String::from_utf8_lossy(&seen).into_owned();
    assert!(came.is_ok(), "only {seen:?}");
    seen
}

#[tokio::test]
async fn requests_are_served_and_counted_as_on_the_plain_port() {
    let mounted = Mounted::new().unwrap();
    let (program, port) = started(&mounted).await;
    let mut http1 = client(port, &mounted.trust, &["http/1.1"]).await.unwrap();
    ask(&mut http1, GET.as_bytes(), 1).await;
    // Several in one record: there is nothing more for the kernel to tell.
    ask(&mut http1, GET.repeat(3).as_bytes(), 3).await;
    let stream = client(port, &mounted.trust, &["h2"]).await.unwrap();
    let (mut h2, connection) = h2::client::handshake(stream).await.unwrap();
    let driver = tokio::spawn(connection);
    // One that the app need not speak HTTP/2 for.
    let probe =
        http::Request::get("https://a/").header("user-agent", "kube-probe/1").header("k-network-probe", "queue");
    let (answer, _) = h2.send_request(probe.body(()).unwrap(), true).unwrap();
    let mut body = answer.await.unwrap().into_body();
    assert_eq!(body.data().await.unwrap().unwrap(), "queue");
    let (plain, ended) = read_to_end(&mut send(program.main, "GET / HTTP/1.0\r\n\r\n").await).await;
    assert!(ended && plain.ends_with("ok"), "{plain}");
    let mut tunnel = client(port, &mounted.trust, &[]).await.unwrap();
    tunnel.write_all(UPGRADE).await.unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(tunnel.read_u8().await.unwrap());
    }
    tunnel.write_all(b"through").await.unwrap();
    let mut echo = [0; 7];
    tunnel.read_exact(&mut echo).await.unwrap();
    assert_eq!(&echo, b"through");
    program.stat_with("the tunnel is counted", |stat| stat.average_concurrent_requests == 1.0).await;
    driver.abort();
}

#[tokio::test]
async fn a_new_certificate_is_shown_soon_and_a_broken_one_never() {
    let mut mounted = Mounted::new().unwrap();
    let (mut program, port) = started(&mounted).await;
    let mut kept = client(port, &mounted.trust, &[]).await.unwrap();
    ask(&mut kept, GET.as_bytes(), 1).await;
    let old = mounted.renew().unwrap();
    let began = Instant::now();
    while client(port, &mounted.trust, &[]).await.is_err() {
        assert!(began.elapsed() < rig::PATIENCE, "the new certificate is not shown");
        sleep(Duration::from_millis(50)).await;
    }
    assert!(client(port, &old, &[]).await.is_err(), "the old one is gone");
    ask(&mut kept, GET.as_bytes(), 1).await;
    std::fs::write(mounted.folder().join("tls.key"), "no key").unwrap();
    let began = Instant::now();
    let told = |program: &Program| program.lines().iter().any(|line| line.contains("of no use; the old one stays"));
    while !told(&program) {
        assert!(began.elapsed() < rig::PATIENCE, "{:#?}", program.lines());
        assert!(client(port, &mounted.trust, &[]).await.is_ok(), "the one before stays");
        sleep(Duration::from_millis(50)).await;
    }
    assert!(client(port, &mounted.trust, &[]).await.is_ok());
    program.terminate();
    assert_eq!(program.ended().await, 0);
    let lines = program.lines();
    assert_eq!(lines.iter().filter(|line| line.contains("of no use")).count(), 1, "{lines:#?}");
}

#[tokio::test]
async fn http_to_the_tls_port_is_told_so() {
    let mounted = Mounted::new().unwrap();
    let (_program, port) = started(&mounted).await;
    let (answer, ended) = read_to_end(&mut send(port, GET).await).await;
    let expected = "HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n";
    assert!(ended && answer == expected, "{answer:?}");
}

#[tokio::test]
async fn handshakes_that_never_end_do_not_hold_the_end() {
    let mounted = Mounted::new().unwrap();
    let (mut program, port) = started(&mounted).await;
    let _silent = TcpStream::connect(port).await.unwrap();
    let mut half = TcpStream::connect(port).await.unwrap();
    half.write_all(b"\x16\x03\x01\x02\x00\x01").await.unwrap();
    let mut idle = client(port, &mounted.trust, &[]).await.unwrap();
    ask(&mut idle, GET.as_bytes(), 1).await;
    program.terminate();
    let began = Instant::now();
    assert_eq!(program.ended().await, 0);
    // Less than a handshake may take.
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    assert!(TcpStream::connect(port).await.is_err());
}

#[tokio::test]
async fn a_pair_of_no_use_at_the_start_ends_it() {
    let mounted = Mounted::new().unwrap();
    std::fs::write(mounted.folder().join("tls.key"), "no key").unwrap();
    let (code, lines) = tests::program::run(&[("ZEROSCALE_CERT_DIR", mounted.folder().to_str().unwrap())], &[]);
    assert_eq!(code, 1);
    assert!(lines.iter().any(|line| line.contains("the key cannot be read")), "{lines:#?}");
}
