//! Side ports: small HTTP/1 servers for a few known callers (kubelet, a
//! scraper), beside the main one. Everything is bounded: callers are few and
//! ask little, so whoever does more is cut off.

use crate::body::Body;
use crate::shutdown::Shutdown;
use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue, X_CONTENT_TYPE_OPTIONS};
use http::{Request, Response, StatusCode};
use http_body::Body as HttpBody;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::error::Error;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};

/// Connections of one port; beyond, new ones are closed at once.
const CONNECTIONS_MAX: usize = 128;
/// The head of a request must be complete this long after it began.
const HEAD_TIMEOUT: Duration = Duration::from_secs(60);
/// Largest head, in bytes.
const HEAD_BYTES_MAX: usize = 32 << 10;
/// How long to wait before accepting again when that failed.
const ACCEPT_PAUSE: Duration = Duration::from_millis(20);

/// Serves until `shutdown` drains, then closes the listener. Connections are
/// tracked by `shutdown`, finish the answer they are at, and are dropped at
/// its second stage.
pub async fn serve<H, F, B>(listener: TcpListener, shutdown: Shutdown, handler: H)
where
    H: Fn(Request<Incoming>) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Response<B>> + Send + 'static,
    B: HttpBody<Data = Bytes, Error: Into<Box<dyn Error + Send + Sync>>> + Send + 'static,
{
    let places = Arc::new(());
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = shutdown.draining() => return,
        };
        match accepted {
            Ok((stream, _)) if Arc::strong_count(&places) <= CONNECTIONS_MAX => {
                shutdown.spawn(connection(stream, shutdown.clone(), handler.clone(), places.clone()));
            }
            Ok(_) => {}
            Err(error) => {
                tracing::debug!(%error, "accepting a connection on a side port failed");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

async fn connection<H, F, B>(stream: TcpStream, shutdown: Shutdown, handler: H, _place: Arc<()>)
where
    H: Fn(Request<Incoming>) -> F + Send + 'static,
    F: Future<Output = Response<B>> + Send + 'static,
    B: HttpBody<Data = Bytes, Error: Into<Box<dyn Error + Send + Sync>>> + Send + 'static,
{
    let _ = stream.set_nodelay(true);
    let service = service_fn(|request| {
        let answer = handler(request);
        async move { Ok::<_, Infallible>(answer.await) }
    });
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT).max_buf_size(HEAD_BYTES_MAX).half_close(false);
    let mut served = pin!(builder.serve_connection(TokioIo::new(stream), service));
    tokio::select! {
        _ = &mut served => return,
        () = shutdown.draining() => served.as_mut().graceful_shutdown(),
    }
    tokio::select! {
        _ = served => {}
        () = shutdown.stopping() => {}
    }
}

/// The answer to a path that is not there, as the reference words it.
pub fn not_found() -> Response<Body> {
    let mut response = Response::new(Body::full(Bytes::from_static(b"404 page not found\n")));
    *response.status_mut() = StatusCode::NOT_FOUND;
    let fields = response.headers_mut();
    fields.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    fields.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    async fn ask(stream: &mut TcpStream, request: &str) -> String {
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = vec![0; 4096];
        let n = stream.read(&mut answer).await.unwrap();
        String::from_utf8_lossy(&answer[..n]).into_owned()
    }

    async fn started() -> (std::net::SocketAddr, Shutdown) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let shutdown = Shutdown::new();
        let handler = |request: Request<Incoming>| async move {
            match request.uri().path() {
                "/here" => Response::new(Body::empty()),
                _ => not_found(),
            }
        };
        tokio::spawn(serve(listener, shutdown.clone(), handler));
        (address, shutdown)
    }

    #[tokio::test]
    async fn requests_are_answered_on_one_connection_until_the_end() {
        let (address, shutdown) = started().await;
        let mut stream = TcpStream::connect(address).await.unwrap();
        assert!(
            ask(&mut stream, "POST /here HTTP/1.1\r\nhost: a\r\ncontent-length: 0\r\n\r\n").await.contains(" 200 ")
        );
        let missing = ask(&mut stream, "GET / HTTP/1.1\r\nhost: a\r\n\r\n").await;
        assert!(missing.contains(" 404 ") && missing.ends_with("\r\n\r\n404 page not found\n"), "{missing}");
        shutdown.drain();
        shutdown.finished().await;
        assert_eq!(stream.read(&mut [0; 8]).await.unwrap(), 0);
        assert!(TcpStream::connect(address).await.is_err());
    }

    #[tokio::test]
    async fn connections_beyond_the_bound_are_closed_and_half_open_ones_do_not_hold_the_end() {
        let (address, shutdown) = started().await;
        let mut held = Vec::new();
        for _ in 0..CONNECTIONS_MAX {
            let mut stream = TcpStream::connect(address).await.unwrap();
            stream.write_all(b"GET /he").await.unwrap();
            held.push(stream);
        }
        let mut beyond = TcpStream::connect(address).await.unwrap();
        assert_eq!(beyond.read(&mut [0; 8]).await.unwrap_or(0), 0);
        shutdown.drain();
        shutdown.stop();
        tokio::time::timeout(Duration::from_secs(5), shutdown.finished()).await.unwrap();
    }
}
