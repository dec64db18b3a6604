//! Where a request goes on the next hop: request target, host, version.

use crate::headers::ORIGINAL_HOST;
use bytes::Bytes;
use http::header::{HOST, HeaderValue};
use http::request::Parts;
use http::uri::{PathAndQuery, Scheme, Uri};
use http::{Method, Version};
use std::net::SocketAddr;

/// The target as it stood in the request line, among a request's extensions:
/// only where its URI could not hold it and so holds it escaped. Over HTTP/1 it
/// goes on as it came.
#[derive(Clone, Debug)]
pub struct AsItCame(pub(crate) Bytes);

impl AsItCame {
    /// Of these parts, if their URI is not the whole truth.
    pub fn of(parts: &Parts) -> Option<&str> {
        parts.extensions.get::<AsItCame>().and_then(|target| std::str::from_utf8(&target.0).ok())
    }

    /// Leaves nothing else among the extensions: they are of this connection.
    pub fn alone(parts: &mut Parts) {
        let kept = parts.extensions.remove::<AsItCame>();
        parts.extensions.clear();
        if let Some(kept) = kept {
            parts.extensions.insert(kept);
        }
    }
}

/// Path and query of a target that begins with a slash; and the target again,
/// where it has bytes that a URI cannot hold.
pub(crate) fn path_and_query(raw: Bytes) -> Option<(PathAndQuery, Option<AsItCame>)> {
    if let Ok(path) = PathAndQuery::from_maybe_shared(raw.clone()) {
        return Some((path, None));
    }
    let escaped: String = raw.iter().map(|byte| escaped(*byte)).collect::<Option<_>>()?;
    Some((escaped.parse().ok()?, Some(AsItCame(raw))))
}

/// What browsers and Go escape, or leave: `None` for what no target may hold.
fn escaped(byte: u8) -> Option<String> {
    match byte {
        b'"' | b'<' | b'>' | b'\\' | b'^' | b'`' | b'{' | b'|' | b'}' | 0x80.. => Some(format!("%{byte:02X}")),
        0x21..=0x7e => Some(char::from(byte).to_string()),
        _ => None,
    }
}

/// The host that a request names, wherever it stands.
pub fn host_of(parts: &Parts) -> Option<HeaderValue> {
    match parts.uri.authority() {
        Some(authority) => HeaderValue::from_str(authority.as_str()).ok(),
        None => parts.headers.get(HOST).cloned(),
    }
}

/// Addresses a request to a pod: its host is kept beside, as the reference does.
pub fn to_pod(parts: &mut Parts, pod: SocketAddr) {
    let host = HeaderValue::from_str(&pod.to_string()).ok();
    point(parts, host);
}

/// Addresses a request to a host by name, wherever it is sent.
pub fn to_host(parts: &mut Parts, host: HeaderValue) {
    point(parts, Some(host));
}

/// Addresses a request to the app behind a sidecar: the client's host comes
/// back; without any, the app's own address stands in.
pub fn to_app(parts: &mut Parts, app: SocketAddr) {
    let is_there =
        parts.version != Version::HTTP_2 && is_in_origin_form(&parts.uri) && parts.headers.contains_key(HOST);
    if is_there && !parts.headers.contains_key(ORIGINAL_HOST) {
        return;
    }
    let original = parts.headers.remove(ORIGINAL_HOST).filter(|host| !host.is_empty());
    let host = original.or_else(|| host_of(parts)).or_else(|| HeaderValue::from_str(&app.to_string()).ok());
    point(parts, host);
}

fn is_in_origin_form(uri: &Uri) -> bool {
    uri.authority().is_none() && uri.scheme().is_none() && uri.path_and_query().is_some()
}

/// Puts a request into another version of HTTP; target and host stay.
pub fn in_version(parts: &mut Parts, version: Version) {
    let host = host_of(parts);
    parts.version = version;
    point(parts, host);
}

