//! Unary gRPC calls: [`unary`] on a connection of its own, for health checks
//! and exports, a few a minute; [`Link`] for one call after another. Not a
//! client for the request path, and nothing of tonic, which the sidecar must
//! not link. [`stream`]: one call that lasts, messages both ways.

pub mod stream;

use bytes::{BufMut, Bytes, BytesMut};
use h2::client;
use http::header::{CONTENT_TYPE, HeaderName, HeaderValue, TE, USER_AGENT};
use http::{HeaderMap, Method, Request, Version};
use std::fmt;
use std::pin::{Pin, pin};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};

/// What is called, and how.
#[derive(Clone, Debug)]
pub struct Call<'a> {
    /// `host:port`, as the server is named.
    pub authority: &'a str,
    /// `/package.Service/Method`.
    pub path: &'a str,
    /// Who asks.
    pub user_agent: &'a str,
    /// What else stands in the head.
    pub fields: &'a [(HeaderName, HeaderValue)],
    /// The encoded message.
    pub message: &'a [u8],
    /// Told to the server; whoever calls keeps to it by dropping the call.
    pub timeout: Duration,
    /// Longest answer that is taken.
    pub answer_max: usize,
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallError {
    /// The server answered with a gRPC status that is not OK.
    Status {
        /// Its code.
        code: u32,
        /// Its text, as it came.
        message: String,
    },
    /// It is no gRPC server, or broke off.
    Broken(String),
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CallError::Status { code, message } => write!(f, "rpc error: code = {code} desc = {message}"),
            CallError::Broken(why) => f.write_str(why),
        }
    }
}

/// Bytes before each message: compressed or not, and its length.
const PREFIX_BYTES: usize = 5;

const TIMEOUT: HeaderName = HeaderName::from_static("grpc-timeout");

/// Calls, and returns the answer's message.
///
/// # Errors
/// See [`CallError`].
pub async fn unary<S>(stream: S, call: &Call<'_>) -> Result<Bytes, CallError>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    Link::open(stream).await?.call(call).await
}

