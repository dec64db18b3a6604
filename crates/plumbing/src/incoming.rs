//! Bodies as they come in, whichever version of HTTP they come by.

use crate::body::BodyError;
use crate::h1;
use crate::http2;
use bytes::Bytes;
use http_body::{Body as HttpBody, Frame, SizeHint};
use std::pin::Pin;
use std::task::{Context, Poll};

/// The body of a request, and what else can be asked of its connection.
pub enum Incoming {
    /// By HTTP/1.
    Http1(h1::Incoming),
    /// By HTTP/2.
    Http2(http2::Incoming),
    /// By HTTP/1, which hyper speaks.
    #[cfg(feature = "hyper-http1")]
    Hyper(crate::hyper1::Requested),
}

impl Incoming {
    /// By which interim answers can be given; HTTP/2 has no way here, nor has
    /// hyper.
    pub fn interim(&self) -> Option<h1::Interim> {
        match self {
            Incoming::Http1(body) => Some(body.interim()),
            Incoming::Http2(_) => None,
            #[cfg(feature = "hyper-http1")]
            Incoming::Hyper(_) => None,
        }
    }

    /// The raw connection, if the request asks for another protocol and the
    /// answer grants it.
    pub fn on_upgrade(&self) -> Option<h1::OnUpgrade> {
        match self {
            Incoming::Http1(body) => body.on_upgrade(),
            Incoming::Http2(_) => None,
            #[cfg(feature = "hyper-http1")]
            Incoming::Hyper(request) => request.on_upgrade(),
        }
    }
}

impl HttpBody for Incoming {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        match self.get_mut() {
            Incoming::Http1(body) => Pin::new(body).poll_frame(cx).map_err(BodyError::from),
            Incoming::Http2(body) => Pin::new(body).poll_frame(cx).map_err(BodyError::from),
            #[cfg(feature = "hyper-http1")]
            Incoming::Hyper(request) => Pin::new(&mut request.body).poll_frame(cx).map_err(BodyError::from),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Incoming::Http1(body) => body.is_end_stream(),
            Incoming::Http2(body) => body.is_end_stream(),
            #[cfg(feature = "hyper-http1")]
            Incoming::Hyper(request) => request.body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Incoming::Http1(body) => body.size_hint(),
            Incoming::Http2(body) => body.size_hint(),
            #[cfg(feature = "hyper-http1")]
            Incoming::Hyper(request) => request.body.size_hint(),
        }
    }
}
