//! Header names, and what happens to headers on the way through.

use crate::forwarded;
use crate::marks::Marks;
use crate::trust::Trust;
use bytes::Bytes;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http_body::Frame;
use policy::compat::Compat;
use std::cell::RefCell;
use std::fmt::Write;
use std::net::IpAddr;
use std::time::Duration;

/// Why an answer is ours: a code of [`crate::reason::Reason`].
pub const REASON: HeaderName = HeaderName::from_static("x-zeroscale-reason");
/// Request mark: serve at once or hand back; the value is a nonce.
pub const OFFER: HeaderName = HeaderName::from_static("x-zeroscale-offer");
/// Answer mark: the request was not served; `NONCE full` or `NONCE not-sent`.
pub const HANDBACK: HeaderName = HeaderName::from_static("x-zeroscale-handback");
/// Probe answer: this sidecar is ours; the value is its version.
pub const PROXY: HeaderName = HeaderName::from_static("x-zeroscale-proxy");
/// Probe mark: answer when a slot is free, at the latest after so many
/// milliseconds.
pub const AWAIT_SLOT: HeaderName = HeaderName::from_static("x-zeroscale-await-slot");
/// Answer to that: how many are free.
pub const FREE: HeaderName = HeaderName::from_static("x-zeroscale-free");
/// The app's answer: it works on in the background; the value is for how long.
pub const LEASE: HeaderName = HeaderName::from_static("x-zeroscale-lease");
/// On an answer that waited for a start: how long, in milliseconds.
pub const COLD_START: HeaderName = HeaderName::from_static("x-zeroscale-cold-start");

/// Revision that a request is for, set by an ingress.
pub const SERVING_REVISION: HeaderName = HeaderName::from_static("knative-serving-revision");
/// Namespace of that revision.
pub const SERVING_NAMESPACE: HeaderName = HeaderName::from_static("knative-serving-namespace");
/// `activator` on requests that came through one.
pub const PROXY_REQUEST: HeaderName = HeaderName::from_static("k-proxy-request");
/// Kind of a probe.
pub const NETWORK_PROBE: HeaderName = HeaderName::from_static("k-network-probe");
/// Hash that an ingress probe wants echoed.
pub const NETWORK_HASH: HeaderName = HeaderName::from_static("k-network-hash");
/// Marks probes of the kubelet.
pub const KUBELET_PROBE: HeaderName = HeaderName::from_static("k-kubelet-probe");
/// The host that the client asked for, before the activator replaced it.
pub const ORIGINAL_HOST: HeaderName = HeaderName::from_static("k-original-host");
/// Asks a mesh to keep the address.
pub const PASSTHROUGH: HeaderName = HeaderName::from_static("k-passthrough-lb");

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const X_FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
const X_FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const X_FORWARDED_BY: HeaderName = HeaderName::from_static("x-forwarded-by");
const KEEP_ALIVE: HeaderName = HeaderName::from_static("keep-alive");
const PROXY_CONNECTION: HeaderName = HeaderName::from_static("proxy-connection");

/// Headers by which our parts speak to each other.
const INTERNAL: [HeaderName; 13] = [
    OFFER,
    HANDBACK,
    AWAIT_SLOT,
    FREE,
    PROXY,
    SERVING_REVISION,
    SERVING_NAMESPACE,
    PROXY_REQUEST,
    NETWORK_PROBE,
    NETWORK_HASH,
    KUBELET_PROBE,
    ORIGINAL_HOST,
    PASSTHROUGH,
];

/// Headers that belong to one connection.
const HOP_BY_HOP: [HeaderName; 9] = [
    header::CONNECTION,
    KEEP_ALIVE,
    PROXY_CONNECTION,
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];

