//! Plain exchanges through a sidecar beside the same ones on the whole way: a
//! request with `TE: trailers` is not plain, and otherwise the same. Random
//! bodies both ways, in pieces, to slow readers, from apps that say too much,
//! too little, too soon, or close.

use fastrand::Rng;
use std::net::SocketAddr;
use std::time::Duration;
use tests::rig;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// What an app does with a request; told to it in the target.
#[derive(Clone, Copy, Debug)]
enum Manner {
    /// Answers when it has read all.
    Well,
    /// Answers at once, and reads then.
    Early,
    /// Ends its answer this many bytes early, and the connection with it.
    Short(usize),
    /// Sends more than its head says.
    Long(usize),
    /// Says that it closes, and does.
    Closing,
    /// Closes without a word once it has answered.
    Leaving,
    /// In chunks, which is not plain.
    Chunked,
    /// After an interim answer.
    Interim,
}

fn bytes(length: usize, seed: usize) -> Vec<u8> {
    (0..length).map(|at| b"abcdefghijklmnopqrstuvwxyz"[(at * 7 + at / 97 + seed) % 26]).collect()
}

/// `/LENGTH/SEED/MANNER/EXTRA`
fn target(length: usize, seed: usize, manner: Manner) -> String {
    let (word, extra) = match manner {
        Manner::Well => ("well", 0),
        Manner::Early => ("early", 0),
        Manner::Short(by) => ("short", by),
        Manner::Long(by) => ("long", by),
        Manner::Closing => ("closing", 0),
        Manner::Leaving => ("leaving", 0),
        Manner::Chunked => ("chunked", 0),
        Manner::Interim => ("interim", 0),
    };
    format!("/{length}/{seed}/{word}/{extra}")
}

async fn app(mut stream: TcpStream) {
    let mut rng = Rng::with_seed(3);
    let mut input = Vec::new();
    loop {
        let head_end = loop {
            if let Some(at) = input.windows(4).position(|four| four == b"\r\n\r\n") {
                break at + 4;
            }
            let mut piece = [0; 4096];
            match stream.read(&mut piece).await {
                Ok(count @ 1..) => input.extend_from_slice(&piece[..count]),
                _ => return,
            }
        };
        let head = String::from_utf8(input.drain(..head_end).collect()).unwrap().to_ascii_lowercase();
        assert!(
            head.contains("\r\nhost: app.example\r\n") && head.contains("\r\nx-forwarded-for: 127.0.0.1\r\n"),
            "{head}"
        );
        let said = head.split("\r\n").find_map(|line| line.strip_prefix("content-length: "));
        let body_bytes: usize = said.map_or(0, |length| length.parse().unwrap());
        let words: Vec<&str> = head.split(' ').nth(1).unwrap().split('/').collect();
        let (length, seed): (usize, usize) = (words[1].parse().unwrap(), words[2].parse().unwrap());
        let (manner, extra): (&str, usize) = (words[3], words[4].parse().unwrap());
        let read_body = async |stream: &mut TcpStream, input: &mut Vec<u8>| {
            while input.len() < body_bytes {
                let mut piece = [0; 4096];
                match stream.read(&mut piece).await {
                    Ok(count @ 1..) => input.extend_from_slice(&piece[..count]),
                    _ => return false,
                }
            }
            let body: Vec<u8> = input.drain(..body_bytes).collect();
            assert_eq!(body, bytes(body_bytes, seed), "a request's body");
            true
        };
        if manner != "early" && !read_body(&mut stream, &mut input).await {
            return;
        }
        let mut body = bytes(length, seed + 1);
        let framing = if manner == "chunked" {
            let size = format!("{length:x}\r\n");
            let chunk = if length > 0 { [size.as_bytes(), &body, b"\r\n"].concat() } else { Vec::new() };
            body = [&chunk[..], b"0\r\n\r\n"].concat();
            "Transfer-Encoding: chunked".to_owned()
        } else {
            format!("content-LENGTH: {length}")
        };
        match manner {
            "short" => body.truncate(length - extra.min(length)),
            "long" => body.extend_from_slice(&bytes(extra, 9)),
            _ => {}
        }
        let interim = if manner == "interim" { "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" } else { "" };
        let close = if manner == "closing" { "Connection: close\r\n" } else { "" };
        let answer = format!("{interim}HTTP/1.1 200 Fine\r\n{close}{framing}\r\nx-seed: {seed}\r\n\r\n");
        let mut answer = answer.into_bytes();
        answer.extend_from_slice(&body);
        let mut rest = &answer[..];
        while !rest.is_empty() {
            let count = rest.len().min(if rng.u8(..3) == 0 { rng.usize(1..200) } else { rng.usize(1..200_000) });
            if stream.write_all(&rest[..count]).await.is_err() {
                return;
            }
            rest = &rest[count..];
            if rng.u8(..4) == 0 {
                tokio::task::yield_now().await;
            }
        }
        if manner == "early" && !read_body(&mut stream, &mut input).await {
            return;
        }
        if matches!(manner, "short" | "closing" | "leaving") {
            return;
        }
    }
}

/// What a client has got: interim answers, status, body; and whether the
/// connection goes on.
#[derive(Debug, PartialEq, Eq)]
struct Got {
    interims: usize,
    head: Vec<String>,
    body: Vec<u8>,
    goes_on: bool,
}

