//! Where a collector is.

use http::Uri;

/// A collector's address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// True for `https`.
    pub tls: bool,
    /// Name or address, without brackets.
    pub host: String,
    /// Port.
    pub port: u16,
    /// Path and query, exactly as given; `/` if none was.
    pub path: String,
}

impl Endpoint {
    /// Reads a URL. For gRPC `host:port` alone will do; the path means nothing there.
    pub(super) fn parse(text: &str, bare: bool) -> Option<Endpoint> {
        let whole = if bare && !text.contains("://") { format!("http://{text}") } else { text.to_owned() };
        let uri: Uri = whole.parse().ok()?;
        let tls = match uri.scheme_str()? {
            "http" => false,
            "https" => true,
            _ => return None,
        };
        let authority = uri.authority()?;
        let host = authority.host();
        let bad_port = !authority.as_str().ends_with(host) && authority.port().is_none();
        let host = host.trim_start_matches('[').trim_end_matches(']');
        if host.is_empty() || bad_port {
            return None;
        }
        let port = match authority.port() {
            Some(port) => port.as_u16(),
            None => {
                if tls {
                    443
                } else {
                    80
                }
            }
        };
        let path = uri.path_and_query().map_or("/", http::uri::PathAndQuery::as_str);
        let path = if path.is_empty() { "/" } else { path };
        Some(Endpoint { tls, host: host.to_owned(), port, path: path.to_owned() })
    }

    /// As it stands in a `Host` header.
    pub fn authority(&self) -> String {
        if self.host.contains(':') {
            format!("[{}]:{}", self.host, self.port)
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }
}

/// Host and port of `host:port`, where each may be missing.
pub(super) fn listener(text: &str, default_port: u16) -> Option<(String, u16)> {
    if text.is_empty() {
        return Some((String::new(), default_port));
    }
    let (host, port) = text.rsplit_once(':')?;
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    Some((host.to_owned(), port.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<(bool, String, String)> {
        Endpoint::parse(text, false).map(|at| (at.tls, at.authority(), at.path))
    }

    #[test]
    fn urls_are_taken_exactly_as_given() {
        let plain = |authority: &str, path: &str| Some((false, authority.to_owned(), path.to_owned()));
        assert_eq!(read("http://collector:4318/v1/metrics?a=b"), plain("collector:4318", "/v1/metrics?a=b"));
        assert_eq!(read("http://collector"), plain("collector:80", "/"));
        assert_eq!(read("http://[::1]:4318/x/"), plain("[::1]:4318", "/x/"));
        assert_eq!(read("https://c").map(|at| (at.0, at.1)), Some((true, "c:443".to_owned())));
        for bad in ["", "collector:4318", "ftp://x", "http://", "http://:80/", "http://a b/", "http://a:99999/"] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }

    #[test]
    fn grpc_needs_no_scheme() {
        assert_eq!(Endpoint::parse("collector:4317", true).unwrap().authority(), "collector:4317");
    }

    #[test]
    fn a_listener_may_leave_out_its_host() {
        assert_eq!(listener("", 9091), Some((String::new(), 9091)));
        assert_eq!(listener(":9999", 9091), Some((String::new(), 9999)));
        assert_eq!(listener("[::1]:1", 9091), Some(("::1".to_owned(), 1)));
        assert_eq!(listener("host", 9091), None);
    }
}
