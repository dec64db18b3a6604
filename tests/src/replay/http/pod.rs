//! Pods that follow a script.

use super::super::cases::latin;
use super::super::cases::wire::{Body, Framing, Head};
use super::row::Row;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::sleep;

/// What a pod does with a request.
#[derive(Clone, Copy, Debug)]
enum Act {
    /// Writes this.
    Send(&'static str),
    /// Reads the body to its end.
    ReadBody,
    /// The same, without a word about it.
    SkipBody,
    /// Does nothing for a time.
    Pause(u64),
    /// Answers whatever comes, with `echo:` before it.
    Echo,
    /// Waits until the other side has gone.
    Hold,
}

use Act::{Echo, Hold, Pause, ReadBody, Send, SkipBody};

const READY: &str = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nqueue";
const HI: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi";
const HI_FROM_POD: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX-From: pod\r\n\r\nhi";
const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
const CHUNKED: &str = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
const ABC: &str = "3\r\nabc\r\n";

/// By the labels of the rows, what its pod does with each request.
fn script(number: u32) -> &'static [Act] {
    match number {
        17 => &[Send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n")],
        18..=20 => &[ReadBody, Send(OK)],
        21 => &[Send("HTTP/1.1 100 Continue\r\n\r\n"), SkipBody, Send(OK)],
        // Longer than any limit of the row, in either mode.
        44 => &[
            Send(CHUNKED),
            Send(ABC),
            Pause(600),
            Send(ABC),
            Pause(600),
            Send(ABC),
            Pause(600),
            Send(ABC),
            Pause(600),
            Send("0\r\n\r\n"),
        ],
        45 => &[
            Send("HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\nabc"),
            Pause(600),
            Send("abc"),
            Pause(600),
            Send("abc"),
            Pause(1200),
            Send("abc"),
        ],
        46 => &[
            Send(CHUNKED),
            Send(ABC),
            Pause(530),
            Send(ABC),
            Pause(530),
            Send(ABC),
            Pause(530),
            Send(ABC),
            Send("0\r\n\r\n"),
        ],
        47 => &[Send(CHUNKED), Send(ABC), Pause(750), Send(ABC), Pause(750), Send(ABC), Send("0\r\n\r\n")],
        49 => &[],
        50 => &[Send("nonsense\r\n\r\n")],
        51 => &[Send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\npart")],
        52 => &[
            Send("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"),
            Send("8\r\ndata: 1\n\r\n"),
            Hold,
        ],
        53 => &[Send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc"), Hold],
        54 => &[Send(HI), Hold],
        55 => &[Send("HTTP/1.1 503 Service Unavailable\r\nContent-Length: 26\r\n\r\npending request queue full")],
        56 => &[Send("HTTP/1.1 103 Early Hints\r\nLink: </x>; rel=preload\r\n\r\n"), Send(HI)],
        57 => &[Send(
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: X-Gone\r\nX-Gone: 1\r\nKeep-Alive: timeout=5\r\n\
             Proxy-Authenticate: x\r\n\r\nhi",
        )],
        58 | 61..=63 => &[
            Send(
                "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
                 Sec-Websocket-Accept: x\r\n\r\n",
            ),
            Echo,
        ],
        59 | 60 => &[Send(HI)],
        _ => &[Send(HI_FROM_POD)],
    }
}

/// A pod of one row.
#[derive(Clone)]
pub(super) struct Pod {
    number: u32,
    received: Arc<Mutex<Vec<u8>>>,
    requests: Arc<AtomicU32>,
}

impl Pod {
    pub(super) fn of(row: &Row) -> Pod {
        Pod { number: row.number(), received: Arc::default(), requests: Arc::default() }
    }

    /// Serves connections for as long as the runtime runs.
    pub(super) fn serve(&self, listener: TcpListener) {
        let pod = self.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let pod = pod.clone();
                tokio::spawn(async move { drop(pod.connection(stream).await) });
            }
        });
    }

    /// What it saw, its own address as `POD`.
    pub(super) fn received(&self, address: SocketAddr) -> String {
        let received = self.received.lock().unwrap_or_else(PoisonError::into_inner);
        latin::text(&received).replace(&address.to_string(), "POD")
    }

    fn saw(&self, bytes: &[u8]) {
        self.received.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
    }

    async fn connection(&self, mut stream: TcpStream) -> std::io::Result<()> {
        let mut came = Vec::new();
        loop {
            let head = loop {
                if let Some(head) = Head::read(&came) {
                    break head;
                }
                if stream.read_buf(&mut came).await? == 0 {
                    return Ok(());
                }
            };
            let mut rest = came.split_off(head.len);
            if head.start.starts_with("GET /healthz ") {
                // A prober, which the recording knows nothing of.
                stream.write_all(READY.as_bytes()).await?;
                came = rest;
                continue;
            }
            self.saw(&came);
            let nth = self.requests.fetch_add(1, Ordering::Relaxed) + 1;
            // Of these rows the connection dies with the second request.
            if matches!(self.number, 59 | 60) && nth == 2 {
                return Ok(());
            }
            let acts = script(self.number);
            for act in acts {
                self.act(*act, &head, &mut stream, &mut rest).await?;
            }
            // One that answered in full may be asked again.
            let over = matches!(self.number, 49..=54);
            if over {
                return Ok(());
            }
            came = rest;
        }
    }

    async fn act(&self, act: Act, head: &Head, stream: &mut TcpStream, rest: &mut Vec<u8>) -> std::io::Result<()> {
        match act {
            Send(text) => stream.write_all(text.as_bytes()).await?,
            Pause(millis) => sleep(Duration::from_millis(millis)).await,
            ReadBody | SkipBody => {
                let framing = head.request_framing();
                let length = loop {
                    let body = Body::read(rest, framing, false);
                    if body.whole || framing == Framing::None {
                        break body.len;
                    }
                    if stream.read_buf(rest).await? == 0 {
                        return Ok(());
                    }
                };
                if matches!(act, ReadBody) {
                    self.saw(&rest[..length]);
                }
                rest.drain(..length);
            }
            Echo => {
                let mut chunk = [0; 4096];
                loop {
                    let read = stream.read(&mut chunk).await?;
                    if read == 0 {
                        return Ok(());
                    }
                    stream.write_all(&[b"echo:", &chunk[..read]].concat()).await?;
                }
            }
            Hold => while stream.read_buf(rest).await? > 0 {},
        }
        Ok(())
    }
}
