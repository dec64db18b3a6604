//! Pods that are asked for their stats: many that answer well, and some that
//! do what none should. All of them are one server, on addresses of their own.

use proto::stats::Stat;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::sleep;

/// What a pod does when it is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Manner {
    /// A body without end, as fast as it goes.
    EndlessBody,
    /// A body of 1 GB, slowly.
    SlowGigabyte,
    /// One byte of the head a second.
    Drip,
    /// A head without end.
    EndlessHead,
    /// Interim answers without end.
    Interims,
    /// Nothing at all.
    Mute,
    /// It breaks off.
    Reset,
    /// It sends what is no HTTP.
    NoHttp,
    /// A number that is none.
    NotANumber,
    /// More than any number.
    Infinite,
    /// The same, below zero.
    MinusInfinite,
    /// Less than nothing.
    Negative,
    /// More than any load.
    Huge,
    /// Another pod's stat.
    OtherName,
    /// A redirect to itself.
    Redirect,
    /// As a mesh answers.
    Hidden,
    /// Another content type.
    Text,
    /// Bytes that are no stat.
    Garbage,
}

impl Manner {
    /// All of them, each with the reason by which it is counted.
    pub const ALL: [(Manner, &'static str); 18] = [
        (Manner::EndlessBody, "too-long"),
        (Manner::SlowGigabyte, "too-long"),
        (Manner::Drip, "timeout"),
        (Manner::EndlessHead, "broken"),
        (Manner::Interims, "broken"),
        (Manner::Mute, "timeout"),
        (Manner::Reset, "broken"),
        (Manner::NoHttp, "broken"),
        (Manner::NotANumber, "not-finite"),
        (Manner::Infinite, "not-finite"),
        (Manner::MinusInfinite, "not-finite"),
        (Manner::Negative, "negative"),
        (Manner::Huge, "absurd"),
        (Manner::OtherName, "wrong-pod"),
        (Manner::Redirect, "status"),
        (Manner::Hidden, "mesh"),
        (Manner::Text, "content-type"),
        (Manner::Garbage, "format"),
    ];

    /// Its pod's name, and its revision's.
    pub fn name(self) -> String {
        format!("{self:?}").to_lowercase()
    }
}

/// The address of the pod that answers well with this number.
pub fn well(number: usize) -> Ipv4Addr {
    Ipv4Addr::new(127, 10, (number / 250) as u8, 1 + (number % 250) as u8)
}

/// The address of the pod with this manner; `which` tells several apart.
pub fn hostile(manner: Manner, which: u8) -> Ipv4Addr {
    Ipv4Addr::new(127, 20, which, 1 + manner as u8)
}

/// Pods, on a thread of their own until the process ends.
pub struct Pods {
    /// The port of their stats.
    pub port: u16,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    /// Requests in progress at each one that answers well, as bits.
    load: AtomicU64,
    asked: [AtomicUsize; Manner::ALL.len()],
    asked_well: AtomicUsize,
}

impl Pods {
    /// Without load.
    ///
    /// # Panics
    /// When no port is to be had.
    pub fn start() -> Pods {
        let listener = std::net::TcpListener::bind("0.0.0.0:0").expect("a free port");
        listener.set_nonblocking(true).expect("a listener");
        let port = listener.local_addr().expect("an address").port();
        let shared = Arc::new(Shared::default());
        let serving = shared.clone();
        thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(async {
                let listener = TcpListener::from_std(listener).expect("a listener");
                loop {
                    match listener.accept().await {
                        Ok((stream, _)) => drop(tokio::spawn(serve(stream, serving.clone()))),
                        Err(_) => sleep(Duration::from_millis(1)).await,
                    }
                }
            });
        });
        Pods { port, shared }
    }

    /// Sets the load of each pod that answers well.
    pub fn carry(&self, load: f64) {
        self.shared.load.store(load.to_bits(), Ordering::SeqCst);
    }

    /// How often a pod with this manner was asked.
    pub fn asked(&self, manner: Manner) -> usize {
        self.shared.asked[manner as usize].load(Ordering::SeqCst)
    }

    /// How often those that answer well were asked.
    pub fn asked_well(&self) -> usize {
        self.shared.asked_well.load(Ordering::SeqCst)
    }
}

