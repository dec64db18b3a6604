//! Plain heads against the whole way: what is found plain is written alike.

use super::answer::{self, Seen};
use super::request::{self, Rules};
use crate::h1::encode::Encoder;
use crate::h1::inbox::Inbox;
use crate::h1::lines::Scan;
use crate::h1::{answer as whole_answer, outgoing, reply, request as whole_request};
use crate::headers::{self, OFFER, ORIGINAL_HOST, PROXY_REQUEST, SERVING_NAMESPACE, SERVING_REVISION};
use crate::marks::{Marks, mark};
use crate::target;
use crate::trust::{Ranges, Trust};
use bytes::BytesMut;
use fastrand::Rng;
use http::header::{CONTENT_LENGTH, HeaderValue};
use http::{HeaderName, Method, Version};
use policy::compat::Compat;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

const PEER: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 9));
const APP: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 8080);

/// Fields of requests and answers: those that mean nothing, and those that do.
const FIELDS: [&str; 51] = [
    "Accept: */*",
    "accept-encoding: gzip, br",
    "USER-AGENT: curl/8",
    "User-Agent: kube-probe/1.30",
    "user-agent: Knative-Activator-Probe",
    "x-request-id: 7d3f",
    "X-REQUEST-ID:",
    "cookie: a=b; c=d",
    "Cookie: e=f",
    "Content-Type: text/plain",
    "content-type: application/grpc",
    "Content-Length: 5",
    "Content-Length: 0",
    "content-length: 05",
    "Content-Length: x",
    "content-LENGTH: 5, 5",
    "Transfer-Encoding: chunked",
    "Connection: keep-alive",
    "connection: Keep-Alive",
    "Connection: close",
    "Connection: x-hop",
    "connection: upgrade",
    "X-Hop: 1",
    "Upgrade: websocket",
    "Keep-Alive: timeout=5",
    "keep-alive: max=7",
    "TE: trailers",
    "Trailer: x-sum",
    "Expect: 100-continue",
    "Date: Sun, 06 Nov 1994 08:49:37 GMT",
    "Host: other.example",
    "Forwarded: for=1.2.3.4",
    "X-Forwarded-For: 1.2.3.4",
    "x-forwarded-proto: https",
    "K-Network-Probe: queue",
    "K-Original-Host: shop.example",
    "k-proxy-request: activator",
    "K-Proxy-Request: other",
    "k-original-host:",
    "Knative-Serving-Revision: rev",
    "knative-serving-namespace: ns",
    "X-Forwarded-For: 5.6.7.8, ::1",
    "X-Forwarded-By: x",
    "knative-serving-tag: blue",
    "X-Zeroscale-Offer: n",
    "x-zeroscale-handback: n full",
    "x-zeroscale-lease: 5s",
    "Proxy-Authorization: basic",
    "ETag: \"x\"",
    "x-\u{e4}: 1",
    "x-latin: \u{e4}",
];

fn fields(rng: &mut Rng, first: &str) -> String {
    let mut text = first.to_owned();
    for _ in 0..rng.usize(..6) {
        // Most are harmless, so that many heads are plain.
        let field = FIELDS[if rng.u8(..4) > 0 { rng.usize(..12) } else { rng.usize(..FIELDS.len()) }];
        let end = if rng.u8(..16) > 0 { "\r\n" } else { "\n" };
        text += &(field.to_owned() + end);
    }
    text + "\r\n"
}

