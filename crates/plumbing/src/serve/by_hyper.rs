//! Clients whose HTTP/1 is served by hyper.

use super::{Answering, AnsweringHyper, Settings};
use crate::body::Body;
use crate::h1::limits::FIELDS_MAX;
use crate::h1::{H2_PREFACE, Upgraded};
use crate::hyper1;
use crate::incoming::Incoming;
use crate::shutdown::Shutdown;
use crate::socket::Socket;
use crate::wheel::{Sleep, Wheel};
use bytes::BytesMut;
use http::{Request, Response};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::future::Future;
use std::net::SocketAddr;
use std::pin::pin;
use tokio::io::AsyncReadExt;

/// The least that hyper takes for a head.
const HEAD_BYTES_MIN: usize = 8192;

/// Serves a connection until it ends. One that begins with HTTP/2's preface is
/// given back, the preface yet to be read from it.
pub(super) async fn serve<A, F>(
    socket: Socket,
    settings: &Settings,
    wheel: &Wheel,
    shutdown: &Shutdown,
    peer: SocketAddr,
    answer: A,
) -> Option<Upgraded>
where
    A: Fn(Request<Incoming>) -> Answering<F>,
    F: Future<Output = Response<Body>> + Send + 'static,
{
    let socket = match begin(socket, wheel.sleep(settings.head_timeout)).await? {
        Begun::Http1(socket) => socket,
        Begun::Http2(socket) => return Some(socket),
    };
    let service = service_fn(|request| AnsweringHyper(answer(hyper1::incoming(request))));
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(settings.head_timeout)
        .max_buf_size(settings.head_bytes_max.max(HEAD_BYTES_MIN))
        .max_headers(FIELDS_MAX);
    let mut served = pin!(builder.serve_connection(TokioIo::new(socket), service).with_upgrades());
    let ended = tokio::select! {
        ended = &mut served => ended,
        () = shutdown.draining() => {
            served.as_mut().graceful_shutdown();
            served.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%peer, %error, "a connection ended with an error");
    }
    None
}

enum Begun {
    Http1(Upgraded),
    Http2(Upgraded),
}

/// Reads until it is clear which version a client speaks.
async fn begin(mut socket: Socket, late: Sleep) -> Option<Begun> {
    let (mut read, mut late) = (BytesMut::new(), pin!(late));
    loop {
        if !H2_PREFACE.starts_with(&read[..read.len().min(H2_PREFACE.len())]) {
            return Some(Begun::Http1(Upgraded::new(socket, read.freeze())));
        }
        if read.len() >= H2_PREFACE.len() {
            return Some(Begun::Http2(Upgraded::new(socket, read.freeze())));
        }
        tokio::select! {
            count = socket.read_buf(&mut read) => if !matches!(count, Ok(1..)) { return None },
            () = &mut late => return None,
        }
    }
}
