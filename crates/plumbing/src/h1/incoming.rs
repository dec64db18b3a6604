//! A request's body as its handler reads it, and what else a handler may ask
//! of the connection.

use super::chunk::Piece;
use super::error::BodyError;
use super::link::Link;
use super::malformed::Malformed;
use super::upgrade::OnUpgrade;
use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use http_body::{Body, Frame, SizeHint};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::sync::oneshot;

/// The body of a request. Bytes are read from the connection as it is polled,
/// in the order and at the pace of the polling; the first poll also tells a
/// client that said `Expect: 100-continue` to send it.
pub struct Incoming {
    link: Arc<Link>,
    turn: u64,
    upgrade: bool,
    hint: SizeHint,
    ended: bool,
}

impl Incoming {
    pub(super) fn new(link: Arc<Link>, turn: u64, hint: SizeHint, upgrade: bool) -> Incoming {
        let ended = hint.exact() == Some(0);
        Incoming { link, turn, upgrade, hint, ended }
    }

    /// By which interim answers can be given. Keeps working when the body is gone.
    pub fn interim(&self) -> Interim {
        Interim { link: self.link.clone(), turn: self.turn }
    }

    /// The raw connection, if the request asks for another protocol (or is a
    /// CONNECT) and the answer grants it. The last call counts.
    pub fn on_upgrade(&self) -> Option<OnUpgrade> {
        if !self.upgrade {
            return None;
        }
        let (sender, receiver) = oneshot::channel();
        let mut state = self.link.state();
        if state.turn == self.turn {
            state.upgrade = Some(sender);
        }
        Some(OnUpgrade(receiver))
    }

    fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Result<Piece, BodyError>> {
        let mut state = self.link.state();
        if state.turn != self.turn {
            return Poll::Ready(Err(BodyError::Over));
        }
        if !state.asked {
            state.ask();
        }
        loop {
            let state = &mut *state;
            match state.decoder.decode(&mut state.inbox.bytes) {
                Ok(Piece::More) => {}
                Ok(piece) => {
                    state.reader = None;
                    self.hint = state.decoder.hint();
                    self.ended = state.decoder.is_done();
                    return Poll::Ready(Ok(piece));
                }
                Err(what) => {
                    state.malformed = Some(Malformed::Body(what));
                    return Poll::Ready(Err(BodyError::Malformed(what)));
                }
            }
            match state.poll_fill_for_reader(cx) {
                Poll::Ready(Ok(0)) => return Poll::Ready(Err(BodyError::Truncated)),
                Poll::Ready(Ok(_)) => {}
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error.into())),
                Poll::Pending => {
                    match &mut state.reader {
                        Some(waker) if waker.will_wake(cx.waker()) => {}
                        waker => *waker = Some(cx.waker().clone()),
                    }
                    return Poll::Pending;
                }
            }
        }
    }
}

impl Body for Incoming {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        if self.ended {
            return Poll::Ready(None);
        }
        match self.poll_piece(cx) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Ok(Piece::Data(data))) => Poll::Ready(Some(Ok(Frame::data(data)))),
            Poll::Ready(Ok(Piece::Trailers(trailers))) => Poll::Ready(Some(Ok(Frame::trailers(trailers)))),
            Poll::Ready(Ok(Piece::End | Piece::More)) => Poll::Ready(None),
            Poll::Ready(Err(error)) => {
                self.ended = true;
                self.hint = SizeHint::default();
                Poll::Ready(Some(Err(error)))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.ended
    }

    fn size_hint(&self) -> SizeHint {
        self.hint
    }
}

impl Drop for Incoming {
    fn drop(&mut self) {
        if self.ended {
            return;
        }
        // Nobody waits for the rest. (The waker is dropped outside the lock.)
        let mut state = self.link.state();
        let reader = if state.turn == self.turn { state.reader.take() } else { None };
        drop(state);
        drop(reader);
    }
}

/// Gives interim answers (1xx) before the answer of the same request.
#[derive(Clone)]
pub struct Interim {
    link: Arc<Link>,
    turn: u64,
}

impl Interim {
    pub(super) fn new(link: Arc<Link>, turn: u64) -> Interim {
        Interim { link, turn }
    }

    /// Sends one at once. False if none can be sent: the answer has begun, the
    /// client speaks HTTP/1.0, or the status is no interim one (101 is final).
    pub fn send(&self, status: StatusCode, fields: &HeaderMap) -> bool {
        status.is_informational()
            && status != StatusCode::SWITCHING_PROTOCOLS
            && self.link.interim(self.turn, status, fields)
    }
}
