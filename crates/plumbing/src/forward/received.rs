//! An answer's body, and with it the connection that it comes on.

use super::http1::Home;
use super::http2::Stream;
use crate::body::{Body, BodyError};
use crate::h1;
use crate::http2;
use bytes::Bytes;
use http_body::{Body as HttpBody, Frame, SizeHint};
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::time::Instant;

/// The body of an answer. Dropped before its end, it ends the exchange: the
/// connection over HTTP/1, the stream over HTTP/2.
pub struct Received(Source);

enum Source {
    Http1 {
        body: h1::Received<Body>,
        home: Home,
    },
    Http2 {
        body: http2::Incoming,
        _stream: Stream,
    },
    #[cfg(feature = "hyper-http1")]
    Hyper {
        body: hyper::body::Incoming,
        home: super::by_hyper::Home,
        upgraded: Option<h1::Upgraded>,
    },
}

impl Received {
    pub(super) fn http1(body: h1::Received<Body>, home: Home) -> Received {
        Received(Source::Http1 { body, home })
    }

    pub(super) fn http2(body: http2::Incoming, stream: Stream) -> Received {
        Received(Source::Http2 { body, _stream: stream })
    }

    #[cfg(feature = "hyper-http1")]
    pub(super) fn by_hyper(
        body: hyper::body::Incoming,
        home: super::by_hyper::Home,
        upgraded: Option<h1::Upgraded>,
    ) -> Received {
        Received(Source::Hyper { body, home, upgraded })
    }

    /// The answer has been read to its end: its connection can be used again.
    pub fn put_back(self) {
        match self.0 {
            Source::Http1 { mut body, home } => {
                if let Some(connection) = body.take_idle() {
                    home.put_back(connection, Instant::now());
                }
            }
            Source::Http2 { .. } => {}
            #[cfg(feature = "hyper-http1")]
            Source::Hyper { home, .. } => home.put_back(),
        }
    }

    /// The raw connection, if the answer has switched protocols.
    pub fn take_upgraded(&mut self) -> Option<h1::Upgraded> {
        match &mut self.0 {
            Source::Http1 { body, .. } => body.take_upgraded(),
            Source::Http2 { .. } => None,
            #[cfg(feature = "hyper-http1")]
            Source::Hyper { upgraded, .. } => upgraded.take(),
        }
    }
}

impl HttpBody for Received {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        match &mut self.get_mut().0 {
            Source::Http1 { body, .. } => Pin::new(body).poll_frame(cx).map_err(BodyError::from),
            Source::Http2 { body, .. } => Pin::new(body).poll_frame(cx).map_err(BodyError::from),
            #[cfg(feature = "hyper-http1")]
            Source::Hyper { body, .. } => Pin::new(body).poll_frame(cx).map_err(BodyError::from),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Source::Http1 { body, .. } => body.is_end_stream(),
            Source::Http2 { body, .. } => body.is_end_stream(),
            #[cfg(feature = "hyper-http1")]
            Source::Hyper { body, .. } => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Source::Http1 { body, .. } => body.size_hint(),
            Source::Http2 { body, .. } => body.size_hint(),
            #[cfg(feature = "hyper-http1")]
            Source::Hyper { body, .. } => body.size_hint(),
        }
    }
}
