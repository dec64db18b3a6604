//! Bodies that go out by HTTP/2.

use crate::body::{Body, BodyError};
use bytes::Bytes;
use h2::{Reason, SendStream};
use http_body::Body as _;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

/// So much of a body is handed over without asking whether there is room for
/// it: most bodies are over before the answer would matter.
const UNASKED_BYTES: usize = 16 * 1024;

/// A body on its way into its stream. Ready when it is all handed over, or
/// when that has become pointless.
pub(crate) struct Pipe {
    stream: SendStream<Bytes>,
    body: Body,
    /// Waits for room; with whether it is the last.
    waiting: Option<(Bytes, bool)>,
    sent: usize,
}

/// Why a body did not go out in full.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Stopped {
    /// The other side wants no more of it, or is gone.
    #[error("{0}")]
    Peer(#[from] h2::Error),
    /// The body itself broke off.
    #[error("{0}")]
    Body(#[from] BodyError),
}

impl Pipe {
    pub(crate) fn new(stream: SendStream<Bytes>, body: Body) -> Pipe {
        Pipe { stream, body, waiting: None, sent: 0 }
    }

    fn poll_all(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Stopped>> {
        loop {
            if let Some((piece, last)) = self.waiting.take() {
                if self.poll_room(cx)?.is_pending() {
                    self.waiting = Some((piece, last));
                    return self.poll_reset(cx);
                }
                self.stream.send_data(piece, last)?;
                if last {
                    return Poll::Ready(Ok(()));
                }
            }
            let frame = match Pin::new(&mut self.body).poll_frame(cx) {
                Poll::Pending => return self.poll_reset(cx),
                Poll::Ready(None) => {
                    self.stream.send_data(Bytes::new(), true)?;
                    return Poll::Ready(Ok(()));
                }
                Poll::Ready(Some(Err(error))) => {
                    self.stream.send_reset(reason(&error));
                    return Poll::Ready(Err(error.into()));
                }
                Poll::Ready(Some(Ok(frame))) => frame,
            };
            let piece = match frame.into_data() {
                Ok(piece) => piece,
                Err(frame) => {
                    let Ok(trailers) = frame.into_trailers() else { continue };
                    self.stream.send_trailers(trailers)?;
                    return Poll::Ready(Ok(()));
                }
            };
            let last = self.body.is_end_stream();
            self.sent += piece.len();
            if self.sent > UNASKED_BYTES && !piece.is_empty() {
                // Little, and only now that there is something to send: room
                // that is claimed is taken from the other streams.
                self.stream.reserve_capacity(1);
                self.waiting = Some((piece, last));
                continue;
            }
            self.stream.send_data(piece, last)?;
            if last {
                return Poll::Ready(Ok(()));
            }
        }
    }

    /// Ready when something can be sent at once.
    fn poll_room(&mut self, cx: &mut Context<'_>) -> Result<Poll<()>, Stopped> {
        while self.stream.capacity() == 0 {
            match self.stream.poll_capacity(cx) {
                Poll::Pending => return Ok(Poll::Pending),
                Poll::Ready(Some(room)) => {
                    room?;
                }
                Poll::Ready(None) => return Err(h2::Error::from(Reason::CANCEL).into()),
            }
        }
        Ok(Poll::Ready(()))
    }

    /// Pending until the peer wants no more.
    fn poll_reset(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Stopped>> {
        let reason = ready!(self.stream.poll_reset(cx))?;
        Poll::Ready(Err(h2::Error::from(reason).into()))
    }
}

impl Future for Pipe {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        self.poll_all(cx).map(|ended| {
            if let Err(stopped) = ended {
                tracing::debug!(%stopped, "a body did not go out in full");
            }
        })
    }
}

/// What a peer is told of a body that breaks off.
fn reason(error: &BodyError) -> Reason {
    match error {
        BodyError::Http2(error) => error.reason().unwrap_or(Reason::INTERNAL_ERROR),
        _ => Reason::INTERNAL_ERROR,
    }
}
