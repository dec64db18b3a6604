//! An answer's body as it comes in, which carries the connection that it
//! comes on.

use super::chunk::Piece;
use super::client::Connection;
use super::decode::Decoder;
use super::error::BodyError;
use super::upgrade::Upgraded;
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use std::fmt::Display;
use std::pin::Pin;
use std::task::{Context, Poll};

/// The body of an answer.
pub struct Received<B> {
    /// `None` once it was taken, or broke.
    connection: Option<Connection<B>>,
    decoder: Decoder,
    keep_alive: bool,
    upgrade: bool,
}

impl<B> Received<B>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: Display,
{
    pub(super) fn new(connection: Connection<B>, decoder: Decoder, keep_alive: bool, upgrade: bool) -> Received<B> {
        Received { connection: Some(connection), decoder, keep_alive, upgrade }
    }

    /// The connection, if it can carry another exchange: the answer was read
    /// to its end, the request sent to its own, and both sides keep it.
    pub fn take_idle(&mut self) -> Option<Connection<B>> {
        if !self.keep_alive || !self.decoder.is_done() {
            return None;
        }
        let mut connection = self.connection.take()?;
        let wire = &mut connection.0;
        // Whoever said more than it was asked for may say anything next.
        let quiet = wire.inbox.bytes.is_empty() && !wire.inbox.ended;
        (quiet && wire.is_sent()).then(|| connection.rest())
    }

    /// The raw connection, if the answer has switched protocols (101, or 2xx
    /// to CONNECT).
    pub fn take_upgraded(&mut self) -> Option<Upgraded> {
        if !self.upgrade {
            return None;
        }
        let wire = *self.connection.take()?.0;
        let mut inbox = wire.inbox;
        let early = std::mem::take(&mut inbox.bytes).freeze();
        Some(Upgraded::new(wire.socket, early))
    }

    fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Result<Piece, BodyError>> {
        let Some(connection) = &mut self.connection else { return Poll::Ready(Err(BodyError::Over)) };
        let wire = &mut *connection.0;
        // The request goes on meanwhile: neither side may wait for the other.
        wire.pump(cx).map_err(BodyError::RequestBody)?;
        loop {
            match self.decoder.decode(&mut wire.inbox.bytes).map_err(BodyError::Malformed)? {
                Piece::More => {}
                piece => return Poll::Ready(Ok(piece)),
            }
            match std::task::ready!(wire.inbox.poll_fill(&mut wire.socket, cx)) {
                Ok(0) => {
                    self.decoder.end()?;
                    return Poll::Ready(Ok(Piece::End));
                }
                Ok(_) => {}
                Err(error) => return Poll::Ready(Err(error.into())),
            }
        }
    }
}

impl<B> Body for Received<B>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: Display,
{
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        if self.decoder.is_done() {
            return Poll::Ready(None);
        }
        match std::task::ready!(self.poll_piece(cx)) {
            Ok(Piece::Data(data)) => Poll::Ready(Some(Ok(Frame::data(data)))),
            Ok(Piece::Trailers(trailers)) => Poll::Ready(Some(Ok(Frame::trailers(trailers)))),
            Ok(Piece::End | Piece::More) => Poll::Ready(None),
            Err(error) => {
                self.connection = None;
                Poll::Ready(Some(Err(error)))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.decoder.is_done()
    }

    fn size_hint(&self) -> SizeHint {
        self.decoder.hint()
    }
}
