//! A message by POST, on a connection of its own: one goes out each minute.

use super::export::SendError;
use crate::config::Export;
use http::header::{CONTENT_TYPE, HOST, HeaderName, HeaderValue, USER_AGENT};
use http::{Request, StatusCode};
use http_body_util::Full;
use hyper::body::{Body, Bytes};
use hyper_util::rt::TokioIo;
use std::pin::pin;
use tokio::net::TcpStream;

const PROTOBUF: HeaderValue = HeaderValue::from_static("application/x-protobuf");

/// Sends one message; `agent` is what we call ourselves.
pub(super) async fn post(export: &Export, agent: &str, message: Vec<u8>) -> Result<(), SendError> {
    let request = request(export, agent, message)?;
    let stream = connect(export).await?;
    let again = |error: hyper::Error| SendError::Again(error.to_string());
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(again)?;
    let exchange = async {
        let response = sender.send_request(request).await.map_err(again)?;
        let status = response.status();
        // To its end, so that the collector is not cut off in its answer.
        let mut body = pin!(response.into_body());
        while let Some(frame) = std::future::poll_fn(|cx| body.as_mut().poll_frame(cx)).await {
            frame.map_err(again)?;
        }
        judge(status)
    };
    // The connection works only while it is polled; it ends with the exchange.
    let (mut exchange, mut connection) = (pin!(exchange), pin!(connection));
    tokio::select! {
        done = &mut exchange => return done,
        ended = &mut connection => ended.map_err(again)?,
    }
    exchange.await
}

fn request(export: &Export, agent: &str, message: Vec<u8>) -> Result<Request<Full<Bytes>>, SendError> {
    let never = |error: String| SendError::Never(error);
    let mut request = Request::post(&export.endpoint.path)
        .body(Full::new(Bytes::from(message)))
        .map_err(|error| never(error.to_string()))?;
    let host = HeaderValue::from_str(&export.endpoint.authority()).map_err(|error| never(error.to_string()))?;
    let head = request.headers_mut();
    head.insert(HOST, host);
    head.insert(CONTENT_TYPE, PROTOBUF);
    head.insert(USER_AGENT, HeaderValue::from_str(agent).map_err(|error| never(error.to_string()))?);
    for (name, value) in fields(export) {
        head.insert(name, value);
    }
    Ok(request)
}

/// What the operator wants in each message.
pub(super) fn fields(export: &Export) -> Vec<(HeaderName, HeaderValue)> {
    let pair =
        |(name, value): &(String, String)| Some((name.parse::<HeaderName>().ok()?, HeaderValue::from_str(value).ok()?));
    export.headers.iter().filter_map(pair).collect()
}

pub(super) async fn connect(export: &Export) -> Result<TcpStream, SendError> {
    let endpoint = &export.endpoint;
    if endpoint.tls {
        return Err(SendError::Never("https collectors are not supported yet".to_owned()));
    }
    let stream = TcpStream::connect((endpoint.host.as_str(), endpoint.port)).await;
    stream.map_err(|error| SendError::Again(error.to_string()))
}

/// Statuses after which OTLP allows another try.
fn judge(status: StatusCode) -> Result<(), SendError> {
    let text = || format!("status {}", status.as_u16());
    match status {
        status if status.is_success() => Ok(()),
        StatusCode::TOO_MANY_REQUESTS
        | StatusCode::BAD_GATEWAY
        | StatusCode::SERVICE_UNAVAILABLE
        | StatusCode::GATEWAY_TIMEOUT => Err(SendError::Again(text())),
        _ => Err(SendError::Never(text())),
    }
}