/// Path and query stay as they are, byte for byte. HTTP/1 carries the host as
/// a field, HTTP/2 in the target.
fn point(parts: &mut Parts, host: Option<HeaderValue>) {
    let http2 = parts.version == Version::HTTP_2;
    if parts.method == Method::CONNECT && parts.uri.path_and_query().is_none() {
        return;
    }
    let path = parts.uri.path_and_query().cloned().unwrap_or_else(|| PathAndQuery::from_static("/"));
    let mut uri = std::mem::take(&mut parts.uri).into_parts();
    (uri.scheme, uri.authority, uri.path_and_query) = (None, None, Some(path.clone()));
    if http2 {
        uri.scheme = Some(Scheme::HTTP);
        uri.authority = host.as_ref().and_then(|host| host.as_bytes().try_into().ok());
        if uri.authority.is_none() {
            uri.scheme = None;
        }
        parts.headers.remove(HOST);
    } else if let Some(host) = host {
        parts.headers.insert(HOST, host);
    }
    parts.uri = Uri::from_parts(uri).unwrap_or_else(|_| Uri::from(path));
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::Request;

    const POD: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 8012);

    fn parts(target: &str, version: Version, host: Option<&str>) -> Parts {
        let request = Request::get(target).version(version);
        let request = host.into_iter().fold(request, |request, host| request.header(HOST, host));
        request.body(()).unwrap().into_parts().0
    }

    #[test]
    fn http1_goes_on_in_origin_form_with_the_path_untouched() {
        for (target, seen) in
            [("/a//b/../%2e?x=1;y", "/a//b/../%2e?x=1;y"), ("http://shop.example/p?q", "/p?q"), ("*", "*")]
        {
            let mut parts = parts(target, Version::HTTP_11, Some("shop.example"));
            to_pod(&mut parts, POD);
            assert_eq!(
                (parts.uri.to_string().as_str(), &parts.headers[HOST]),
                (seen, &HeaderValue::from_static("127.0.0.1:8012"))
            );
        }
    }

    #[test]
    fn another_version_says_the_same_in_its_own_way() {
        let mut request = parts("/a?b", Version::HTTP_11, Some("shop.example"));
        in_version(&mut request, Version::HTTP_2);
        assert_eq!((request.uri.to_string().as_str(), request.headers.get(HOST)), ("http://shop.example/a?b", None));
        in_version(&mut request, Version::HTTP_11);
        assert_eq!(
            (request.uri.to_string().as_str(), &request.headers[HOST]),
            ("/a?b", &"shop.example".parse().unwrap())
        );
    }

    #[test]
    fn the_app_sees_the_host_that_the_client_asked_for() {
        let mut http1 = parts("/", Version::HTTP_11, Some("127.0.0.1:8012"));
        http1.headers.insert(ORIGINAL_HOST, HeaderValue::from_static("shop.example"));
        to_app(&mut http1, POD);
        assert_eq!(http1.headers[HOST], "shop.example");
        let mut http2 = parts("http://127.0.0.1:8012/x", Version::HTTP_2, None);
        http2.headers.insert(ORIGINAL_HOST, HeaderValue::from_static("shop.example:81"));
        to_app(&mut http2, POD);
        assert_eq!(http2.uri, "http://shop.example:81/x");
        let mut old = parts("/", Version::HTTP_10, None);
        to_app(&mut old, POD);
        assert_eq!(old.headers[HOST], "127.0.0.1:8012");
    }

    #[test]
    fn a_target_that_no_uri_can_hold_is_kept_beside_an_escaped_one() {
        let raw = |text: &'static str| path_and_query(Bytes::from_static(text.as_bytes()));
        let (path, kept) = raw("/a?x=1&y=%22").unwrap();
        assert!(path.as_str() == "/a?x=1&y=%22" && kept.is_none());
        let (path, kept) = raw("/a<b>&c='x'\\%22?y=\"q\"").unwrap();
        assert_eq!(path.as_str(), "/a%3Cb%3E&c='x'%5C%22?y=%22q%22");
        assert_eq!(kept.unwrap().0, "/a<b>&c='x'\\%22?y=\"q\"");
        assert_eq!(raw("/<\u{e4}").unwrap().0.as_str(), "/%3C%C3%A4");
        assert!(raw("/a b").is_none() && raw("/a\x01").is_none());
    }
}
