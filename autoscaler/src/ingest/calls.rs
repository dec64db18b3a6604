//! The two calls by which stats come.

use super::codec::{Came, Form, Kept, StatCodec, Stats};
use super::{Kind, Place, Shared, refused};
use crate::rate::Rate;
use http::Request;
use hyper::body::Incoming;
use plumbing::clock;
use plumbing::shutdown::Shutdown;
use policy::stat::StatBatch;
use proto::push::{PUSH, PushReply};
use proto::report::{REPORT, Receipt};
use std::future::{Future, Ready, ready};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio_stream::Stream;
use tonic::server::{Grpc, StreamingService, UnaryService};
use tonic::{Response, Status, Streaming};

/// Older than this, a batch says nothing about any window.
const AGE_MAX: Duration = Duration::from_secs(3600);

/// Whoever calls on one connection.
#[derive(Clone)]
pub(super) struct Caller {
    pub(super) shared: Arc<Shared>,
    pub(super) rate: Arc<Rate>,
    pub(super) shutdown: Shutdown,
}

impl Caller {
    pub(super) async fn answer(self, request: Request<Incoming>) -> http::Response<tonic::body::Body> {
        let most = self.shared.limits.message_bytes;
        let kept = Kept::default();
        match request.uri().path() {
            PUSH => {
                let codec = StatCodec::<PushReply>::new(Form::Messages, &self.shared.names, &kept);
                Grpc::new(codec).max_decoding_message_size(most).unary(Push(self), request).await
            }
            REPORT => {
                let codec = StatCodec::<Receipt>::new(Form::Batch, &self.shared.names, &kept);
                Grpc::new(codec).max_decoding_message_size(most).streaming(Report(self, kept), request).await
            }
            _ => Status::unimplemented("there are zeroscale.v1.Stats/Push and /Report").into_http(),
        }
    }

    /// Gives stats to the decisions. `Err` = not taken.
    fn take(&self, came: Came, kept: Option<&Kept>) -> Result<(), Status> {
        if self.shutdown.is_draining() {
            return Err(Status::unavailable("this autoscaler is ending"));
        }
        if !self.rate.take() {
            refused("rate");
            let most = self.shared.limits.rate;
            return Err(Status::resource_exhausted(format!("more than {most} messages a second on one connection")));
        }
        let at = clock::now() - Duration::from_millis(came.head.age_millis).min(AGE_MAX);
        let taken = match came.stats {
            Stats::Each(stats) => self.shared.intake.take(StatBatch { at, stats, poke: came.head.poke }),
            Stats::Rows(mut rows) => {
                let taken = self.shared.intake.take_rows(at, rows.all());
                if let Some(kept) = kept {
                    *kept.lock() = rows;
                }
                taken
            }
        };
        if taken {
            return Ok(());
        }
        refused("queue");
        Err(Status::unavailable("the decisions stand still; nothing more can be taken"))
    }
}

struct Push(Caller);

impl UnaryService<Came> for Push {
    type Response = PushReply;
    type Future = Ready<Result<Response<PushReply>, Status>>;

    fn call(&mut self, request: tonic::Request<Came>) -> Self::Future {
        let taken = self.0.take(request.into_inner(), None);
        if taken.is_ok() {
            self.0.shared.gauges.pushed.increment(1);
        }
        ready(taken.map(|()| Response::new(PushReply {})))
    }
}

struct Report(Caller, Kept);

impl StreamingService<Came> for Report {
    type Response = Receipt;
    type ResponseStream = Receipts;
    type Future = Ready<Result<Response<Receipts>, Status>>;

    fn call(&mut self, request: tonic::Request<Streaming<Came>>) -> Self::Future {
        let caller = self.0.clone();
        let Some(place) = Place::take(&caller.shared, Kind::Stream) else {
            refused("streams");
            let most = caller.shared.limits.streams;
            return ready(Err(Status::resource_exhausted(format!("{most} streams report already"))));
        };
        let over = caller.shutdown.clone();
        let draining = Box::pin(async move { over.draining().await });
        let batches = request.into_inner();
        let kept = self.1.clone();
        ready(Ok(Response::new(Receipts { caller, batches, kept, draining, _place: place, ended: false })))
    }
}

/// Takes batches in, one by one, as receipts for them are asked for: so a
/// reporter that does not read is not read from either.
struct Receipts {
    caller: Caller,
    batches: Streaming<Came>,
    kept: Kept,
    draining: Pin<Box<dyn Future<Output = ()> + Send>>,
    _place: Place,
    ended: bool,
}

impl Stream for Receipts {
    type Item = Result<Receipt, Status>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.ended {
            return Poll::Ready(None);
        }
        if self.draining.as_mut().poll(cx).is_ready() {
            self.ended = true;
            return Poll::Ready(Some(Err(Status::unavailable("this autoscaler is ending"))));
        }
        let came = match Pin::new(&mut self.batches).poll_next(cx) {
            Poll::Ready(Some(Ok(came))) => came,
            Poll::Ready(Some(Err(status))) => {
                self.ended = true;
                return Poll::Ready(Some(Err(status)));
            }
            Poll::Ready(None) => return Poll::Ready(None),
            Poll::Pending => return Poll::Pending,
        };
        let number = came.head.number;
        let taken = self.caller.take(came, Some(&self.kept));
        match taken {
            Ok(()) => self.caller.shared.gauges.reported.increment(1),
            Err(_) => self.ended = true,
        }
        Poll::Ready(Some(taken.map(|()| Receipt { number })))
    }
}
