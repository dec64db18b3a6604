//! Draws a body into an outbox.

use super::encode::Encoder;
use super::limits::QUEUED_BYTES_MAX;
use super::outbox::Outbox;
use bytes::Bytes;
use http::HeaderMap;
use http_body::Body;
use std::fmt::Display;
use std::pin::Pin;
use std::task::{Context, Poll};

/// A body that is being written.
pub(super) struct Feed<B> {
    body: B,
    whole: bool,
    encoder: Encoder,
    trailers: Option<HeaderMap>,
}

/// How far it has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fed {
    /// All is in the outbox.
    Whole,
    /// The outbox is full.
    Full,
    /// More is to come.
    Waiting,
}

impl<B> Feed<B>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: Display,
{
    pub(super) fn new(body: B, encoder: Encoder, out: &mut Outbox) -> Result<Feed<B>, String> {
        let ended = body.is_end_stream();
        let mut feed = Feed { body, whole: false, encoder, trailers: None };
        if ended || encoder.is_full() {
            feed.finish(out)?;
        }
        Ok(feed)
    }

    /// True when the body has been drawn in full.
    pub(super) fn is_whole(&self) -> bool {
        self.whole
    }

    /// True when trailers have been drawn.
    pub(super) fn has_trailers(&self) -> bool {
        self.trailers.is_some()
    }

    /// Draws what is there; an error is the body's.
    pub(super) fn poll(&mut self, out: &mut Outbox, cx: &mut Context<'_>) -> Result<Fed, String> {
        loop {
            if self.whole {
                return Ok(Fed::Whole);
            }
            if out.len() >= QUEUED_BYTES_MAX {
                return Ok(Fed::Full);
            }
            if self.poll_one(out, cx)?.is_pending() {
                return Ok(Fed::Waiting);
            }
        }
    }

    /// Draws one piece; its data, if it is some.
    pub(super) fn poll_one(&mut self, out: &mut Outbox, cx: &mut Context<'_>) -> Result<Poll<Option<Bytes>>, String> {
        if self.whole {
            return Ok(Poll::Ready(None));
        }
        let frame = match Pin::new(&mut self.body).poll_frame(cx) {
            Poll::Pending => return Ok(Poll::Pending),
            Poll::Ready(None) => return self.finish(out).map(|()| Poll::Ready(None)),
            Poll::Ready(Some(Err(error))) => return Err(error.to_string()),
            Poll::Ready(Some(Ok(frame))) => frame,
        };
        let data = match frame.into_data() {
            Ok(data) => {
                self.encoder.data(data.clone(), out).map_err(|error| error.to_string())?;
                Some(data)
            }
            Err(frame) => {
                if let Ok(trailers) = frame.into_trailers() {
                    self.trailers.get_or_insert_default().extend(trailers);
                }
                None
            }
        };
        if self.encoder.is_full() || self.body.is_end_stream() {
            self.finish(out)?;
        }
        Ok(Poll::Ready(data))
    }

    fn finish(&mut self, out: &mut Outbox) -> Result<(), String> {
        self.encoder.end(self.trailers.as_ref(), out).map_err(|error| error.to_string())?;
        self.whole = true;
        Ok(())
    }

    /// The body, as far as it has been drawn.
    pub(super) fn into_body(self) -> B {
        self.body
    }
}