/// A connection for calls one after another. It works only while one of its
/// methods is awaited. After [`CallError::Broken`] it is of no use.
pub struct Link<S> {
    sender: client::SendRequest<Bytes>,
    connection: Pin<Box<client::Connection<S>>>,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Link<S> {
    /// Begins on a new connection.
    ///
    /// # Errors
    /// When that is broken.
    pub async fn open(stream: S) -> Result<Link<S>, CallError> {
        let opening = client::Builder::new().enable_push(false).handshake(stream);
        let (sender, connection) = opening.await.map_err(broken)?;
        Ok(Link { sender, connection: Box::pin(connection) })
    }

    /// Calls, and returns the answer's message. A call that is dropped is
    /// called off; the link stays of use.
    ///
    /// # Errors
    /// See [`CallError`].
    pub async fn call(&mut self, call: &Call<'_>) -> Result<Bytes, CallError> {
        let mut answer = pin!(exchange(self.sender.clone(), call));
        tokio::select! {
            answer = &mut answer => return answer,
            ended = &mut self.connection => ended.map_err(broken)?,
        }
        // It was closed; the answer may have come before that.
        answer.await
    }

    /// Ready when the other side has closed the connection: why.
    pub async fn closed(&mut self) -> CallError {
        match (&mut self.connection).await {
            Ok(()) => CallError::Broken("the server closed the connection".to_owned()),
            Err(error) => broken(error),
        }
    }
}

async fn exchange(sender: client::SendRequest<Bytes>, call: &Call<'_>) -> Result<Bytes, CallError> {
    let mut sender = sender.ready().await.map_err(broken)?;
    let (answer, mut body) = sender.send_request(request(call)?, false).map_err(broken)?;
    body.send_data(framed(call.message), true).map_err(broken)?;
    let (parts, mut body) = answer.await.map_err(broken)?.into_parts();
    if !parts.status.is_success() {
        return Err(CallError::Broken(format!("the server answered with status {}", parts.status.as_u16())));
    }
    // An answer without a message has its status in the head.
    status(&parts.headers)?;
    let mut bytes = BytesMut::new();
    while let Some(chunk) = body.data().await {
        let chunk = chunk.map_err(broken)?;
        let _ = body.flow_control().release_capacity(chunk.len());
        if bytes.len() + chunk.len() > call.answer_max + PREFIX_BYTES {
            return Err(CallError::Broken(format!("the answer is longer than {} bytes", call.answer_max)));
        }
        bytes.extend_from_slice(&chunk);
    }
    if let Some(trailers) = body.trailers().await.map_err(broken)? {
        status(&trailers)?;
    }
    unframed(bytes.freeze())
}

fn request(call: &Call<'_>) -> Result<Request<()>, CallError> {
    let mut request = bare_request(call.authority, call.path, call.user_agent)?;
    let fields = request.headers_mut();
    if let Ok(span) = HeaderValue::from_str(&timeout(call.timeout)) {
        fields.insert(TIMEOUT, span);
    }
    for (name, value) in call.fields {
        fields.insert(name.clone(), value.clone());
    }
    Ok(request)
}

fn bare_request(authority: &str, path: &str, user_agent: &str) -> Result<Request<()>, CallError> {
    Request::builder()
        .method(Method::POST)
        .version(Version::HTTP_2)
        .uri(format!("http://{authority}{path}"))
        .header(CONTENT_TYPE, HeaderValue::from_static("application/grpc"))
        .header(TE, HeaderValue::from_static("trailers"))
        .header(USER_AGENT, user_agent)
        .body(())
        .map_err(|error| CallError::Broken(error.to_string()))
}

/// At most eight digits and a unit, as the protocol has it.
fn timeout(span: Duration) -> String {
    match u32::try_from(span.as_millis()) {
        Ok(millis) if millis < 100_000_000 => format!("{millis}m"),
        _ => format!("{}S", span.as_secs().min(99_999_999)),
    }
}

fn framed(message: &[u8]) -> Bytes {
    let mut bytes = BytesMut::with_capacity(PREFIX_BYTES + message.len());
    bytes.put_u8(0);
    bytes.put_u32(u32::try_from(message.len()).unwrap_or(u32::MAX));
    bytes.put_slice(message);
    bytes.freeze()
}

fn unframed(mut bytes: Bytes) -> Result<Bytes, CallError> {
    if bytes.len() < PREFIX_BYTES {
        return Err(CallError::Broken("the answer has no message".to_owned()));
    }
    let prefix = bytes.split_to(PREFIX_BYTES);
    let length = u32::from_be_bytes([prefix[1], prefix[2], prefix[3], prefix[4]]) as usize;
    if prefix[0] != 0 || length > bytes.len() {
        return Err(CallError::Broken("the answer's message is compressed or cut short".to_owned()));
    }
    Ok(bytes.split_to(length))
}

fn status(fields: &HeaderMap) -> Result<(), CallError> {
    let text = |name| fields.get(name).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
    match text("grpc-status") {
        None => Ok(()),
        Some(code) if code == "0" => Ok(()),
        Some(code) => {
            let message = text("grpc-message").unwrap_or_default();
            // A code that is no number counts as UNKNOWN, as in gRPC's own libraries.
            Err(CallError::Status { code: code.parse().unwrap_or(2), message })
        }
    }
}

fn broken(error: h2::Error) -> CallError {
    CallError::Broken(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::Response;
    use tokio::net::{TcpListener, TcpStream};

    static FIELDS: [(HeaderName, HeaderValue); 1] =
        [(HeaderName::from_static("api-key"), HeaderValue::from_static("k"))];

    static CALL: Call<'static> = Call {
        authority: "127.0.0.1:1",
        path: "/a.B/C",
        user_agent: "test/1",
        fields: &FIELDS,
        message: b"ask",
        timeout: Duration::from_millis(1500),
        answer_max: 64,
    };

    /// A server that answers one call with `body` and then `trailers`.
    async fn server(body: &'static [u8], trailers: &'static [(&'static str, &'static str)]) -> TcpStream {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            let (stream, _) = listener.accept().await.unwrap();
            let mut connection = h2::server::handshake(stream).await.unwrap();
            while let Some(Ok((request, mut respond))) = connection.accept().await {
                assert_eq!(request.headers()["grpc-timeout"], "1500m");
                assert_eq!(request.headers()["api-key"], "k");
                // A call that was called off cannot be answered.
                let Ok(mut answer) = respond.send_response(Response::new(()), false) else { continue };
                if answer.send_data(Bytes::from_static(body), trailers.is_empty()).is_ok() && !trailers.is_empty() {
                    let fields = trailers.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()));
                    let _ = answer.send_trailers(fields.collect());
                }
            }
        });
        TcpStream::connect(address).await.unwrap()
    }

    #[tokio::test]
    async fn an_answer_is_its_message_and_a_status_is_an_error() {
        let fine = server(b"\0\0\0\0\x02ok", &[("grpc-status", "0")]).await;
        assert_eq!(unary(fine, &CALL).await, Ok(Bytes::from_static(b"ok")));
        let refused = server(b"", &[("grpc-status", "12"), ("grpc-message", "no such call")]).await;
        let expected = CallError::Status { code: 12, message: "no such call".to_owned() };
        assert_eq!(unary(refused, &CALL).await, Err(expected));
    }

    #[tokio::test]
    async fn calls_follow_each_other_on_one_connection_until_it_is_closed() {
        let stream = server(b"\0\0\0\0\x02ok", &[("grpc-status", "0")]).await;
        let mut link = Link::open(stream).await.unwrap();
        for _ in 0..3 {
            assert_eq!(link.call(&CALL).await, Ok(Bytes::from_static(b"ok")));
        }
        // This one is called off before the server can have answered.
        tokio::select! {
            biased;
            _ = link.call(&CALL) => unreachable!("the server has not run"),
            () = std::future::ready(()) => {}
        }
        assert_eq!(link.call(&CALL).await, Ok(Bytes::from_static(b"ok")));
        let (gone, mut link) = {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let stream = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
            (listener.accept().await.unwrap().0, Link::open(stream).await.unwrap())
        };
        drop(gone);
        assert!(matches!(link.closed().await, CallError::Broken(_)));
    }

    #[tokio::test]
    async fn what_is_no_answer_is_told_as_such() {
        let long = Box::leak(vec![0; 200].into_boxed_slice());
        for body in [&b""[..], b"\0\0", b"\x01\0\0\0\x01x", b"\0\0\0\0\x09x", long] {
            let stream = server(body, &[]).await;
            assert!(matches!(unary(stream, &CALL).await, Err(CallError::Broken(_))), "{body:?}");
        }
    }

    #[test]
    fn timeouts_have_at_most_eight_digits() {
        assert_eq!(timeout(Duration::from_secs(1)), "1000m");
        assert_eq!(timeout(Duration::from_secs(200_000)), "200000S");
        assert_eq!(timeout(Duration::MAX), "99999999S");
    }
}
