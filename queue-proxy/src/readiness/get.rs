//! A GET of the app, by hand: one request on one connection, of whose answer
//! only the head counts.

use super::attempt::{Terms, connect};
use super::spec::{HttpGet, Target};
use bytes::Bytes;
use http::header::{
    ACCEPT_ENCODING, CONNECTION, CONTENT_LENGTH, HOST, HeaderName, HeaderValue, TRAILER, TRANSFER_ENCODING,
    USER_AGENT as AGENT,
};
use http::{Method, Request, Version};
use policy::compat::Compat;
use std::sync::atomic::Ordering;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// As the reference names itself; apps match on `kube-probe/`.
pub(super) const USER_AGENT: &str = "kube-probe//";
/// Redirects that are followed; the reference's.
const REDIRECTS_MAX: usize = 10;
/// Largest head of an answer that is read.
const HEAD_BYTES_MAX: usize = 64 << 10;
/// Header fields of an answer that are read.
const FIELDS_MAX: usize = 128;

/// Asks once; passes on an answer from 200 to 399.
pub(super) async fn ask(probe: &HttpGet, terms: &Terms<'_>) -> Result<(), String> {
    if probe.https {
        return Err("https probes are not supported: this sidecar has no TLS client".to_owned());
    }
    if !terms.detect_http2 {
        return http1(probe, terms.compat, true).await;
    }
    let strict = terms.compat == Compat::Strict;
    if !strict && terms.http1_only.load(Ordering::Relaxed) {
        // An app that has spoken HTTP/1 is not sent a preface that it would
        // log as a bad request, unless it stops answering.
        let passed = http1(probe, terms.compat, true).await;
        terms.http1_only.store(passed.is_ok(), Ordering::Relaxed);
        return passed;
    }
    // The reference finds out with one request and asks with another.
    if http2(probe, terms.compat, !strict).await.and_then(passes).is_ok() {
        return if strict { http2(probe, terms.compat, true).await.and_then(passes) } else { Ok(()) };
    }
    let passed = http1(probe, terms.compat, !strict).await;
    terms.http1_only.store(passed.is_ok(), Ordering::Relaxed);
    passed
}

fn passes(status: u16) -> Result<(), String> {
    if (200..400).contains(&status) {
        return Ok(());
    }
    Err(format!("HTTP probe did not respond Ready, got status code: {status}"))
}

/// Over HTTP/1.1, along redirects.
async fn http1(probe: &HttpGet, compat: Compat, configured: bool) -> Result<(), String> {
    let mut probe = probe.clone();
    if !configured {
        probe.headers.clear();
    }
    for _ in 0..=REDIRECTS_MAX {
        let (status, location) = exchange(&probe, compat).await?;
        let Some(location) = location.filter(|_| matches!(status, 301 | 302 | 303 | 307 | 308)) else {
            return passes(status);
        };
        probe = redirected(&probe, &location)?;
    }
    Err(format!("stopped after {REDIRECTS_MAX} redirects"))
}

/// One request; the answer's status, and where it points.
async fn exchange(probe: &HttpGet, compat: Compat) -> Result<(u16, Option<String>), String> {
    let mut stream = connect(&probe.target).await?;
    let told = |error: std::io::Error| format!("Get {}: {error}", url(probe));
    stream.write_all(&head(probe, compat)).await.map_err(told)?;
    let mut seen = Vec::with_capacity(1024);
    loop {
        if seen.len() >= HEAD_BYTES_MAX {
            return Err(format!("Get {}: the head of the answer is too long", url(probe)));
        }
        if stream.read_buf(&mut seen).await.map_err(told)? == 0 {
            return Err(format!("Get {}: EOF", url(probe)));
        }
        if let Some(answer) = answer(&mut seen).map_err(|error| format!("Get {}: {error}", url(probe)))? {
            return Ok(answer);
        }
    }
}

/// The answer in what has come so far, if its head is whole. Answers that
/// only announce another one (103, say) are passed over.
fn answer(seen: &mut Vec<u8>) -> Result<Option<(u16, Option<String>)>, httparse::Error> {
    loop {
        let mut fields = [httparse::EMPTY_HEADER; FIELDS_MAX];
        let mut parsed = httparse::Response::new(&mut fields);
        let httparse::Status::Complete(length) = parsed.parse(seen)? else { return Ok(None) };
        let status = parsed.code.unwrap_or_default();
        if (100..200).contains(&status) && status != 101 {
            seen.drain(..length);
            continue;
        }
        let location = parsed.headers.iter().find(|field| field.name.eq_ignore_ascii_case("location"));
        let location = location.map(|field| String::from_utf8_lossy(field.value).into_owned());
        return Ok(Some((status, location)));
    }
}

