//! A message by gRPC: one unary call on a connection of its own.

use super::export::SendError;
use super::http::{add_headers, connect};
use crate::observe::config::Export;
use bytes::{BufMut, Bytes, BytesMut};
use h2::RecvStream;
use http::header::{CONTENT_TYPE, HeaderMap, HeaderValue, TE};
use http::{Request, StatusCode, Uri};
use std::pin::pin;

const GRPC: HeaderValue = HeaderValue::from_static("application/grpc");
const TRAILERS: HeaderValue = HeaderValue::from_static("trailers");
const STATUS: &str = "grpc-status";
const MESSAGE: &str = "grpc-message";
const OK: &str = "0";

/// Bytes before a message: whether it is compressed, and its length.
const PREFIX: usize = 5;

/// Codes after which OTLP allows another try: cancelled, deadline exceeded,
/// resource exhausted, aborted, out of range, unavailable, data loss.
const AGAIN: [&str; 7] = ["1", "4", "8", "10", "11", "14", "15"];

/// Calls a method with one message.
pub(super) async fn call(export: &Export, method: &str, message: Vec<u8>) -> Result<(), SendError> {
    let again = |error: h2::Error| SendError::Again(error.to_string());
    let stream = connect(export).await?;
    let (sender, connection) = h2::client::handshake(stream).await.map_err(again)?;
    let request = request(export, method)?;
    let exchange = async {
        let mut sender = sender.ready().await.map_err(again)?;
        let (response, mut body) = sender.send_request(request, false).map_err(again)?;
        send(&mut body, framed(&message)?).await.map_err(again)?;
        let (head, body) = response.await.map_err(again)?.into_parts();
        let trailers = read(body).await.map_err(again)?;
        judge(head.status, trailers.as_ref().unwrap_or(&head.headers))
    };
    let (mut exchange, mut connection) = (pin!(exchange), pin!(connection));
    tokio::select! {
        done = &mut exchange => return done,
        ended = &mut connection => ended.map_err(again)?,
    }
    exchange.await
}

fn request(export: &Export, method: &str) -> Result<Request<()>, SendError> {
    let never = |error: http::Error| SendError::Never(error.to_string());
    let authority = export.endpoint.authority();
    let uri = Uri::builder().scheme("http").authority(authority).path_and_query(method).build().map_err(never)?;
    let mut request = Request::post(uri).version(http::Version::HTTP_2).body(()).map_err(never)?;
    let fields = request.headers_mut();
    fields.insert(CONTENT_TYPE, GRPC);
    fields.insert(TE, TRAILERS);
    add_headers(fields, export);
    Ok(request)
}

fn framed(message: &[u8]) -> Result<Bytes, SendError> {
    let length = u32::try_from(message.len()).map_err(|_| SendError::Never("a message is too long".to_owned()))?;
    let mut framed = BytesMut::with_capacity(PREFIX + message.len());
    framed.put_u8(0);
    framed.put_u32(length);
    framed.put_slice(message);
    Ok(framed.freeze())
}

/// As much at a time as the other side gives room for.
async fn send(body: &mut h2::SendStream<Bytes>, mut bytes: Bytes) -> Result<(), h2::Error> {
    while !bytes.is_empty() {
        body.reserve_capacity(bytes.len());
        let room = match std::future::poll_fn(|cx| body.poll_capacity(cx)).await {
            Some(room) => room?,
            // It has answered already: the answer says why.
            None => return Ok(()),
        };
        let part = bytes.split_to(room.min(bytes.len()));
        let last = bytes.is_empty();
        body.send_data(part, last)?;
    }
    Ok(())
}

/// Reads to the end; what the answer says stands in its trailers.
async fn read(mut body: RecvStream) -> Result<Option<HeaderMap>, h2::Error> {
    while let Some(part) = body.data().await {
        let length = part?.len();
        body.flow_control().release_capacity(length)?;
    }
    body.trailers().await
}

fn judge(status: StatusCode, fields: &HeaderMap) -> Result<(), SendError> {
    if status != StatusCode::OK {
        return Err(SendError::Again(format!("status {}", status.as_u16())));
    }
    let text = |name: &str| fields.get(name).and_then(|value| value.to_str().ok()).unwrap_or("");
    let error = || format!("{STATUS} {} {}", text(STATUS), text(MESSAGE));
    match text(STATUS) {
        OK => Ok(()),
        code if AGAIN.contains(&code) => Err(SendError::Again(error())),
        _ => Err(SendError::Never(error())),
    }
}