fn request_head(rng: &mut Rng) -> String {
    let method =
        ["GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "HEAD", "CONNECT", "get", "BREW"][rng.usize(..10)];
    let target = ["/", "/a?b=c", "/a//b/../%2e", "*", "http://h/x", "/<a>", "/a#b", "//x", "/\u{e4}"][rng.usize(..9)];
    let version = if rng.u8(..10) > 0 { "HTTP/1.1" } else { "HTTP/1.0" };
    let host = ["Host: shop.example\r\n", "hOST: a:80\r\n", "Host: a b\r\n", "", "Host:\r\n"]
        [rng.usize(..5).saturating_sub(1)];
    let before = if rng.u8(..16) > 0 { "" } else { "\r\n" };
    fields(rng, &format!("{before}{method} {target} {version}\r\n{host}"))
}

/// The same request on the whole way, as the chain of a sidecar makes it ready.
fn whole(text: &str, trust: &Trust) -> Option<(Vec<u8>, bool, Option<HeaderValue>)> {
    let head = whole_request::head(&mut BytesMut::from(text), &mut Scan::default(), 1 << 20).ok()??;
    let length = head.decoder.hint().exact()?;
    let mut parts = head.into_parts();
    headers::receive(&mut parts.headers, PEER, trust);
    let seen = crate::head::Head::at_sidecar(&parts, true);
    assert_eq!((seen.probe, seen.kubelet_probe), (None, false));
    target::to_app(&mut parts, APP);
    headers::to_app(&mut parts.headers, PEER, Compat::Better);
    if length == 0 && [Method::POST, Method::PUT, Method::PATCH].contains(&parts.method) {
        parts.headers.insert(CONTENT_LENGTH, HeaderValue::from_static("0"));
    }
    let mut out = Vec::new();
    outgoing::write_head(&parts, Encoder::Length(length), &mut out);
    Some((out, seen.proxied, seen.offer))
}

/// Fields of one name may stand apart where a map would have them together.
fn sorted(head: &[u8]) -> Vec<String> {
    let mut lines: Vec<_> = head.split(|byte| *byte == b'\n').map(|line| line.escape_ascii().to_string()).collect();
    lines[1..].sort();
    lines
}

#[test]
fn a_plain_request_says_the_same_to_the_app_as_on_the_whole_way() {
    let mut rng = Rng::with_seed(7);
    let one = |peers, proxies| Trust { peers, proxies };
    let trusts = [
        Trust::everybody(),
        Trust::nobody(),
        one(Ranges::everybody(), Ranges::nobody()),
        one(Ranges::nobody(), Ranges::everybody()),
    ];
    let mut plain = 0;
    for round in 0..80_000 {
        let trust = &trusts[round % trusts.len()];
        let rules = Rules::of(PEER, trust);
        let head = request_head(&mut rng);
        let body = "hello and more"[..rng.usize(..15)].to_owned();
        let mut inbox = Inbox::default();
        inbox.bytes.extend_from_slice(head.as_bytes());
        inbox.bytes.extend_from_slice(body.as_bytes());
        let before = inbox.bytes.clone();
        let Some(found) = request::take(&mut inbox, &rules, |_| {}) else {
            assert_eq!(inbox.bytes, before, "what is not plain is not touched");
            continue;
        };
        plain += 1;
        let seen = whole(&head, trust).unwrap_or_else(|| panic!("the whole way refuses {head:?}"));
        let (whole, proxied, offer) = seen;
        assert_eq!((found.is_proxied(), found.offer()), (proxied, offer.as_ref()), "{head:?}");
        let (said, taken) = found.pieces();
        assert_eq!(sorted(said), sorted(&whole), "{head:?}");
        assert_eq!([&taken[..], &inbox.bytes].concat(), body.as_bytes());
        // If there is no connection for it, it goes on from there as any other.
        let again = whole_request::head(&mut BytesMut::from(said), &mut Scan::default(), 1 << 20).unwrap().unwrap();
        let (length, mut out) = (again.decoder.hint().exact().unwrap(), Vec::new());
        outgoing::write_head(&again.into_parts(), Encoder::Length(length), &mut out);
        assert_eq!(sorted(&out), sorted(said));
    }
    assert!(plain > 2_000, "{plain}");
}

#[test]
fn a_plain_answer_says_the_same_to_the_client_as_on_the_whole_way() {
    let mut rng = Rng::with_seed(11);
    let mut plain = 0;
    for _ in 0..60_000 {
        let code =
            ["200 OK", "404 Not Found", "100 Continue", "101 X", "204 No Content", "304 X", "599 Odd", "200", "600 X"]
                [rng.usize(..9)];
        let version = if rng.u8(..10) > 0 { "HTTP/1.1" } else { "HTTP/1.0" };
        let text = fields(&mut rng, &format!("{version} {code}\r\n"));
        let Seen::Plain(mut head) = answer::read(text.as_bytes()) else { continue };
        plain += 1;
        let mut input = BytesMut::from(&text[..]);
        let whole = reply::head(&mut input, &mut Scan::default(), &Method::GET, 1 << 20);
        let whole = whole.unwrap_or_else(|fault| panic!("{fault}: {text:?}")).unwrap();
        assert_eq!(
            (head.keep_alive, head.length, head.bytes),
            (whole.keep_alive, whole.decoder.hint().exact().unwrap(), text.len())
        );
        let hint = head.kept_for.as_deref().and_then(headers::timeout_in);
        assert_eq!(hint, headers::keep_alive_timeout(&whole.fields));
        let (mut parts, ()) = http::Response::new(()).into_parts();
        (parts.status, parts.headers) = (whole.status, whole.fields);
        headers::to_client(&mut parts.headers, true, false);
        for keep_alive in [true, false] {
            let asked = whole_answer::Asked::of(&Method::GET, Version::HTTP_11, false, keep_alive);
            let plan = whole_answer::Plan::of(&asked, &parts, Some(head.length));
            let mut out = Vec::new();
            whole_answer::write(&asked, plan, &parts, Some(head.length), &mut out);
            let begun = head.out.len();
            head.finish(keep_alive);
            assert_eq!(sorted(&head.out), sorted(&out), "{text:?}");
            head.out.truncate(begun);
        }
    }
    assert!(plain > 2_000, "{plain}");
}

#[test]
fn whatever_means_something_to_a_proxy_is_not_plain() {
    let rules = Rules::of(PEER, &Trust::everybody());
    let is_plain = |field: &str| {
        let mut inbox = Inbox::default();
        inbox.bytes.extend_from_slice(format!("GET / HTTP/1.1\r\nHost: h\r\n{field}\r\n\r\n").as_bytes());
        request::take(&mut inbox, &rules, |_| {}).is_some()
    };
    assert!(is_plain("Accept: */*") && is_plain("Connection: keep-alive") && is_plain("User-Agent: curl"));
    for field in FIELDS {
        let name = field.split(':').next().unwrap().to_ascii_lowercase();
        let means = HeaderName::from_bytes(name.as_bytes()).map_or(Marks::HOP, |name| mark(name.as_str().as_bytes()));
        let known = [PROXY_REQUEST, ORIGINAL_HOST, OFFER, SERVING_REVISION, SERVING_NAMESPACE]
            .iter()
            .any(|known| *known == *name);
        if ![Marks::NONE, Marks::AGENT, Marks::CONNECTION, Marks::ORIGIN].contains(&means) && !known {
            assert!(!is_plain(field), "{field}");
        }
    }
}
