//! The port that the autoscaler scrapes (9090): the stat of the last second.

use crate::report::Latest;
use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{Request, Response};
use hyper::body::Incoming;
use plumbing::body::Body;
use plumbing::shutdown::Shutdown;
use plumbing::side;
use std::sync::Arc;
use tokio::net::TcpListener;

const METRICS: &str = "/metrics";

/// The autoscaler compares the whole value: no parameter may be added.
const PROTOBUF: HeaderValue = HeaderValue::from_static("application/protobuf");

/// Serves until `shutdown` drains; goes on answering while the sidecar does.
pub(crate) async fn serve(latest: Arc<Latest>, listener: TcpListener, shutdown: Shutdown) {
    side::serve(listener, shutdown, move |request| {
        let answer = answer(&latest, &request);
        async move { answer }
    })
    .await;
}

/// Any method and any `Accept` will do, as in the reference.
fn answer(latest: &Latest, request: &Request<Incoming>) -> Response<Body> {
    if request.uri().path() != METRICS {
        return side::not_found();
    }
    let mut response = Response::new(Body::full(Bytes::from(proto::encode(&latest.stat()))));
    response.headers_mut().insert(CONTENT_TYPE, PROTOBUF);
    response
}
