//! Bodies that come in by HTTP/2.

use bytes::{Bytes, BytesMut};
use h2::{Reason, RecvStream};
use http::HeaderMap;
use http::header::CONTENT_LENGTH;
use http_body::{Body, Frame, SizeHint};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

/// Pieces that are there already are passed on as one of at most this size.
const GATHERED_BYTES_MAX: usize = 16 * 1024;
/// A piece that is larger is worth more than its copy.
const SMALL_BYTES_MAX: usize = 4 * 1024;

/// The body of a request or an answer. Frames mean nothing in HTTP/2: small
/// ones that have come together are given as one, with no wait for more.
pub struct Incoming {
    stream: RecvStream,
    length: Option<u64>,
    /// Came behind what was gathered: a large piece, or a fault.
    next: Option<Result<Bytes, h2::Error>>,
    /// Only trailers can follow.
    data_ended: bool,
    /// It has no content, whatever comes.
    shut: bool,
}

impl Incoming {
    /// The body of a message that has these fields.
    pub(crate) fn new(stream: RecvStream, fields: &HeaderMap) -> Incoming {
        let length = if stream.is_end_stream() { Some(0) } else { length(fields) };
        Incoming { stream, length, next: None, data_ended: false, shut: false }
    }

    /// Of a CONNECT, for which there is no way through here: what comes is for
    /// the tunnel, and there is none.
    pub(crate) fn shut(stream: RecvStream) -> Incoming {
        Incoming { stream, length: Some(0), next: None, data_ended: true, shut: true }
    }

    fn poll_data(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, h2::Error>>> {
        let first = match self.next.take() {
            Some(next) => next,
            None => match ready!(self.stream.poll_data(cx)) {
                Some(first) => first,
                None => return Poll::Ready(None),
            },
        };
        let Ok(first) = first else { return Poll::Ready(Some(first)) };
        let piece = self.with_followers(first, cx);
        // The stream may have been reset meanwhile: then nobody counts.
        let _ = self.stream.flow_control().release_capacity(piece.len());
        Poll::Ready(Some(Ok(piece)))
    }

    /// A piece, and behind it what else is there, if they are small.
    fn with_followers(&mut self, first: Bytes, cx: &mut Context<'_>) -> Bytes {
        if first.len() > SMALL_BYTES_MAX || self.stream.is_end_stream() {
            return first;
        }
        let mut second = match self.poll_follower(cx) {
            Some(second) => second,
            None => return first,
        };
        let mut all = BytesMut::with_capacity(GATHERED_BYTES_MAX);
        all.extend_from_slice(&first);
        loop {
            all.extend_from_slice(&second);
            if all.len() + SMALL_BYTES_MAX > GATHERED_BYTES_MAX || self.stream.is_end_stream() {
                return all.freeze();
            }
            match self.poll_follower(cx) {
                Some(next) => second = next,
                None => return all.freeze(),
            }
        }
    }

    /// The next piece, if it is there and small.
    fn poll_follower(&mut self, cx: &mut Context<'_>) -> Option<Bytes> {
        match self.stream.poll_data(cx) {
            Poll::Ready(Some(Ok(piece))) if piece.len() <= SMALL_BYTES_MAX => return Some(piece),
            Poll::Ready(Some(other)) => self.next = Some(other),
            Poll::Ready(None) => self.data_ended = true,
            Poll::Pending => {}
        }
        None
    }
}

impl Body for Incoming {
    type Data = Bytes;
    type Error = h2::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, h2::Error>>> {
        let this = self.get_mut();
        if this.shut {
            return Poll::Ready(None);
        }
        if !this.data_ended || this.next.is_some() {
            match ready!(this.poll_data(cx)) {
                Some(Ok(piece)) => return Poll::Ready(Some(Ok(Frame::data(piece)))),
                Some(Err(error)) => return Poll::Ready(unless_early(error)),
                None => this.data_ended = true,
            }
        }
        Poll::Ready(match ready!(this.stream.poll_trailers(cx)) {
            Ok(trailers) => trailers.map(Frame::trailers).map(Ok),
            Err(error) => unless_early(error),
        })
    }

    fn is_end_stream(&self) -> bool {
        self.shut || self.next.is_none() && self.stream.is_end_stream()
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