/// Removes what an untrusted peer may not say, before anything reads it, and
/// writes down where the request came from.
pub fn receive(fields: &mut HeaderMap, peer: IpAddr, trust: &Trust) {
    let (internal, origin) = (!trust.peers.contains(peer), !trust.proxies.contains(peer));
    if !internal && !origin {
        return;
    }
    let marks = Marks::of(fields);
    if internal && marks.have(Marks::INTERNAL) {
        for name in &INTERNAL {
            fields.remove(name);
        }
    }
    if origin && marks.have(Marks::ORIGIN) {
        for name in [&X_FORWARDED_FOR, &X_FORWARDED_HOST, &X_FORWARDED_PROTO, &X_FORWARDED_BY, &header::FORWARDED] {
            fields.remove(name);
        }
    }
}

/// Appends the peer to `X-Forwarded-For`, as one line.
pub fn forwarded_for(fields: &mut HeaderMap, peer: IpAddr) {
    if !fields.contains_key(&X_FORWARDED_FOR) {
        if let Some(line) = peer_line(peer) {
            fields.append(X_FORWARDED_FOR, line);
        }
        return;
    }
    let mut line = String::new();
    for value in fields.get_all(&X_FORWARDED_FOR) {
        // Bytes that are no text cannot be an address list: drop that line.
        if let Ok(text) = value.to_str() {
            let _ = write!(line, "{text}, ");
        }
    }
    let _ = write!(line, "{}", peer.to_canonical());
    if let Ok(value) = HeaderValue::from_str(&line) {
        fields.insert(X_FORWARDED_FOR, value);
    }
}

thread_local! {
    static PEER: RefCell<Option<(IpAddr, HeaderValue)>> = const { RefCell::new(None) };
}

/// A peer's address as a line. Most requests in a row come from the same few
/// peers, often from one activator.
fn peer_line(peer: IpAddr) -> Option<HeaderValue> {
    let peer = peer.to_canonical();
    PEER.with_borrow_mut(|last| match last {
        Some((address, line)) if *address == peer => Some(line.clone()),
        _ => {
            let line = HeaderValue::try_from(peer.to_string()).ok()?;
            *last = Some((peer, line.clone()));
            Some(line)
        }
    })
}

/// Removes the headers of one connection; keeps `te: trailers`, and the
/// request for an upgrade where there is one.
pub fn strip_hop_by_hop(fields: &mut HeaderMap) {
    strip(fields, Marks::of(fields));
}

/// Most heads have none of them, or say `Connection: keep-alive` alone, or,
/// where they are of gRPC, `TE: trailers`.
fn strip(fields: &mut HeaderMap, marks: Marks) {
    if marks.have(Marks::HOP) || (marks.have(Marks::TE) && !says_trailers_alone(fields)) {
        return strip_all(fields);
    }
    if marks.have(Marks::CONNECTION) {
        let plain = |value: &HeaderValue| [&b"keep-alive"[..], b"close"].contains(&value.as_bytes());
        if fields.get_all(header::CONNECTION).iter().all(plain) {
            fields.remove(header::CONNECTION);
        } else {
            strip_all(fields);
        }
    }
}

fn says_trailers_alone(fields: &HeaderMap) -> bool {
    let mut lines = fields.get_all(header::TE).iter();
    lines.next().is_some_and(|line| line == "trailers") && lines.next().is_none()
}

fn strip_all(fields: &mut HeaderMap) {
    let upgrade = upgrade_protocol(fields);
    let trailers = fields.get_all(header::TE).iter().any(|value| has_token(value, "trailers"));
    if let Some(named) = named_in_connection(fields) {
        // Without its host or its length it would be another request.
        let removable = named.iter().filter(|name| **name != header::HOST && **name != header::CONTENT_LENGTH);
        removable.for_each(|name| drop(fields.remove(name)));
    }
    for name in &HOP_BY_HOP {
        fields.remove(name);
    }
    if trailers {
        fields.insert(header::TE, HeaderValue::from_static("trailers"));
    }
    if let Some(protocol) = upgrade {
        fields.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
        fields.insert(header::UPGRADE, protocol);
    }
}

/// The protocol that a request or a 101 answer switches to.
pub fn upgrade_protocol(fields: &HeaderMap) -> Option<HeaderValue> {
    let asked = fields.get_all(header::CONNECTION).iter().any(|value| has_token(value, "upgrade"));
    if asked { fields.get(header::UPGRADE).cloned() } else { None }
}