/// The request's head.
fn head(probe: &HttpGet, compat: Compat) -> Vec<u8> {
    let mut head = format!("GET {} HTTP/1.1\r\n", probe.path).into_bytes();
    let mut fields = fields(probe, compat);
    fields.push((CONNECTION, HeaderValue::from_static("close")));
    for (name, value) in fields {
        head.extend_from_slice(title_case(&name).as_bytes());
        head.extend_from_slice(b": ");
        head.extend_from_slice(value.as_bytes());
        head.extend_from_slice(b"\r\n");
    }
    head.extend_from_slice(b"\r\n");
    head
}

/// All headers but those of the connection. A configured one replaces ours;
/// the reference ignores a configured `Host` and `User-Agent`.
fn fields(probe: &HttpGet, compat: Compat) -> Vec<(HeaderName, HeaderValue)> {
    let ignored = |name: &HeaderName| {
        let strict = compat == Compat::Strict && (name == HOST || name == AGENT);
        strict || [CONNECTION, CONTENT_LENGTH, TRANSFER_ENCODING, TRAILER].contains(name)
    };
    let configured: Vec<_> = probe.headers.iter().filter(|(name, _)| !ignored(name)).cloned().collect();
    let host = HeaderValue::from_str(&probe.target.authority()).unwrap_or(HeaderValue::from_static("localhost"));
    let ours = [
        (HOST, host),
        (AGENT, HeaderValue::from_static(USER_AGENT)),
        (ACCEPT_ENCODING, HeaderValue::from_static("gzip")),
    ];
    let ours = ours.into_iter().filter(|(name, _)| configured.iter().all(|(other, _)| other != name));
    ours.chain(configured.iter().cloned()).collect()
}

/// `x-request-id` as `X-Request-Id`, which is how apps see all other requests.
fn title_case(name: &HeaderName) -> String {
    let mut start = true;
    let letters = name.as_str().chars().map(|letter| {
        let letter = if start { letter.to_ascii_uppercase() } else { letter };
        start = letter == '-';
        letter
    });
    letters.collect()
}

/// Where a redirect leads. Configured headers go along within the same server
/// only: they may hold what another one must not see.
fn redirected(from: &HttpGet, location: &str) -> Result<HttpGet, String> {
    let location = location.split('#').next().unwrap_or_default();
    let fault = || format!("Get {}: redirected to `{location}`", url(from));
    let (authority, path) = match location.split_once("//") {
        Some((scheme, rest)) if scheme.is_empty() || scheme.eq_ignore_ascii_case("http:") => {
            let end = rest.find(['/', '?']).unwrap_or(rest.len());
            (Some(&rest[..end]), rest[end..].to_owned())
        }
        Some((scheme, _)) if scheme.eq_ignore_ascii_case("https:") => {
            return Err(format!("{}, but this sidecar has no TLS client", fault()));
        }
        _ if location.starts_with('/') => (None, location.to_owned()),
        _ => {
            let path = from.path.split('?').next().unwrap_or_default();
            let folder = &path[..path.rfind('/').map_or(0, |slash| slash + 1)];
            let base = if location.starts_with('?') { path } else { folder };
            (None, format!("{base}{location}"))
        }
    };
    let target = authority.map_or_else(|| Ok(from.target.clone()), |text| target(text).ok_or_else(fault))?;
    let headers = if target == from.target { from.headers.clone() } else { Vec::new() };
    Ok(HttpGet { target, path: super::spec::rooted(&path), https: false, headers })
}

fn target(authority: &str) -> Option<Target> {
    let authority: http::uri::Authority = authority.parse().ok()?;
    let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_owned();
    (!host.is_empty()).then(|| Target { host, port: authority.port_u16().unwrap_or(80) })
}

fn url(probe: &HttpGet) -> String {
    format!("\"http://{}{}\"", probe.target.authority(), probe.path)
}

