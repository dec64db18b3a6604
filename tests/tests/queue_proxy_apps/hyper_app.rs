//! The app of `tests::apps` in Rust, on hyper's server.

use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_TYPE, UPGRADE};
use http::{HeaderMap, Request, Response, StatusCode};
use http_body_util::channel::Channel;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use std::net::SocketAddr;
use std::time::Duration;
use tests::apps::EVENTS;
use tests::testapp::monotonic_ns;
use tests::websocket;
use tokio::net::TcpListener;
use tokio::time::sleep;

const EVERY: Duration = Duration::from_millis(200);

type Answer = Response<BoxBody<Bytes, hyper::Error>>;

/// Starts it; it lives as long as the test.
pub(crate) async fn start() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let connection =
                hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service_fn(answer));
            tokio::spawn(connection.with_upgrades());
        }
    });
    address
}

async fn answer(request: Request<Incoming>) -> Result<Answer, hyper::Error> {
    let path = request.uri().path().to_owned();
    if request.headers().contains_key(UPGRADE) {
        return Ok(switch(request));
    }
    Ok(match path.as_str() {
        "/echo" => whole(request.into_body().collect().await?.to_bytes()),
        "/stream" => stream(),
        _ => match path.strip_prefix("/work/").and_then(|millis| millis.parse().ok()) {
            Some(millis) => {
                sleep(Duration::from_millis(millis)).await;
                whole(Bytes::from("done"))
            }
            None => whole(Bytes::from("ok")),
        },
    })
}

fn whole(body: Bytes) -> Answer {
    Response::new(Full::new(body).map_err(|never| match never {}).boxed())
}

fn stream() -> Answer {
    let (mut sender, body) = Channel::<Bytes, hyper::Error>::new(1);
    tokio::spawn(async move {
        for _ in 0..EVENTS {
            let event = format!("{:.<48}\n\n", format!("data: {} ", monotonic_ns()));
            if sender.send_data(Bytes::from(event)).await.is_err() {
                return;
            }
            sleep(EVERY).await;
        }
    });
    let mut answer = Response::new(body.boxed());
    answer.headers_mut().insert(CONTENT_TYPE, "text/event-stream".parse().unwrap());
    answer
}

/// To a websocket that echoes.
fn switch(mut request: Request<Incoming>) -> Answer {
    let upgrade = hyper::upgrade::on(&mut request);
    tokio::spawn(async move {
        if let Ok(upgraded) = upgrade.await {
            let (reader, writer) = websocket::server(TokioIo::new(upgraded));
            let _ = websocket::echo(reader, writer).await;
        }
    });
    let key = request.headers()["sec-websocket-key"].to_str().unwrap();
    let mut answer = whole(Bytes::new());
    *answer.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let mut fields = HeaderMap::new();
    fields.insert(CONNECTION, "Upgrade".parse().unwrap());
    fields.insert(UPGRADE, "websocket".parse().unwrap());
    fields.insert("sec-websocket-accept", websocket::accept_key(key).parse().unwrap());
    *answer.headers_mut() = fields;
    answer
}
