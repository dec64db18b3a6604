//! HTTP/2 without TLS through activator and sidecar, to an app that speaks it.

use bytes::Bytes;
use http::header::HeaderValue;
use http::{HeaderMap, Request, Response, Version};
use http_body_util::channel::{Channel, Sender};
use http_body_util::{BodyExt, Empty, Full, combinators::BoxBody};
use hyper::body::{Body, Frame, Incoming};
use hyper::client::conn::http2::SendRequest;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tests::bench::bench;
use tests::rig::{PATIENCE, sidecar, sidecar_config, until};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

/// Echoes each frame of the body as it comes; ends with a trailer. `/hang`
/// never answers. Counts what is inside.
async fn echo_app(inside: Arc<AtomicUsize>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let inside = inside.clone();
            let service = service_fn(move |request: Request<Incoming>| echo(request, inside.clone()));
            let server = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
            tokio::spawn(server.serve_connection(TokioIo::new(stream), service));
        }
    });
    address
}

struct Inside(Arc<AtomicUsize>);

impl Drop for Inside {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

async fn echo(
    request: Request<Incoming>,
    inside: Arc<AtomicUsize>,
) -> Result<Response<BoxBody<Bytes, hyper::Error>>, Infallible> {
    inside.fetch_add(1, Ordering::SeqCst);
    let guard = Inside(inside);
    if request.uri().path() == "/hang" {
        std::future::pending::<()>().await;
    }
    let authority = request.uri().authority().map(|host| host.to_string()).unwrap_or_default();
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", HeaderValue::from_static("0"));
    let body = request.into_body().with_trailers(async move {
        drop(guard);
        Some(Ok(trailers))
    });
    let mut response = Response::new(body.boxed());
    response.headers_mut().insert("x-authority", authority.parse().unwrap());
    Ok(response)
}

async fn client<B>(address: SocketAddr) -> SendRequest<B>
where
    B: Body + Send + Unpin + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let stream = TcpStream::connect(address).await.unwrap();
    let (sender, driver) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
    tokio::spawn(driver);
    sender
}

fn request<B>(path: &str, body: B) -> Request<B> {
    let uri = format!("http://shop.example{path}");
    Request::post(uri).version(Version::HTTP_2).body(body).unwrap()
}

#[tokio::test]
async fn a_unary_call_keeps_host_body_and_trailers_even_from_zero() {
    let pod = sidecar(sidecar_config(echo_app(Arc::default()).await, 1)).await;
    let bench = bench(1, |_| {}).await;
    let mut sender = client(bench.address).await;
    let call = tokio::spawn(async move { sender.send_request(request("/call", Full::<Bytes>::from("hello"))).await });
    until("it is held", || bench.held() == 1).await;
    bench.ready(&[("p", pod.address)]).await;
    let response = timeout(PATIENCE, call).await.unwrap().unwrap().unwrap();
    assert_eq!(response.status(), 200);
    assert_eq!(response.headers()["x-authority"], "shop.example");
    let body = timeout(PATIENCE, response.into_body().collect()).await.unwrap().unwrap();
    assert_eq!(body.trailers().unwrap()["grpc-status"], "0");
    assert_eq!(body.to_bytes(), "hello");
    until("the slot is free again", || bench.in_flight() == 0).await;
}

#[tokio::test]
async fn a_stream_flows_both_ways_at_once_and_holds_its_slot_until_it_ends() {
    let pod = sidecar(sidecar_config(echo_app(Arc::default()).await, 1)).await;
    let bench = bench(1, |_| {}).await;
    bench.ready(&[("p", pod.address)]).await;
    let (mut write, body): (Sender<Bytes>, Channel<Bytes>) = Channel::new(4);
    let mut sender = client(bench.address).await;
    let answer = sender.send_request(request("/stream", body));
    write.send_data(Bytes::from("one")).await.unwrap();
    let mut answer = timeout(PATIENCE, answer).await.unwrap().unwrap().into_body();
    let mut next = async || -> Option<Frame<Bytes>> {
        timeout(PATIENCE, answer.frame()).await.expect("the echo comes").map(Result::unwrap)
    };
    assert_eq!(next().await.unwrap().into_data().unwrap(), "one");
    // More than the kept prefix, both ways.
    for _ in 0..20 {
        write.send_data(Bytes::from(vec![b'x'; 4096])).await.unwrap();
        let mut seen = 0;
        while seen < 4096 {
            seen += next().await.unwrap().into_data().unwrap().len();
        }
    }
    assert_eq!(bench.in_flight(), 1);
    drop(write);
    let last = next().await.unwrap();
    assert_eq!(last.into_trailers().unwrap()["grpc-status"], "0");
    until("the slot is free again", || bench.in_flight() == 0).await;
}

#[tokio::test]
async fn a_stream_that_its_client_resets_frees_its_place_waiting_or_running() {
    let inside = Arc::new(AtomicUsize::new(0));
    let pod = sidecar(sidecar_config(echo_app(inside.clone()).await, 1)).await;
    let bench = bench(1, |_| {}).await;
    let mut sender = client(bench.address).await;
    let waiting = tokio::spawn(sender.send_request(request("/hang", Empty::<Bytes>::new())));
    until("it is held", || bench.held() == 1).await;
    waiting.abort();
    until("its place is free", || bench.held() == 0).await;
    bench.ready(&[("p", pod.address)]).await;
    let running = tokio::spawn(sender.send_request(request("/hang", Empty::<Bytes>::new())));
    until("it is at the app", || inside.load(Ordering::SeqCst) == 1).await;
    running.abort();
    until("app and slot are free", || inside.load(Ordering::SeqCst) == 0 && bench.in_flight() == 0).await;
}

#[tokio::test]
async fn many_streams_of_one_connection_share_the_limit_in_order() {
    let inside = Arc::new(AtomicUsize::new(0));
    let pod = sidecar(sidecar_config(echo_app(inside.clone()).await, 3)).await;
    let bench = bench(3, |_| {}).await;
    bench.ready(&[("p", pod.address)]).await;
    let mut sender = client(bench.address).await;
    let calls: Vec<_> = (0..200)
        .map(|n| {
            let answer = sender.send_request(request("/call", Full::<Bytes>::from(format!("call {n}"))));
            tokio::spawn(async move { answer.await.unwrap().into_body().collect().await.unwrap().to_bytes() })
        })
        .collect();
    for (n, call) in calls.into_iter().enumerate() {
        assert_eq!(timeout(PATIENCE, call).await.unwrap().unwrap(), format!("call {n}"));
    }
    until("all slots are free again", || bench.in_flight() == 0 && bench.held() == 0).await;
}
