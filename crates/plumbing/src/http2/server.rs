//! A client's connection, and each of its streams.

use super::{FAULTY_STREAMS_MAX, Incoming, Pipe, WINDOW_BYTES, Wire, heads, wire};
use crate::body::Body;
use crate::h1::Upgraded;
use bytes::Bytes;
use h2::server::{Builder, SendResponse};
use h2::{Reason, RecvStream};
use http::{Method, Request, Response};
use http_body::Body as _;
use std::future::Future;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};

/// Limits of a connection.
pub(crate) struct Limits {
    /// Streams at a time.
    pub(crate) streams_max: u32,
    /// Largest head, in bytes.
    pub(crate) head_bytes_max: usize,
}

/// What may wait in a stream to be written, in bytes.
const SEND_BUFFER_BYTES_MAX: usize = 400 * 1024;

/// Serves a connection until it ends. Once `drain` is ready its client is told
/// to open no more streams, and it ends with the last.
///
/// # Errors
/// When it does not end as it should.
pub(crate) async fn serve<A, F>(
    socket: Upgraded,
    limits: Limits,
    drain: impl Future<Output = ()>,
    answer: A,
) -> Result<(), wire::Fault>
where
    A: Fn(Request<Incoming>) -> F,
    F: Future<Output = Response<Body>> + Unpin + Send + 'static,
{
    let (socket, early) = socket.into_parts();
    let wire = Wire::of_client(socket, early);
    let mut builder = Builder::new();
    builder
        .initial_window_size(WINDOW_BYTES)
        .initial_connection_window_size(WINDOW_BYTES)
        .max_concurrent_streams(limits.streams_max)
        .max_header_list_size(u32::try_from(limits.head_bytes_max).unwrap_or(u32::MAX))
        .max_local_error_reset_streams(Some(FAULTY_STREAMS_MAX))
        .max_send_buffer_size(SEND_BUFFER_BYTES_MAX);
    let mut handshake = pin!(builder.handshake(wire.clone()));
    let mut connection = std::future::poll_fn(|cx| wire.turn(cx, |cx| handshake.as_mut().poll(cx))).await?;
    let mut drain = pin!(drain);
    let mut draining = false;
    let mut drive = |cx: &mut Context<'_>| {
        if !draining && drain.as_mut().poll(cx).is_ready() {
            draining = true;
            connection.graceful_shutdown();
        }
        while let Some(stream) = ready!(connection.poll_accept(cx)) {
            let (request, respond) = stream?;
            tokio::spawn(Stream::new(request, respond, &answer));
        }
        Poll::Ready(Ok(()))
    };
    std::future::poll_fn(|cx| wire.turn(cx, &mut drive)).await
}

/// One stream: a request, and its answer.
enum Stream<F> {
    Answering { answer: F, respond: SendResponse<Bytes> },
    Body(Pipe),
}

impl<F: Future<Output = Response<Body>> + Unpin> Stream<F> {
    fn new(
        request: Request<RecvStream>,
        respond: SendResponse<Bytes>,
        answer: impl Fn(Request<Incoming>) -> F,
    ) -> Stream<F> {
        let (parts, stream) = request.into_parts();
        let incoming = match parts.method == Method::CONNECT {
            true => Incoming::shut(stream),
            false => Incoming::new(stream, &parts.headers),
        };
        Stream::Answering { answer: answer(Request::from_parts(parts, incoming)), respond }
    }
}

impl<F: Future<Output = Response<Body>> + Unpin> Future for Stream<F> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let (answer, respond) = match &mut *self {
            Stream::Answering { answer, respond } => (answer, respond),
            Stream::Body(pipe) => return Pin::new(pipe).poll(cx),
        };
        let Poll::Ready(response) = Pin::new(answer).poll(cx) else {
            // A client that resets the stream has no more use for the answer.
            let reset = ready!(respond.poll_reset(cx));
            tracing::debug!(?reset, "a stream was reset");
            return Poll::Ready(());
        };
        let Some(mut pipe) = send(respond, response) else { return Poll::Ready(()) };
        let polled = Pin::new(&mut pipe).poll(cx);
        if polled.is_pending() {
            *self = Stream::Body(pipe);
        }
        polled
    }
}

/// Sends the head of an answer; its body is to follow, if there is one.
fn send(respond: &mut SendResponse<Bytes>, response: Response<Body>) -> Option<Pipe> {
    let (mut parts, body) = response.into_parts();
    heads::for_client(&mut parts.headers, &body);
    let ended = body.is_end_stream();
    match respond.send_response(Response::from_parts(parts, ()), ended) {
        Ok(stream) => (!ended).then(|| Pipe::new(stream, body)),
        Err(error) => {
            tracing::debug!(%error, "an answer could not be sent");
            respond.send_reset(Reason::INTERNAL_ERROR);
            None
        }
    }
}
