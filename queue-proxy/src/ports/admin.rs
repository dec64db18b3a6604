//! The admin port (8022): the app's stop hook.

use crate::sidecar::Sidecar;
use http::Request;
use http::Response;
use hyper::body::Incoming;
use plumbing::body::Body;
use plumbing::shutdown::Shutdown;
use plumbing::side;
use std::sync::Arc;
use tokio::net::TcpListener;

/// Where the kubelet's preStop hook of each app container calls.
const WAIT_FOR_DRAIN: &str = "/wait-for-drain";

/// Serves until `shutdown` drains.
pub(crate) async fn serve(sidecar: Arc<Sidecar>, listener: TcpListener, shutdown: Shutdown) {
    side::serve(listener, shutdown, move |request| answer(sidecar.clone(), request)).await;
}

/// Any method will do, as in the reference.
async fn answer(sidecar: Arc<Sidecar>, request: Request<Incoming>) -> Response<Body> {
    if request.uri().path() != WAIT_FOR_DRAIN {
        return side::not_found();
    }
    tracing::info!(method = %request.method(), "Attached drain handler from user-container");
    sidecar.drain.hook().await;
    Response::new(Body::empty())
}