/// How long a server keeps an idle connection, if it says so
/// (`Keep-Alive: timeout=5`, in seconds).
pub fn keep_alive_timeout(fields: &HeaderMap) -> Option<Duration> {
    timeout_in(fields.get(&KEEP_ALIVE)?.as_bytes())
}

/// The same of the field's value.
pub(crate) fn timeout_in(value: &[u8]) -> Option<Duration> {
    let text = std::str::from_utf8(value).ok()?;
    let of_timeout = |part: &str| part.trim().strip_prefix("timeout=")?.trim().parse().ok();
    text.split(',').find_map(of_timeout).map(Duration::from_secs)
}

/// Headers that `Connection` names; `None` in the common case of none.
fn named_in_connection(fields: &HeaderMap) -> Option<Vec<HeaderName>> {
    fields.get(header::CONNECTION)?;
    let lines = fields.get_all(header::CONNECTION).iter().filter_map(|value| value.to_str().ok());
    Some(lines.flat_map(|line| line.split(',')).filter_map(|name| name.trim().parse().ok()).collect())
}

fn has_token(value: &HeaderValue, token: &str) -> bool {
    value.to_str().is_ok_and(|text| text.split(',').any(|part| part.trim().eq_ignore_ascii_case(token)))
}

/// What the sidecar changes on the way to the app: marks and routing headers
/// go. (The client's host comes back in [`crate::target::to_app`].)
pub fn to_app(fields: &mut HeaderMap, peer: IpAddr, compat: Compat) {
    let marks = Marks::of(fields);
    if marks.have(Marks::ORIGIN) {
        forwarded::add(fields, compat);
    }
    if marks.have(Marks::OURS) {
        fields.remove(OFFER);
        fields.remove(AWAIT_SLOT);
        if compat == Compat::Better {
            // From an app that sends back what it got, it would be believed.
            fields.remove(LEASE);
        }
        fields.remove(SERVING_REVISION);
        fields.remove(SERVING_NAMESPACE);
    }
    strip(fields, marks);
    forwarded_for(fields, peer);
}

/// What the activator changes on the way to a pod.
pub fn to_pod(fields: &mut HeaderMap, peer: IpAddr, host: Option<HeaderValue>) {
    let marks = Marks::of(fields);
    if marks.have(Marks::OURS) {
        fields.remove(SERVING_REVISION);
        fields.remove(SERVING_NAMESPACE);
        fields.remove(NETWORK_HASH);
        // Marks are the activator's own to set, whoever the client is.
        fields.remove(OFFER);
        fields.remove(HANDBACK);
    }
    if fields.get(ORIGINAL_HOST).is_none_or(|host| host.is_empty()) {
        // Also where there is none, as the reference does.
        fields.insert(ORIGINAL_HOST, host.unwrap_or(HeaderValue::from_static("")));
    }
    // The body is asked for by reading it; the pod need not ask again.
    if marks.have(Marks::EXPECT) {
        fields.remove(header::EXPECT);
    }
    strip(fields, marks);
    forwarded_for(fields, peer);
    fields.insert(PROXY_REQUEST, HeaderValue::from_static("activator"));
}

/// What is removed from an answer on its way to the client. A switch of
/// protocols keeps its two headers. Marks go always: an app cannot say that a
/// request was handed back, and a client need not know.
pub fn to_client(fields: &mut HeaderMap, from_app: bool, switching: bool) {
    let marks = Marks::of(fields);
    match (switching, marks.have(Marks::HOP.or(Marks::TE))) {
        (false, false) => strip(fields, marks),
        _ => hop_to_client(fields, switching),
    }
    if marks.have(Marks::ANSWER) {
        remove_marks(fields, from_app);
    }
}

fn hop_to_client(fields: &mut HeaderMap, switching: bool) {
    // Announced trailers stay announced.
    let trailers: Vec<HeaderValue> = fields.get_all(header::TRAILER).iter().cloned().collect();
    strip_all(fields);
    fields.remove(header::TE);
    if !switching {
        fields.remove(header::CONNECTION);
        fields.remove(header::UPGRADE);
    }
    for line in trailers {
        if let Some(line) = without_marks(line) {
            fields.append(header::TRAILER, line);
        }
    }
}

