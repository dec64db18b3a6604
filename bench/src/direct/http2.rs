//! HTTP/2 without TLS, on the h2 crate.

use super::{Route, WORK};
use anyhow::Context;
use bytes::{BufMut, Bytes, BytesMut};
use h2::RecvStream;
use h2::server::{self, SendResponse};
use http::{HeaderMap, HeaderValue, Request, Response};
use std::net::SocketAddr;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::LocalSet;

const WINDOW: u32 = 1 << 20;

/// Serves for ever.
pub(crate) fn run(listen: SocketAddr) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    LocalSet::new().block_on(&runtime, async {
        let listener = TcpListener::bind(listen).await.with_context(|| format!("listening at {listen}"))?;
        let mebibyte = Bytes::from(vec![b'x'; 1 << 20]);
        loop {
            let (socket, _) = listener.accept().await?;
            let body = mebibyte.clone();
            tokio::task::spawn_local(async move {
                // A peer that breaks off is the measurement's matter.
                let _ = connection(socket, body).await;
            });
        }
    })
}

async fn connection(socket: TcpStream, body: Bytes) -> anyhow::Result<()> {
    socket.set_nodelay(true)?;
    let mut builder = server::Builder::new();
    builder.initial_window_size(WINDOW).initial_connection_window_size(WINDOW).max_concurrent_streams(1000);
    let mut connection = builder.handshake(socket).await?;
    while let Some(stream) = connection.accept().await {
        let (request, respond) = stream?;
        let body = body.clone();
        tokio::task::spawn_local(async move {
            let _ = answer(request, respond, body).await;
        });
    }
    Ok(())
}

async fn answer(request: Request<RecvStream>, mut respond: SendResponse<Bytes>, body: Bytes) -> anyhow::Result<()> {
    let route = Route::of(request.uri().path());
    let mut content = request.into_body();
    while let Some(piece) = content.data().await {
        let taken = piece?.len();
        content.flow_control().release_capacity(taken)?;
    }
    let (head, grpc) = match route {
        Route::Unary(_) | Route::Stream(..) => (Response::builder().header("content-type", "application/grpc"), true),
        Route::Bytes(size) | Route::Slow(size) => (Response::builder().header("content-length", size), false),
        Route::Hold => return std::future::pending().await,
        Route::Unknown => (Response::builder().status(404), false),
    };
    if let Route::Slow(_) = route {
        tokio::time::sleep(WORK).await;
    }
    let empty = matches!(route, Route::Bytes(0) | Route::Unknown);
    let mut stream = respond.send_response(head.body(())?, empty)?;
    match route {
        Route::Bytes(size) | Route::Slow(size) if size > 0 => stream.send_data(body.slice(..size), true)?,
        Route::Unary(size) => stream.send_data(message(size), false)?,
        Route::Stream(count, size) => {
            let message = message(size);
            for _ in 0..count {
                stream.send_data(message.clone(), false)?;
            }
        }
        _ => {}
    }
    if grpc {
        let mut trailers = HeaderMap::new();
        trailers.insert("grpc-status", HeaderValue::from_static("0"));
        stream.send_trailers(trailers)?;
    }
    Ok(())
}

/// One gRPC message of so many bytes, with its prefix.
pub(crate) fn message(size: usize) -> Bytes {
    let mut message = BytesMut::with_capacity(5 + size);
    message.put_u8(0);
    message.put_u32(u32::try_from(size).unwrap_or(u32::MAX));
    message.put_bytes(b'x', size);
    message.freeze()
}
