//! `autoscaler/stat_server`: the server itself, in this process, and a client
//! that says what the row says.

use super::row::{Miss, Verdict, differs, exact, int, list, part, parts, same};
use super::stat_wire::bytes;
use crate::websocket::{BINARY, CLOSE, PING, PONG, Socket, TEXT};
use autoscaler::forward::{Owner, Owners};
use autoscaler::stat_server::{self, Limits, Settings, Sinks};
use plumbing::clock;
use plumbing::shutdown::Shutdown;
use plumbing::stats::{self, StatSource};
use policy::compat::Compat;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::timeout;

const PATIENCE: Duration = Duration::from_secs(20);
/// A message that shows that what came before it has been dealt with:
/// `ns/last` with an average of 9.
const LAST: &[u8] = b"\x0a\x15\x0a\x02ns\x12\x04last\x1a\x09\x11\0\0\0\0\0\0\x22\x40";

/// A server that owns the first of two buckets.
struct Stage {
    address: SocketAddr,
    stats: StatSource,
    shutdown: Shutdown,
    _owners: watch::Sender<Arc<Owners>>,
}

impl Stage {
    async fn set(mode: Compat) -> io::Result<Stage> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let bucket = |n: u8, owner| (Arc::from(format!("autoscaler-bucket-{n:02}-of-02")), owner);
        let owners = Owners::new([bucket(0, Some(Owner::Here)), bucket(1, None)]);
        let (_owners, owned) = watch::channel(Arc::new(owners));
        let (sink, stats) = stats::link();
        let settings = Settings { limits: Limits::default(), compat: mode, owners: owned };
        let shutdown = Shutdown::new();
        let sinks = Sinks { direct: sink.clone(), forwarded: sink };
        tokio::spawn(stat_server::serve(listener, sinks, settings, shutdown.clone()));
        Ok(Stage { address, stats, shutdown, _owners })
    }
}

pub(super) fn judge(row: &Value, mode: Compat) -> Verdict {
    let judging = async {
        let stage = Stage::set(mode).await.map_err(of_io)?;
        match row["kind"].as_str() {
            Some("http") => http(row, &stage).await,
            Some("message") => message(row, stage).await,
            Some("ping") => ping(row, &stage).await,
            Some("shutdown_close") => close(row, &stage).await,
            _ => Err(Miss::NotJudged),
        }
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(of_io)?;
    runtime.block_on(in_time(judging))
}

async fn in_time(judging: impl Future<Output = Verdict>) -> Verdict {
    timeout(PATIENCE, judging).await.unwrap_or_else(|_| differs("nothing comes"))
}

fn of_io(error: io::Error) -> Miss {
    Miss::Differs(format!("the connection failed: {error}"))
}

async fn http(row: &Value, stage: &Stage) -> Verdict {
    let host = match part::<String>(&row["host"])? {
        host if host.is_empty() => stage.address.to_string(),
        host => host,
    };
    let mut request = format!("GET {} HTTP/1.1\r\nhost: {host}\r\n", part::<String>(&row["path"])?);
    let fields: Option<BTreeMap<String, String>> = part(&row["headers"])?;
    for (name, value) in fields.unwrap_or_default() {
        let _ = write!(request, "{name}: {value}\r\n");
    }
    if part(&row["websocket"])? {
        request += "connection: Upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n\
                    sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
    }
    let mut stream = TcpStream::connect(stage.address).await.map_err(of_io)?;
    stream.write_all((request + "\r\n").as_bytes()).await.map_err(of_io)?;
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).await.map_err(of_io)?;
    let status = line.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
    same("status", int(&row["status"])?, status)?;
    same("upgraded", part(&row["upgraded"])?, status == 101)
}

async fn message(row: &Value, mut stage: Stage) -> Verdict {
    let opcode = match row["type"].as_str() {
        Some("binary") => BINARY,
        Some("text") => TEXT,
        _ => return differs("malformed row: unknown type of message"),
    };
    let payload = bytes(&part::<String>(&row["hex"])?)?;
    let mut socket = Socket::open(stage.address, "/").await.map_err(of_io)?;
    let sent = clock::now().truncated_to_second();
    socket.writer.send(opcode, &payload).await.map_err(of_io)?;
    socket.writer.send(BINARY, LAST).await.map_err(of_io)?;
    // A whole message is one batch, unless its entries tell different times.
    let mut delivered = Vec::new();
    loop {
        let Some(batch) = stage.stats.next().await else { return differs("the server has ended") };
        let at = batch.at;
        delivered.extend(batch.stats.into_iter().map(|(revision, stat)| (revision, stat, at)));
        if delivered.last().is_some_and(|(revision, ..)| &*revision.name == "last") {
            break;
        }
    }
    delivered.pop();
    let expected: Vec<Value> = parts(&row["delivered"])?;
    same("delivered", expected.len(), delivered.len())?;
    for (expected, (revision, stat, at)) in expected.iter().zip(&delivered) {
        let [namespace, name, average, timestamp] = list(expected)? else {
            return differs("malformed row: what is delivered has four parts");
        };
        same("namespace", part::<String>(namespace)?.as_str(), &*revision.namespace)?;
        same("name", part::<String>(name)?.as_str(), &*revision.name)?;
        exact("average", average, stat.average_concurrency)?;
        match int(timestamp)? {
            // Not said: the receiver's own second.
            0 => same("a time of now", true, (sent..=clock::now()).contains(at))?,
            told => same("timestamp", told, at.unix_seconds())?,
        }
    }
    Ok(())
}

async fn ping(row: &Value, stage: &Stage) -> Verdict {
    let payload: String = part(&row["payload"])?;
    let mut socket = Socket::open(stage.address, "/").await.map_err(of_io)?;
    let pong = socket.exchange(PING, payload.as_bytes()).await.map_err(of_io)?;
    same("a pong", PONG, pong.opcode)?;
    same("pong_payload", part::<String>(&row["pong_payload"])?.as_bytes(), &pong.payload)
}

async fn close(row: &Value, stage: &Stage) -> Verdict {
    let mut socket = Socket::open(stage.address, "/").await.map_err(of_io)?;
    stage.shutdown.drain();
    let Some(frame) = socket.reader.next().await.map_err(of_io)? else { return differs("no close frame came") };
    same("code", part(&row["code"])?, frame.code())?;
    let reason = String::from_utf8_lossy(frame.payload.get(2..).unwrap_or_default()).into_owned();
    same("reason", part(&row["reason"])?, reason)?;
    socket.writer.send(CLOSE, &frame.payload).await.map_err(of_io)?;
    let after = socket.reader.next().await.map_err(of_io)?;
    same("nothing after it", true, after.is_none())
}
