//! The server's opening handshake (RFC 6455, section 4.2): whom to switch for.

use super::handshake::accept_of;
use http::header::{CONNECTION, HOST, ORIGIN, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_VERSION, UPGRADE};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, Uri};

const VERSION: &str = "13";

/// The answer to a request that asks for a websocket.
///
/// # Errors
/// The status for one that does not, or not rightly: 403 for a page of another
/// host, 405 for another method than GET, 400 for all else.
pub fn accept<B>(request: &Request<B>) -> Result<Response<()>, StatusCode> {
    let fields = request.headers();
    if !has(fields, CONNECTION, "upgrade") || !has(fields, UPGRADE, "websocket") {
        return Err(StatusCode::BAD_REQUEST);
    }
    if request.method() != Method::GET {
        return Err(StatusCode::METHOD_NOT_ALLOWED);
    }
    if !has(fields, SEC_WEBSOCKET_VERSION, VERSION) {
        return Err(StatusCode::BAD_REQUEST);
    }
    if !is_of_same_host(fields) {
        return Err(StatusCode::FORBIDDEN);
    }
    let key = fields.get(SEC_WEBSOCKET_KEY).and_then(|key| key.to_str().ok()).unwrap_or_default();
    let accept = HeaderValue::try_from(accept_of(key)).map_err(|_| StatusCode::BAD_REQUEST)?;
    if key.is_empty() {
        return Err(StatusCode::BAD_REQUEST);
    }
    let mut response = Response::new(());
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let answer = response.headers_mut();
    answer.insert(UPGRADE, HeaderValue::from_static("websocket"));
    answer.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    answer.insert(SEC_WEBSOCKET_ACCEPT, accept);
    Ok(response)
}

fn has(fields: &HeaderMap, name: HeaderName, word: &str) -> bool {
    let lines = fields.get_all(name).into_iter();
    let mut words = lines.flat_map(|line| line.as_bytes().split(|byte| *byte == b','));
    words.any(|part| part.trim_ascii().eq_ignore_ascii_case(word.as_bytes()))
}

/// Whoever sends no origin is no browser.
fn is_of_same_host(fields: &HeaderMap) -> bool {
    let Some(origin) = fields.get(ORIGIN) else { return true };
    let Ok(Ok(origin)) = origin.to_str().map(str::parse::<Uri>) else { return false };
    let (Some(authority), Some(host)) = (origin.authority(), fields.get(HOST)) else { return false };
    authority.as_str().as_bytes().eq_ignore_ascii_case(host.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(changes: &[(&'static str, &'static str)]) -> Result<Response<()>, StatusCode> {
        let mut request = Request::new(());
        let whole = [
            ("host", "a.test:8080"),
            ("connection", "keep-alive, Upgrade"),
            ("upgrade", "WebSocket"),
            ("sec-websocket-version", "13"),
            ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
        ];
        for &(name, value) in whole.iter().chain(changes) {
            match value {
                "-" => _ = request.headers_mut().remove(name),
                "POST" => *request.method_mut() = Method::POST,
                _ => _ = request.headers_mut().insert(name, HeaderValue::from_static(value)),
            }
        }
        accept(&request)
    }

    #[test]
    fn the_example_of_the_standard_is_answered_as_in_it() {
        let answer = asked(&[("origin", "http://A.test:8080")]).unwrap();
        assert_eq!(answer.headers()[SEC_WEBSOCKET_ACCEPT], "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    }

    #[test]
    fn what_is_no_handshake_of_ours_is_refused() {
        for (name, value, status) in [
            ("upgrade", "-", 400),
            ("connection", "close", 400),
            ("sec-websocket-version", "8", 400),
            ("sec-websocket-key", "-", 400),
            ("method", "POST", 405),
            ("origin", "http://elsewhere.test", 403),
            ("origin", "http://a.test", 403),
            ("origin", "null", 403),
        ] {
            assert_eq!(asked(&[(name, value)]).unwrap_err().as_u16(), status, "{name}: {value}");
        }
    }
}
