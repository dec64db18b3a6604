//! Bodies that come in by HTTP/2.

use bytes::Bytes;
use h2::{Reason, RecvStream};
use http::HeaderMap;
use http::header::CONTENT_LENGTH;
use http_body::{Body, Frame, SizeHint};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

/// The body of a request or an answer.
pub struct Incoming {
    stream: RecvStream,
    length: Option<u64>,
    /// Only trailers can follow.
    data_ended: bool,
    /// Nothing follows; as far as is known since it was last read.
    ended: bool,
}

impl Incoming {
    /// The body of a message that has these fields.
    pub(crate) fn new(stream: RecvStream, fields: &HeaderMap) -> Incoming {
        let ended = stream.is_end_stream();
        let length = if ended { Some(0) } else { length(fields) };
        Incoming { stream, length, data_ended: false, ended }
    }

    /// Of a CONNECT, for which there is no way through here: what comes is for
    /// the tunnel, and there is none.
    pub(crate) fn shut(stream: RecvStream) -> Incoming {
        Incoming { stream, length: Some(0), data_ended: true, ended: true }
    }

    fn take(&mut self, piece: Bytes) -> Frame<Bytes> {
        // The stream may have been reset meanwhile: then nobody counts.
        let _ = self.stream.flow_control().release_capacity(piece.len());
        self.ended = self.stream.is_end_stream();
        Frame::data(piece)
    }
}

impl Body for Incoming {
    type Data = Bytes;
    type Error = h2::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, h2::Error>>> {
        let this = self.get_mut();
        if this.ended {
            return Poll::Ready(None);
        }
        if !this.data_ended {
            match ready!(this.stream.poll_data(cx)) {
                Some(Ok(piece)) => return Poll::Ready(Some(Ok(this.take(piece)))),
                Some(Err(error)) => return Poll::Ready(unless_early(error)),
                None => this.data_ended = true,
            }
        }
        let trailers = ready!(this.stream.poll_trailers(cx));
        this.ended = true;
        Poll::Ready(match trailers {
            Ok(trailers) => trailers.map(Frame::trailers).map(Ok),
            Err(error) => unless_early(error),
        })
    }

    fn is_end_stream(&self) -> bool {
        self.ended
    }

    fn size_hint(&self) -> SizeHint {
        self.length.map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}

/// A stream that is reset without an error has been answered early: whoever
/// reads it should stop, and nothing has failed (RFC 9113, 8.1).
fn unless_early<T>(error: h2::Error) -> Option<Result<T, h2::Error>> {
    if error.reason() == Some(Reason::NO_ERROR) { None } else { Some(Err(error)) }
}

/// What a message says of its length; `None` if nothing, or not one thing.
fn length(fields: &HeaderMap) -> Option<u64> {
    let mut lines = fields.get_all(CONTENT_LENGTH).iter().map(|line| {
        let text = line.to_str().ok()?;
        if text.bytes().all(|byte| byte.is_ascii_digit()) { text.parse().ok() } else { None }
    });
    let first = lines.next()??;
    lines.all(|line| line == Some(first)).then_some(first)
}
