//! Bodies that we pass on: one type for all of them, and a response body that
//! carries what must last until its last byte.

use crate::conn::Busy;
use crate::deadline::Limits;
use crate::forward::Received;
use crate::grpc_status;
use crate::h1;
use crate::headers;
use crate::incoming::Incoming;
use crate::meter::{Ended, Meter, Metered};
use crate::reason::Reason;
use crate::replay::View;
use bytes::Bytes;
use http_body::{Body as HttpBody, Frame, SizeHint};
use parking_lot::Mutex;
use std::any::Any;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

/// Something that is kept until a body has ended: a slot, a count.
pub type Guard = Box<dyn Any + Send>;

/// Why a body broke off.
#[derive(Debug, thiserror::Error)]
pub enum BodyError {
    /// The other side of an HTTP/1 connection failed.
    #[error("{0}")]
    Http1(#[from] h1::BodyError),
    /// The other side of an HTTP/2 connection failed.
    #[error("{0}")]
    Http2(#[from] h2::Error),
    /// The other side of an HTTP/1 connection that hyper serves failed.
    #[cfg(feature = "hyper-http1")]
    #[error("{0}")]
    Hyper(#[from] hyper::Error),
    /// A limit of the request passed after its answer had begun. The answer is
    /// cut, visibly: nothing may be written into it.
    #[error("{0}")]
    Limit(Reason),
    /// The request is being sent anew, elsewhere.
    #[error("the request was taken back")]
    TakenBack,
}

/// A body, of a request or of a response.
pub struct Body {
    kind: Kind,
    /// On an answer: its connection is busy until the body is gone.
    busy: Option<Busy>,
    meter: Metered,
}

enum Kind {
    Empty,
    Full(Option<Bytes>),
    Incoming(Incoming),
    Replay(View),
    Carried(Arc<Carried>),
}

impl Body {
    fn of(kind: Kind) -> Body {
        Body { kind, busy: None, meter: Metered::default() }
    }

    pub(crate) fn keeping(mut self, busy: Busy) -> Body {
        self.busy = Some(busy);
        self
    }

    /// Told of what passes, until the body has ended.
    pub fn metered(mut self, meter: Box<dyn Meter>) -> Body {
        self.meter = Metered::by(meter);
        self
    }

    /// How it ended, when nobody reads it any more.
    fn left(&self) -> Ended {
        let cut = if let Kind::Carried(carried) = &self.kind { carried.state.lock().cut } else { None };
        match cut {
            Some(reason) => Ended::Limit(reason),
            None if self.is_end_stream() => Ended::Whole,
            None => Ended::Left,
        }
    }

    /// Without content.
    pub fn empty() -> Body {
        Body::of(Kind::Empty)
    }

    /// Without its content; whoever watches it goes on.
    pub(crate) fn emptied(mut self) -> Body {
        self.kind = Kind::Empty;
        self
    }

    /// Known in full.
    pub fn full(bytes: Bytes) -> Body {
        Body::of(Kind::Full(Some(bytes)))
    }

    /// As it comes in.
    pub fn incoming(incoming: Incoming) -> Body {
        if incoming.is_end_stream() { Body::empty() } else { Body::of(Kind::Incoming(incoming)) }
    }

    /// A request body that may be sent again.
    pub fn replay(view: View) -> Body {
        Body::of(Kind::Replay(view))
    }

    /// A response body with its limits, its guards, and the connection that it
    /// comes on: all are let go of at the last byte, or when a limit passes.
    pub fn carried(received: Received, origin: Origin, limits: Limits, guard: Guard) -> Body {
        let load = Load { received, origin, limits, _guard: guard };
        let told = !matches!(origin, Origin::App { grpc: true });
        let state = State { load: Some(load), cut: None, told, reader: None };
        let carried = Arc::new(Carried { state: Mutex::new(state) });
        carried.clone().arm();
        Body::of(Kind::Carried(carried))
    }
}

/// Whose answer is passed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The app's own. One of a gRPC call that is cut by a limit ends with
    /// trailers that say so, since there is a place for that.
    App {
        /// It is one.
        grpc: bool,
    },
    /// A sidecar's, which has looked at the app's already.
    Pod,
}

struct Carried {
    state: Mutex<State>,
}

struct State {
    load: Option<Load>,
    cut: Option<Reason>,
    /// A cut has been told in trailers, or cannot be.
    told: bool,
    reader: Option<Waker>,
}

struct Load {
    received: Received,
    origin: Origin,
    limits: Limits,
    _guard: Guard,
}

impl Load {
    /// The body has ended as it should: its connection can be used again.
    fn complete(self) {
        self.received.put_back();
    }
}

impl Carried {
    /// Lets the limits call [`Carried::wake`] rather than the reader: a client
    /// that has stopped reading is not polled, and must not keep its slot.
    fn arm(self: Arc<Self>) {
        let waker = Waker::from(self.clone());
        let mut state = self.state.lock();
        let Some(load) = state.load.as_mut() else { return };
        let Poll::Ready(reason) = load.limits.poll_passed(&mut Context::from_waker(&waker)) else { return };
        state.cut = Some(reason);
        let load = state.load.take();
        let reader = state.reader.take();
        drop(state);
        // Dropping it frees slots and wakes others: not under the lock.
        drop(load);
        if let Some(reader) = reader {
            reader.wake();
        }
    }

    fn poll_frame(&self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let mut state = self.state.lock();
        if let Some(reason) = state.cut {
            if !std::mem::replace(&mut state.told, true) {
                return Poll::Ready(Some(Ok(Frame::trailers(grpc_status::trailers(reason)))));
            }
            return Poll::Ready(Some(Err(BodyError::Limit(reason))));
        }
        let Some(load) = state.load.as_mut() else { return Poll::Ready(None) };
        match Pin::new(&mut load.received).poll_frame(cx) {
            Poll::Pending => {
                state.reader = Some(cx.waker().clone());
                Poll::Pending
            }
            Poll::Ready(Some(Ok(frame))) => {
                load.limits.wrote();
                let frame = headers::trailers_to_client(frame, load.origin != Origin::Pod);
                let ended = load.received.is_end_stream();
                let load = if ended { state.load.take() } else { None };
                drop(state);
                load.into_iter().for_each(Load::complete);
                Poll::Ready(Some(Ok(frame)))
            }
            Poll::Ready(end) => {
                let load = state.load.take();
                drop(state);
                match end {
                    Some(Err(error)) => Poll::Ready(Some(Err(error))),
                    _ => {
                        load.into_iter().for_each(Load::complete);
                        Poll::Ready(None)
                    }
                }
            }
        }
    }

    /// The reader is gone.
    fn abandon(&self) {
        let load = self.state.lock().load.take();
        if let Some(load) = load
            && load.received.is_end_stream()
        {
            load.complete();
        }
    }
}

impl Wake for Carried {
    fn wake(self: Arc<Self>) {
        self.arm();
    }
}

impl HttpBody for Body {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let polled = match &mut self.kind {
            Kind::Empty => Poll::Ready(None),
            Kind::Full(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Kind::Incoming(incoming) => Pin::new(incoming).poll_frame(cx),
            Kind::Replay(view) => view.poll_frame(cx),
            Kind::Carried(carried) => carried.poll_frame(cx),
        };
        if self.meter.is_there() {
            let last = self.is_end_stream();
            self.meter.look(&polled, last);
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        match &self.kind {
            Kind::Empty => true,
            Kind::Full(bytes) => bytes.is_none(),
            Kind::Incoming(incoming) => incoming.is_end_stream(),
            Kind::Replay(view) => view.is_end_stream(),
            Kind::Carried(carried) => {
                let state = carried.state.lock();
                state.cut.is_none() && state.load.as_ref().is_none_or(|load| load.received.is_end_stream())
            }
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.kind {
            Kind::Empty => SizeHint::with_exact(0),
            Kind::Full(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64)),
            Kind::Incoming(incoming) => incoming.size_hint(),
            Kind::Replay(view) => view.size_hint(),
            Kind::Carried(carried) => {
                let state = carried.state.lock();
                match (&state.load, state.cut) {
                    (Some(load), _) => load.received.size_hint(),
                    (None, None) => SizeHint::with_exact(0),
                    // Unknown, so that the cut is not taken for a whole answer.
                    (None, Some(_)) => SizeHint::default(),
                }
            }
        }
    }
}

impl Drop for Body {
    fn drop(&mut self) {
        if self.meter.is_there() {
            let how = self.left();
            self.meter.end(how);
        }
        if let Kind::Carried(carried) = &self.kind {
            carried.abandon();
        }
    }
}
