//! The same bytes to hyper and to us. Where both serve a request, they see the
//! same; where hyper refuses one, so do we. We may be
//! stricter, about hosts for one.

use crate::raw::{Raw, scripted};
use crate::served::{Out, full, server};
use http::{Request, Response};
use http_body_util::BodyExt;
use hyper_util::rt::TokioIo;
use std::convert::Infallible;
use std::fmt::Display;
use std::net::SocketAddr;
use std::time::Duration;

/// All that a handler can see of a request.
async fn describe<B>(request: Request<B>) -> Response<Out>
where
    B: http_body::Body,
    B::Error: Display,
{
    let (parts, body) = request.into_parts();
    let mut seen = format!("{} {} {:?}", parts.method, parts.uri, parts.version);
    let mut fields: Vec<_> =
        parts.headers.iter().map(|(name, value)| format!(" {name}={}", value.as_bytes().escape_ascii())).collect();
    fields.sort();
    seen.extend(fields);
    match body.collect().await {
        Ok(collected) => {
            seen += &format!(" {:?}", collected.trailers());
            full(format!("{seen} {}", collected.to_bytes().escape_ascii()))
        }
        Err(_) => crate::served::with_status(502, ""),
    }
}

async fn hypers() -> SocketAddr {
    scripted(|raw: Raw| async move {
        let service = hyper::service::service_fn(|request| async { Ok::<_, Infallible>(describe(request).await) });
        let _ = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(raw.socket), service).await;
    })
    .await
}

/// Statuses and bodies of all answers to what is said.
async fn answers(address: SocketAddr, said: &[u8]) -> Vec<String> {
    let mut client = Raw::connect(address).await;
    let _ = tokio::io::AsyncWriteExt::write_all(&mut client.socket, said).await;
    let _ = client.socket.set_zero_linger();
    let (text, _) = client.rest_within(Duration::from_millis(25)).await;
    let answers = text.split("HTTP/1.").skip(1).map(|answer| {
        let status = answer.get(2..5).unwrap_or("").to_owned();
        let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
        if status == "200" { format!("{status} {body}") } else { status }
    });
    answers.collect()
}

const HEADS: [&str; 8] = [
    "GET /a?b HTTP/1.1\r\nHost: h\r\n",
    "POST /p HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n",
    "POST /p HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n",
    "PUT /%2e/;x HTTP/1.1\r\nHost: h:1\r\nX-A: caf\u{e9}\r\nX-A: 2\r\nContent-Length: 0\r\n",
    "OPTIONS * HTTP/1.1\r\nHost: h\r\n",
    "GET / HTTP/1.0\r\nHost: h\r\nConnection: keep-alive\r\n",
    "BREW /pot HTTP/1.1\nHost: h\nAccept:\t*/* \n",
    "DELETE /x HTTP/1.1\r\nHost: h\r\nCookie: a=b; c=d\r\nContent-Length: 3\r\n",
];
const BODIES: [&str; 5] = ["", "hello", "abc", "5\r\nhello\r\n0\r\n\r\n", "2;e\r\nok\r\n1\r\n!\r\n0\r\nX-T: v\r\n\r\n"];

#[tokio::test]
async fn valid_requests_look_the_same_to_a_handler() {
    let (ours, theirs) = (server(describe).await.address, hypers().await);
    for head in HEADS {
        for body in BODIES {
            let end = if head.ends_with("\r\n") { "\r\n" } else { "\n" };
            let said = format!("{head}{end}{body}");
            let theirs = answers(theirs, said.as_bytes()).await;
            let ours = answers(ours, said.as_bytes()).await;
            assert_eq!(ours.first(), theirs.first(), "{said:?}");
        }
    }
}

#[tokio::test]
async fn what_hyper_refuses_we_refuse_and_what_both_serve_looks_the_same() {
    let (ours, theirs) = (server(describe).await.address, hypers().await);
    let mut random = fastrand::Rng::with_seed(11);
    let (mut served, mut stricter) = (0, Vec::new());
    for _ in 0..150 {
        let head = HEADS[random.usize(..HEADS.len())];
        let end = if head.ends_with("\r\n") { "\r\n" } else { "\n" };
        let mut said = format!("{head}{end}{}", BODIES[random.usize(..BODIES.len())]).into_bytes();
        for _ in 0..random.usize(1..3) {
            let at = random.usize(..said.len());
            match random.u8(..3) {
                0 => said[at] = random.u8(..),
                1 => said.insert(at, b"\r\n \t:;,\0ac"[random.usize(..10)]),
                _ => drop(said.remove(at)),
            }
        }
        let (first_theirs, first_ours) = (answers(theirs, &said).await, answers(ours, &said).await);
        let shown = said.escape_ascii();
        match (first_ours.first().map(String::as_str), first_theirs.first().map(String::as_str)) {
            (Some(us), Some(them)) if us.starts_with("200") && them.starts_with("200") => {
                assert_eq!(us, them, "{shown}");
                served += 1;
            }
            // What we serve and hyper does not: folded fields, as the reference does.
            (Some(us), them) if us.starts_with("200") => {
                assert!(said.windows(2).any(|pair| pair == b"\n " || pair == b"\n\t"), "{shown}: {us} {them:?}")
            }
            (us, Some(them)) if them.starts_with("200") => stricter.push(format!("{shown}: {us:?}")),
            _ => {}
        }
    }
    assert!(served > 20, "{served}");
    // Hosts and targets that are none are what hyper lets through.
    assert!(stricter.len() < 15, "{stricter:#?}");
}