/// The same of a frame, if it is one of trailers.
pub fn trailers_to_client(frame: Frame<Bytes>, from_app: bool) -> Frame<Bytes> {
    match frame.into_trailers() {
        Ok(mut fields) => {
            if Marks::of(&fields).have(Marks::ANSWER) {
                remove_marks(&mut fields, from_app);
            }
            Frame::trailers(fields)
        }
        Err(frame) => frame,
    }
}

fn remove_marks(fields: &mut HeaderMap, from_app: bool) {
    fields.remove(HANDBACK);
    fields.remove(PROXY);
    fields.remove(FREE);
    if from_app {
        // Only we give our reasons.
        fields.remove(REASON);
    }
}

/// A line of `Trailer` that does not announce what will not come.
fn without_marks(line: HeaderValue) -> Option<HeaderValue> {
    let is_mark =
        |name: &str| [HANDBACK, PROXY, FREE, REASON].iter().any(|mark| name.eq_ignore_ascii_case(mark.as_str()));
    let Ok(text) = line.to_str() else { return Some(line) };
    let names = || text.split(',').map(str::trim);
    if !names().any(is_mark) {
        return Some(line);
    }
    let rest: Vec<&str> = names().filter(|name| !is_mark(name)).collect();
    if rest.is_empty() { None } else { HeaderValue::from_str(&rest.join(", ")).ok() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(lines: &[(&str, &str)]) -> HeaderMap {
        let parsed = lines.iter().map(|(name, value)| (name.parse::<HeaderName>().unwrap(), value.parse().unwrap()));
        parsed.fold(HeaderMap::new(), |mut fields, (name, value)| {
            fields.append(name, value);
            fields
        })
    }

    const PEER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 9));

    #[test]
    fn each_name_that_is_looked_for_leaves_its_mark() {
        let of = |name: &HeaderName| Marks::of(&HeaderMap::from_iter([(name.clone(), HeaderValue::from_static("x"))]));
        let origin = [X_FORWARDED_FOR, X_FORWARDED_HOST, X_FORWARDED_PROTO, X_FORWARDED_BY, header::FORWARDED];
        let ours = [OFFER, AWAIT_SLOT, LEASE, SERVING_REVISION, SERVING_NAMESPACE, NETWORK_HASH, HANDBACK];
        for (names, mark) in [
            (&INTERNAL[..], Marks::INTERNAL),
            (&HOP_BY_HOP, Marks::HOP.or(Marks::CONNECTION).or(Marks::TE)),
            (&origin, Marks::ORIGIN),
            (&ours, Marks::OURS),
            (&[HANDBACK, PROXY, FREE, REASON, LEASE], Marks::ANSWER),
            (&[header::CONNECTION], Marks::CONNECTION),
            (&[NETWORK_PROBE, KUBELET_PROBE], Marks::PROBE),
            (&[header::EXPECT], Marks::EXPECT),
            (&[header::USER_AGENT], Marks::AGENT),
        ] {
            names.iter().for_each(|name| assert!(of(name).have(mark), "{name}"));
        }
        for name in [
            header::HOST,
            header::ACCEPT,
            header::COOKIE,
            header::DATE,
            COLD_START,
            HeaderName::from_static("x-zeroscale-x"),
        ] {
            assert_eq!(of(&name), Marks::default(), "{name}");
        }
    }

    #[test]
    fn an_untrusted_peer_cannot_say_anything_internal() {
        let mut fields = map(&[("accept", "*/*"), ("x-forwarded-for", "1.2.3.4"), ("forwarded", "for=1.2.3.4")]);
        for name in &INTERNAL {
            fields.insert(name, HeaderValue::from_static("forged"));
        }
        receive(&mut fields, PEER, &Trust::nobody());
        assert_eq!(fields, map(&[("accept", "*/*")]));
    }

    #[test]
    fn naming_a_proxy_does_not_open_the_internal_headers() {
        let trust = Trust { proxies: "192.0.2.0/24".parse().unwrap(), ..Trust::nobody() };
        let mut fields = map(&[("k-proxy-request", "activator"), ("x-forwarded-for", "1.2.3.4")]);
        receive(&mut fields, PEER, &trust);
        forwarded_for(&mut fields, PEER);
        assert_eq!(fields, map(&[("x-forwarded-for", "1.2.3.4, 192.0.2.9")]));
    }

    #[test]
    fn headers_of_the_connection_and_those_it_names_go() {
        let mut fields = map(&[
            ("connection", "close, x-once"),
            ("x-once", "1"),
            ("te", "gzip, trailers"),
            ("keep-alive", "5"),
            ("accept", "*/*"),
        ]);
        strip_hop_by_hop(&mut fields);
        assert_eq!(fields, map(&[("accept", "*/*"), ("te", "trailers")]));
    }

    #[test]
    fn a_connection_cannot_claim_what_makes_the_request_what_it_is() {
        let lines = [("host", "shop.example"), ("content-length", "5")];
        let mut fields = map(&[("connection", "host, content-length"), lines[0], lines[1]]);
        strip_hop_by_hop(&mut fields);
        assert_eq!(fields, map(&lines));
    }

    #[test]
    fn no_mark_of_an_app_comes_through_be_it_in_trailers() {
        let forged = [("trailer", "X-Sum, x-zeroscale-handback"), ("trailer", "x-zeroscale-reason")];
        let mut fields = map(&[&forged[..], &[("x-zeroscale-handback", "n full"), ("x-app", "1")]].concat());
        to_client(&mut fields, true, false);
        assert_eq!(fields, map(&[("trailer", "X-Sum"), ("x-app", "1")]));
        let trailers = map(&[("x-zeroscale-handback", "n full"), ("x-zeroscale-reason", "draining"), ("x-sum", "7")]);
        let of = |from_app| trailers_to_client(Frame::trailers(trailers.clone()), from_app).into_trailers().unwrap();
        assert_eq!(of(true), map(&[("x-sum", "7")]));
        assert_eq!(of(false), map(&[("x-zeroscale-reason", "draining"), ("x-sum", "7")]));
    }

    #[test]
    fn an_upgrade_is_asked_for_again() {
        let mut fields = map(&[("connection", "keep-alive, Upgrade"), ("upgrade", "websocket")]);
        strip_hop_by_hop(&mut fields);
        assert_eq!(fields, map(&[("connection", "Upgrade"), ("upgrade", "websocket")]));
        let mut plain = map(&[("upgrade", "websocket")]);
        strip_hop_by_hop(&mut plain);
        assert!(plain.is_empty());
    }

    #[test]
    fn the_app_sees_no_mark() {
        let mut fields = map(&[
            ("host", "shop.example"),
            ("x-zeroscale-offer", "aa"),
            ("x-zeroscale-lease", "1h"),
            ("k-proxy-request", "activator"),
        ]);
        to_app(&mut fields, PEER, Compat::Better);
        let seen = map(&[("host", "shop.example"), ("k-proxy-request", "activator"), ("x-forwarded-for", "192.0.2.9")]);
        assert_eq!(fields, seen);
    }

    #[test]
    fn no_mark_of_a_client_reaches_a_pod_be_the_client_trusted() {
        let mut fields = map(&[
            ("x-zeroscale-offer", "aa"),
            ("x-zeroscale-handback", "aa full"),
            ("k-network-hash", "h"),
            ("knative-serving-revision", "rev"),
            ("k-proxy-request", "me"),
        ]);
        to_pod(&mut fields, PEER, None);
        let seen = map(&[("k-original-host", ""), ("k-proxy-request", "activator"), ("x-forwarded-for", "192.0.2.9")]);
        assert_eq!(fields, seen);
    }

    #[test]
    fn an_app_cannot_hand_a_request_back() {
        let mut fields = map(&[("x-zeroscale-handback", "aa full"), ("trailer", "grpc-status"), ("server", "x")]);
        to_client(&mut fields, true, false);
        assert_eq!(fields, map(&[("trailer", "grpc-status"), ("server", "x")]));
    }
}