/// A body out of its chunks, of whatever sizes they came.
fn unchunked(mut chunks: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    loop {
        let line = chunks.windows(2).position(|two| two == b"\r\n").unwrap();
        let size = usize::from_str_radix(std::str::from_utf8(&chunks[..line]).unwrap(), 16).unwrap();
        if size == 0 {
            return body;
        }
        body.extend_from_slice(&chunks[line + 2..][..size]);
        chunks = &chunks[line + 2 + size + 2..];
    }
}

async fn exchange(stream: &mut TcpStream, request: &[u8], rng: &mut Rng, slow: bool) -> Got {
    let (mut reader, mut writer) = stream.split();
    let write = async {
        let mut rest = request;
        while !rest.is_empty() {
            let count = rest.len().min(if rng.u8(..2) == 0 { usize::MAX } else { rng.usize(1..40_000) });
            if writer.write_all(&rest[..count]).await.is_err() {
                return;
            }
            rest = &rest[count..];
            tokio::task::yield_now().await;
        }
    };
    let read = async {
        let (mut input, mut interims) = (Vec::new(), 0);
        let mut more = async |input: &mut Vec<u8>| {
            let mut piece = vec![0; if slow { 8_000 } else { 100_000 }];
            let count = reader.read(&mut piece).await.unwrap_or(0);
            input.extend_from_slice(&piece[..count]);
            count > 0
        };
        let head = loop {
            match input.windows(4).position(|four| four == b"\r\n\r\n") {
                Some(at) => {
                    let head = String::from_utf8(input.drain(..at + 4).collect::<Vec<u8>>()).unwrap();
                    if !head.starts_with("HTTP/1.1 1") {
                        break head;
                    }
                    interims += 1;
                }
                None if more(&mut input).await => {}
                None => return Got { interims, head: vec!["nothing".to_owned()], body: input, goes_on: false },
            }
        };
        let mut lines: Vec<String> = head.trim_end().split("\r\n").map(str::to_ascii_lowercase).collect();
        lines.retain(|line| !line.starts_with("date: "));
        lines[1..].sort();
        let length =
            lines.iter().find_map(|line| line.strip_prefix("content-length: ")).map(|length| length.parse().unwrap());
        let whole = |input: &[u8]| match length {
            Some(length) => input.len() >= length,
            None => input == b"0\r\n\r\n" || input.ends_with(b"\r\n0\r\n\r\n"),
        };
        let mut goes_on = true;
        while !whole(&input) {
            if !more(&mut input).await {
                goes_on = false;
                break;
            }
        }
        let body = if length.is_none() && goes_on { unchunked(&input) } else { input };
        Got { interims, head: lines, body, goes_on }
    };
    tokio::join!(write, read).1
}

#[tokio::test]
async fn a_plain_exchange_is_to_both_sides_what_it_is_on_the_whole_way() {
    let address = rig::app(app).await;
    let sidecar = rig::sidecar(rig::sidecar_config(address, 10)).await;
    let mut rng = Rng::with_seed(5);
    let connect = async |address: SocketAddr| TcpStream::connect(address).await.unwrap();
    let mut ways = [connect(sidecar.address).await, connect(sidecar.address).await];
    for round in 0..400 {
        let sizes = [0, 1, 1000, 1024, 1025, 8_000, 8_192, 20_000, 70_000, 300_000, 1_500_000];
        let length = sizes[rng.usize(..if round % 10 == 0 { 11 } else { 9 })] + rng.usize(..3);
        let body_bytes =
            if rng.bool() { 0 } else { [1, 500, 5_000, 8_100, 10_240, 30_000, 65_536, 90_000][rng.usize(..8)] };
        let manner = match rng.u8(..16) {
            0 => Manner::Early,
            1 => Manner::Short(1 + rng.usize(..length + 1)),
            2 => Manner::Long(1 + rng.usize(..5_000)),
            3 => Manner::Closing,
            4 => Manner::Leaving,
            5 => Manner::Chunked,
            6 => Manner::Interim,
            _ => Manner::Well,
        };
        let (target, method) = (target(length, round, manner), if body_bytes > 0 { "POST" } else { "GET" });
        let framing = if body_bytes > 0 { format!("content-length: {body_bytes}\r\n") } else { String::new() };
        let mut got = Vec::new();
        let slow = rng.u8(..4) == 0;
        for (stream, way) in ways.iter_mut().zip(["", "te: trailers\r\n"]) {
            let head = format!("{method} {target} HTTP/1.1\r\nhost: app.example\r\n{way}{framing}\r\n");
            let request = [head.as_bytes(), &bytes(body_bytes, round)].concat();
            let exchanged = exchange(stream, &request, &mut rng, slow);
            let one = tokio::time::timeout(Duration::from_secs(60), exchanged).await;
            let one = one.unwrap_or_else(|_| panic!("round {round}, {manner:?}: no end"));
            if !one.goes_on {
                *stream = connect(sidecar.address).await;
            }
            got.push(one);
        }
        let [plain, whole] = &got[..] else { unreachable!("two ways") };
        let said = |got: &Got| (got.interims, got.head.clone(), got.body.len(), got.goes_on);
        assert_eq!(said(plain), said(whole), "round {round}: {method} {target}, body of {body_bytes}");
        assert!(plain.body == whole.body, "round {round}: {method} {target}: other bytes");
        if matches!(manner, Manner::Well | Manner::Early | Manner::Long(_) | Manner::Interim) {
            assert!(plain.body == bytes(length, round + 1), "round {round}: {target}: {} bytes", plain.body.len());
        }
    }
}
