//! The port of the user metrics (9091), in the text form of Prometheus.

use observe::metrics::{self, Metrics};
use plumbing::body::Body;
use plumbing::shutdown::Shutdown;
use plumbing::side;
use std::sync::Arc;
use tokio::net::TcpListener;

/// Serves until `shutdown` drains; goes on answering while the sidecar does.
pub(crate) async fn serve(metrics: Arc<Metrics>, listener: TcpListener, shutdown: Shutdown) {
    side::serve(listener, shutdown, move |request| {
        let answer = metrics::answer(&metrics, request.method(), request.uri().path()).map(Body::full);
        async move { answer }
    })
    .await;
}