async fn serve(mut stream: TcpStream, shared: Arc<Shared>) {
    let _ = stream.set_nodelay(true);
    let Ok(SocketAddr::V4(here)) = stream.local_addr() else { return };
    let [_, kind, high, low] = here.ip().octets();
    if kind == 20 {
        let (manner, _) = Manner::ALL[usize::from(low) - 1];
        let _ = misbehave(&mut stream, manner, &shared).await;
        return;
    }
    let name = format!("well-{}", usize::from(high) * 250 + usize::from(low) - 1);
    while asked(&mut stream).await {
        shared.asked_well.fetch_add(1, Ordering::SeqCst);
        let load = f64::from_bits(shared.load.load(Ordering::SeqCst));
        if answer(&mut stream, &stat(&name, load)).await.is_err() {
            return;
        }
    }
}

async fn asked(stream: &mut TcpStream) -> bool {
    let mut head = Vec::new();
    let mut piece = [0; 1024];
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read(&mut piece).await {
            Ok(read @ 1..) => head.extend_from_slice(&piece[..read]),
            _ => return false,
        }
    }
    true
}

fn stat(name: &str, average: f64) -> Vec<u8> {
    let of = Stat { average_concurrent_requests: average, process_uptime: 100.0, ..Stat::of_pod(name) };
    proto::encode(&of)
}

async fn answer(stream: &mut TcpStream, body: &[u8]) -> std::io::Result<()> {
    let head =
        format!("HTTP/1.1 200 OK\r\ncontent-type: application/protobuf\r\ncontent-length: {}\r\n\r\n", body.len());
    stream.write_all(&[head.as_bytes(), body].concat()).await
}

/// Answers each question by its manner, until the connection is closed.
async fn misbehave(stream: &mut TcpStream, manner: Manner, shared: &Shared) -> std::io::Result<()> {
    const OK: &str = "HTTP/1.1 200 OK\r\ncontent-type: application/protobuf\r\n";
    while asked(stream).await {
        shared.asked[manner as usize].fetch_add(1, Ordering::SeqCst);
        let name = manner.name();
        let of_value = |value: f64| stat(&name, value);
        match manner {
            Manner::EndlessBody => {
                stream.write_all(format!("{OK}\r\n").as_bytes()).await?;
                loop {
                    stream.write_all(&[10; 1 << 16]).await?;
                }
            }
            Manner::SlowGigabyte => {
                stream.write_all(format!("{OK}content-length: 1000000000\r\n\r\n").as_bytes()).await?;
                loop {
                    stream.write_all(&[10; 100]).await?;
                    sleep(Duration::from_millis(50)).await;
                }
            }
            Manner::Drip => {
                for byte in OK.bytes().chain(std::iter::repeat(b'a')) {
                    stream.write_all(&[byte]).await?;
                    sleep(Duration::from_secs(1)).await;
                }
            }
            Manner::EndlessHead => {
                stream.write_all(OK.as_bytes()).await?;
                loop {
                    stream.write_all(format!("x-more: {}\r\n", "a".repeat(1000)).as_bytes()).await?;
                }
            }
            Manner::Interims => loop {
                stream.write_all(b"HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n").await?;
            },
            Manner::Mute => sleep(Duration::from_secs(3600)).await,
            Manner::Reset => return Ok(()),
            Manner::NoHttp => stream.write_all(b"this is not what was asked for\r\n\r\n").await?,
            Manner::NotANumber => answer(stream, &of_value(f64::NAN)).await?,
            Manner::Infinite => answer(stream, &of_value(f64::INFINITY)).await?,
            Manner::MinusInfinite => answer(stream, &of_value(f64::NEG_INFINITY)).await?,
            Manner::Negative => answer(stream, &of_value(-5.0)).await?,
            Manner::Huge => answer(stream, &of_value(1e308)).await?,
            Manner::OtherName => answer(stream, &stat("somebody-else", 7.0)).await?,
            Manner::Redirect => {
                let to = format!("location: http://{}/metrics\r\n", stream.local_addr()?);
                let head = format!("HTTP/1.1 302 Found\r\n{to}content-length: 0\r\n\r\n");
                stream.write_all(head.as_bytes()).await?;
            }
            Manner::Hidden => {
                stream.write_all(b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\n\r\n").await?;
            }
            Manner::Text => {
                let head = "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 2\r\n\r\nok";
                stream.write_all(head.as_bytes()).await?;
            }
            Manner::Garbage => answer(stream, b"\xff\xff\xff").await?,
        }
    }
    Ok(())
}