/// Over HTTP/2 with prior knowledge; redirects count as answers.
async fn http2(probe: &HttpGet, compat: Compat, configured: bool) -> Result<u16, String> {
    let told = |error: h2::Error| format!("Get {}: {error}", url(probe));
    let stream = connect(&probe.target).await?;
    let (sender, connection) = h2::client::handshake(stream).await.map_err(told)?;
    let exchange = async {
        let mut sender: h2::client::SendRequest<Bytes> = sender.ready().await.map_err(told)?;
        let request = http2_request(probe, compat, configured)?;
        let (answer, _) = sender.send_request(request, true).map_err(told)?;
        Ok(answer.await.map_err(told)?.status().as_u16())
    };
    tokio::select! {
        status = exchange => status,
        ended = connection => Err(ended.map_or_else(told, |()| format!("Get {}: EOF", url(probe)))),
    }
}

fn http2_request(probe: &HttpGet, compat: Compat, configured: bool) -> Result<Request<()>, String> {
    let mut probe = probe.clone();
    if !configured {
        probe.headers.clear();
    }
    let mut fields = fields(&probe, compat);
    let host = fields.iter().position(|(name, _)| *name == HOST).map(|at| fields.remove(at).1);
    let authority = host.and_then(|host| host.to_str().ok().map(str::to_owned)).unwrap_or_default();
    let request = Request::builder()
        .method(Method::GET)
        .version(Version::HTTP_2)
        .uri(format!("http://{authority}{}", probe.path));
    let request = fields.into_iter().fold(request, |request, (name, value)| request.header(name, value));
    request.body(()).map_err(|error| format!("Get {}: {error}", url(&probe)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn probe(headers: &[(&str, &str)]) -> HttpGet {
        let target = Target { host: "127.0.0.1".into(), port: 8080 };
        let headers = headers.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect();
        HttpGet { target, path: "/a/ready?x".into(), https: false, headers }
    }

    fn text(probe: &HttpGet, compat: Compat) -> String {
        String::from_utf8(head(probe, compat)).unwrap()
    }

    #[test]
    fn the_request_is_the_reference_s() {
        let expected = "GET /a/ready?x HTTP/1.1\r\nHost: 127.0.0.1:8080\r\nUser-Agent: kube-probe//\r\n\
                        Accept-Encoding: gzip\r\nX-A: 1\r\nConnection: close\r\n\r\n";
        let configured = probe(&[("x-a", "1")]);
        assert_eq!(text(&configured, Compat::Strict), expected);
        assert_eq!(text(&configured, Compat::Better), expected);
    }

    #[test]
    fn configured_host_and_user_agent_count_but_in_strict_mode() {
        let configured = probe(&[("host", "shop.example"), ("user-agent", "me/1"), ("content-length", "7")]);
        let better = text(&configured, Compat::Better);
        assert!(better.contains("Host: shop.example\r\n") && better.contains("User-Agent: me/1\r\n"), "{better}");
        assert!(!better.contains("127.0.0.1") && !better.contains("kube-probe") && !better.contains("Length"));
        let strict = text(&configured, Compat::Strict);
        assert!(!strict.contains("shop.example") && !strict.contains("me/1"), "{strict}");
    }

    #[test]
    fn an_answer_is_read_when_its_head_is_whole() {
        let read = |text: &str| answer(&mut text.as_bytes().to_vec());
        assert_eq!(read("HTTP/1.1 200 OK\r\nA: b\r\n"), Ok(None));
        assert_eq!(read("HTTP/1.1 103 E\r\n\r\nHTTP/1.1 404 N\r\n\r\nx"), Ok(Some((404, None))));
        let moved = Ok(Some((302, Some("/x".to_owned()))));
        assert_eq!(read("HTTP/1.1 302 F\r\nlocation: /x\r\n\r\n"), moved);
        assert!(read("SSH-2.0-x\r\n\r\n").is_err());
    }

    #[test]
    fn redirects_are_resolved_and_other_servers_learn_nothing() {
        let from = probe(&[("authorization", "secret")]);
        let to =
            |location: &str| redirected(&from, location).map(|to| (to.target.authority(), to.path, to.headers.len()));
        let here = |path: &str| Ok(("127.0.0.1:8080".to_owned(), path.to_owned(), 1));
        assert_eq!(to("/b?y#z"), here("/b?y"));
        assert_eq!(to("b"), here("/a/b"));
        assert_eq!(to("?q"), here("/a/ready?q"));
        assert_eq!(to("http://127.0.0.1:8080/c"), here("/c"));
        assert_eq!(to("http://other/c d"), Ok(("other:80".into(), "/c%20d".into(), 0)));
        assert_eq!(to("//[::1]:9"), Ok(("[::1]:9".into(), "/".into(), 0)));
        assert!(to("https://127.0.0.1/").unwrap_err().contains("TLS"));
        assert!(to("http://").is_err() && to("http://a b/").is_err());
    }
}
