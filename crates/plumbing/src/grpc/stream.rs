//! One gRPC call that lasts: messages go out as they come up, and come in as
//! they come. It works only while it is polled; dropped, it is called off.

use super::{CallError, PREFIX_BYTES, bare_request, broken, framed, status};
use bytes::{Buf, Bytes, BytesMut};
use h2::client::{self, Connection, ResponseFuture};
use h2::{Ping, PingPong, RecvStream, SendStream};
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite};

/// What is called.
#[derive(Clone, Copy, Debug)]
pub struct Opening<'a> {
    /// `host:port`, as the server is named.
    pub authority: &'a str,
    /// `/package.Service/Method`.
    pub path: &'a str,
    /// Who asks.
    pub user_agent: &'a str,
    /// Longest message that is taken.
    pub message_max: usize,
}

/// What came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The server takes the call.
    Accepted,
    /// A message.
    Message(Bytes),
    /// The answer to a ping.
    Pong,
}

/// A call that lasts. After an error it is of no use.
pub struct Stream<S> {
    connection: Pin<Box<Connection<S>>>,
    sending: SendStream<Bytes>,
    answer: Answer,
    pings: PingPong,
    pinging: bool,
    bytes: BytesMut,
    message_max: usize,
}

enum Answer {
    Head(ResponseFuture),
    Body(RecvStream),
}

impl<S: AsyncRead + AsyncWrite + Unpin> Stream<S> {
    /// Begins a call on a new connection. Whether the server takes it, the
    /// first event shows.
    ///
    /// # Errors
    /// When the connection is broken.
    pub async fn open(stream: S, opening: Opening<'_>) -> Result<Stream<S>, CallError> {
        let shaken = client::Builder::new().enable_push(false).handshake(stream);
        let (sender, connection) = shaken.await.map_err(broken)?;
        let mut connection = Box::pin(connection);
        let pings = connection.ping_pong().ok_or(CallError::Broken("no ping can be sent".to_owned()))?;
        let mut sender = sender.ready().await.map_err(broken)?;
        let request = bare_request(opening.authority, opening.path, opening.user_agent)?;
        let (answer, sending) = sender.send_request(request, false).map_err(broken)?;
        let answer = Answer::Head(answer);
        let message_max = opening.message_max;
        Ok(Stream { connection, sending, answer, pings, pinging: false, bytes: BytesMut::new(), message_max })
    }

    /// Sends a message. It is kept until the server takes it: whoever sends
    /// must bound what it has not heard of.
    ///
    /// # Errors
    /// When the call has ended.
    pub fn send(&mut self, message: &[u8]) -> Result<(), CallError> {
        self.sending.send_data(framed(message), false).map_err(broken)
    }

    /// Says that no more messages will come.
    pub fn finish(&mut self) {
        let _ = self.sending.send_data(Bytes::new(), true);
    }

    /// Asks for a sign of life. False while the last one is not answered.
    pub fn ping(&mut self) -> bool {
        if !self.pinging {
            self.pinging = self.pings.send_ping(Ping::opaque()).is_ok();
            return self.pinging;
        }
        false
    }

    /// What comes next.
    ///
    /// # Errors
    /// Why nothing will.
    pub async fn next(&mut self) -> Result<Event, CallError> {
        std::future::poll_fn(|cx| self.poll_next(cx)).await
    }

    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Result<Event, CallError>> {
        let closed = match self.connection.as_mut().poll(cx) {
            Poll::Ready(Ok(())) => Some(CallError::Broken("the server closed the connection".to_owned())),
            Poll::Ready(Err(error)) => Some(broken(error)),
            Poll::Pending => None,
        };
        // What came before the close counts.
        if let Poll::Ready(message) = self.poll_message(cx) {
            return Poll::Ready(message);
        }
        if let Some(why) = closed {
            return Poll::Ready(Err(why));
        }
        if self.pinging {
            ready!(self.pings.poll_pong(cx)).map_err(broken)?;
            self.pinging = false;
            return Poll::Ready(Ok(Event::Pong));
        }
        Poll::Pending
    }

    fn poll_message(&mut self, cx: &mut Context<'_>) -> Poll<Result<Event, CallError>> {
        loop {
            if let Some(message) = self.unframed()? {
                return Poll::Ready(Ok(Event::Message(message)));
            }
            match &mut self.answer {
                Answer::Head(head) => {
                    let (parts, body) = ready!(Pin::new(head).poll(cx)).map_err(broken)?.into_parts();
                    if !parts.status.is_success() {
                        let why = format!("the server answered with status {}", parts.status.as_u16());
                        return Poll::Ready(Err(CallError::Broken(why)));
                    }
                    status(&parts.headers)?;
                    self.answer = Answer::Body(body);
                    return Poll::Ready(Ok(Event::Accepted));
                }
                Answer::Body(body) => match ready!(body.poll_data(cx)) {
                    Some(chunk) => {
                        let chunk = chunk.map_err(broken)?;
                        let _ = body.flow_control().release_capacity(chunk.len());
                        self.bytes.extend_from_slice(&chunk);
                    }
                    None => {
                        if let Some(trailers) = ready!(body.poll_trailers(cx)).map_err(broken)? {
                            status(&trailers)?;
                        }
                        return Poll::Ready(Err(CallError::Broken("the server ended the call".to_owned())));
                    }
                },
            }
        }
    }

    /// A message that is there in full.
    fn unframed(&mut self) -> Result<Option<Bytes>, CallError> {
        let [compressed, length @ ..] = match self.bytes.first_chunk::<PREFIX_BYTES>() {
            Some(prefix) => *prefix,
            None => return Ok(None),
        };
        let length = u32::from_be_bytes(length) as usize;
        if compressed != 0 || length > self.message_max {
            return Err(CallError::Broken("a message that is compressed or too long".to_owned()));
        }
        if self.bytes.len() < PREFIX_BYTES + length {
            return Ok(None);
        }
        self.bytes.advance(PREFIX_BYTES);
        Ok(Some(self.bytes.split_to(length).freeze()))
    }
}
